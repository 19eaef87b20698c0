//! `[[confirm]]`: tools whose calls wait for a confirmation.

use toml::Value;

use super::entry::{Entry, entries};
use crate::{error::ConfigError, file::ConfigFile, value::strings};

/// `[[confirm]]`: tools whose calls run only once they were confirmed. Patterns and pointers are judged by whoever uses
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmEntry {
    /// Patterns of the tools; none with `annotations = "destructive"`.
    pub tools: Vec<String>,
    /// Patterns of tools that are left out.
    pub except: Vec<String>,
    /// What a human is asked to confirm.
    pub action: Option<String>,
    /// A JSON pointer into the arguments: for whom the call acts.
    pub account: Option<String>,
    /// A JSON pointer into the arguments: what it acts on.
    pub target: Option<String>,
    /// The tool that shows what the call would do.
    pub preview: Option<PreviewEntry>,
    /// What counts as an acceptance.
    pub require: Require,
    /// Whose acceptance counts.
    pub who: Who,
}

/// The `preview` of a [`ConfirmEntry`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewEntry {
    /// The tool.
    pub tool: String,
    /// Its arguments, each with a JSON pointer into those of the guarded call.
    pub arguments: Vec<(String, String)>,
    /// A JSON pointer into its result: the target's revision.
    pub revision: Option<String>,
    /// It is called although its server does not call it read-only.
    pub trusted: bool,
}

/// What counts as an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Require {
    /// That of any rail.
    Any,
    /// That of a page session which painted the question.
    Human,
}

/// Whose acceptance counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The caller's own.
    Caller,
    /// Any operator's.
    Operator,
    /// Somebody else's than the caller's.
    NotTheCaller,
}

const KEYS: &[&str] =
    &["tools", "annotations", "except", "action", "account", "target", "preview", "require", "who"];

const PREVIEW: &str = "preview takes { tool = \"get_draft\", arguments = { id = \"/draftId\" }, revision = \"/etag\", trusted = false }";

pub(crate) fn confirms(file: &ConfigFile) -> Result<Vec<ConfirmEntry>, ConfigError> {
    entries(file, "confirm", "action", KEYS)?.iter().map(confirm).collect()
}

fn confirm(entry: &Entry<'_>) -> Result<ConfirmEntry, ConfigError> {
    let tools = match (entry.table.get("tools"), entry.table.get("annotations").map(Value::as_str)) {
        (Some(_), None) => patterns(entry, "tools")?,
        (None, Some(Some("destructive"))) => Vec::new(),
        (None, Some(_)) => return Err(entry.error("annotations takes \"destructive\"")),
        (None, None) | (Some(_), Some(_)) => {
            return Err(entry.error("give either tools = [\"*_delete\"] or annotations = \"destructive\""));
        }
    };
    let except = match entry.table.get("except") {
        None => Vec::new(),
        Some(_) => patterns(entry, "except")?,
    };
    Ok(ConfirmEntry {
        tools,
        except,
        action: optional(entry, "action")?,
        account: optional(entry, "account")?,
        target: optional(entry, "target")?,
        preview: entry
            .table
            .get("preview")
            .map(|value| preview(value).ok_or_else(|| entry.error(PREVIEW)))
            .transpose()?,
        require: match entry.table.get("require").map(Value::as_str) {
            None | Some(Some("any")) => Require::Any,
            Some(Some("human")) => Require::Human,
            Some(_) => return Err(entry.error("require takes \"any\" or \"human\"")),
        },
        who: match entry.table.get("who").map(Value::as_str) {
            None | Some(Some("operator")) => Who::Operator,
            Some(Some("caller")) => Who::Caller,
            Some(Some("not-the-caller")) => Who::NotTheCaller,
            Some(_) => {
                return Err(entry.error("who takes \"operator\", \"caller\" or \"not-the-caller\""));
            }
        },
    })
}

fn patterns(entry: &Entry<'_>, key: &'static str) -> Result<Vec<String>, ConfigError> {
    let patterns = entry.table.get(key).and_then(strings).filter(|patterns| !patterns.is_empty());
    patterns.ok_or_else(|| entry.error(format!("{key} takes a list of names, such as [\"*_delete\"]")))
}

fn optional(entry: &Entry<'_>, key: &'static str) -> Result<Option<String>, ConfigError> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let found = entry.table.get(key).map(text);
    found.map(|text| text.ok_or_else(|| entry.error(format!("{key} takes text in quotes")))).transpose()
}

/// `None`: something in it is not as it should be.
fn preview(value: &Value) -> Option<PreviewEntry> {
    const KEYS: &[&str] = &["tool", "arguments", "revision", "trusted"];
    let table = value.as_table().filter(|table| table.keys().all(|key| KEYS.contains(&key.as_str())))?;
    let arguments = match table.get("arguments") {
        None => Vec::new(),
        Some(arguments) => arguments
            .as_table()?
            .iter()
            .map(|(name, path)| Some((name.clone(), path.as_str()?.to_owned())))
            .collect::<Option<_>>()?,
    };
    let revision = match table.get("revision") {
        None => None,
        Some(path) => Some(path.as_str()?.to_owned()),
    };
    let trusted = table.get("trusted").map_or(Some(false), Value::as_bool)?;
    Some(PreviewEntry { tool: table.get("tool")?.as_str()?.to_owned(), arguments, revision, trusted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ConfirmEntry>, String> {
        let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
        confirms(&file).map_err(|error| error.to_string())
    }

    const WHOLE: &str = "[[confirm]]\ntools = ['*_delete', 'gmail_send']\naction = 'Send e-mail'\naccount = '/account'\n\
         target = '/draftId'\npreview = { tool = 'gmail_get_draft', arguments = { id = '/draftId' }, revision = '/etag' }\n\
         require = 'any'\nwho = 'operator'\n";

    #[test]
    fn every_key_is_read() {
        let [entry] = &read(WHOLE).unwrap()[..] else { panic!() };
        assert_eq!(entry.tools, ["*_delete", "gmail_send"]);
        assert_eq!(entry.action.as_deref(), Some("Send e-mail"));
        assert_eq!((entry.account.as_deref(), entry.target.as_deref()), (Some("/account"), Some("/draftId")));
        let preview = entry.preview.as_ref().unwrap();
        assert_eq!((preview.tool.as_str(), preview.trusted), ("gmail_get_draft", false));
        assert_eq!(preview.arguments, [("id".to_owned(), "/draftId".to_owned())]);
        assert_eq!(preview.revision.as_deref(), Some("/etag"));
        assert_eq!((entry.require, entry.who), (Require::Any, Who::Operator));
        let other = read(
            "[[confirm]]\nannotations = 'destructive'\nexcept = ['x']\nrequire = 'human'\nwho = 'caller'\n\
             [[confirm]]\ntools = ['*']\nwho = 'not-the-caller'\n",
        )
        .unwrap();
        assert_eq!((other[0].tools.len(), other[0].require, other[0].who), (0, Require::Human, Who::Caller));
        assert_eq!((other[1].action.as_ref(), other[1].who), (None, Who::NotTheCaller));
    }

    #[test]
    fn a_wrong_confirm_is_named_with_its_remedy() {
        for (from, to, expected) in [
            (
                "tools = ['*_delete', 'gmail_send']",
                "tools = []",
                "tools takes a list of names, such as [\"*_delete\"]",
            ),
            (
                "tools = ['*_delete', 'gmail_send']\n",
                "",
                "give either tools = [\"*_delete\"] or annotations = \"destructive\"",
            ),
            (
                "account = ",
                "annotations = 'destructive'\naccount = ",
                "give either tools = [\"*_delete\"] or annotations = \"destructive\"",
            ),
            ("'/account'", "7", "account takes text in quotes"),
            ("'any'", "'nobody'", "require takes \"any\" or \"human\""),
            ("'operator'", "true", "who takes \"operator\", \"caller\" or \"not-the-caller\""),
            ("tool = 'gmail_get_draft',", "", PREVIEW),
            ("revision = '/etag'", "revison = '/etag'", PREVIEW),
            ("target = ", "taget = ", "has no key 'taget'; did you mean 'target'?"),
        ] {
            let text = WHOLE.replace(from, to);
            // A key that there is not has its line, everything else that of its table.
            let key = expected.strip_prefix("has no key '").and_then(|rest| rest.split('\'').next());
            let at = key.map_or(0, |key| text.lines().position(|line| line.starts_with(key)).unwrap());
            let error = read(&text).unwrap_err();
            assert_eq!(error, format!("/h.toml:{}, [[confirm]] \"Send e-mail\": {expected}", at + 1));
        }
        let error = read("[[confirm]]\nannotations = 'idempotent'\n").unwrap_err();
        assert_eq!(error, "/h.toml:1, [[confirm]] number 1: annotations takes \"destructive\"");
    }
}
