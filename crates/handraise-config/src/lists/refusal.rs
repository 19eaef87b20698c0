//! `[[refusal]]`.

use std::collections::BTreeSet;

use toml::Value;

use super::entry::entries;
use crate::{error::ConfigError, file::ConfigFile, value::strings};

/// `[[refusal]]`: a tool's refusal that becomes a question. The names of paths and templates are judged by whoever uses
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalEntry {
    /// What it is called. A built-in one of that name is replaced.
    pub name: String,
    /// What it looks like; `None` with `enabled = false`: it becomes no question.
    pub rule: Option<RefusalRule>,
}

/// What a refusal looks like, and what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRule {
    /// The code that it carries.
    pub code: String,
    /// JSON pointers to the code.
    pub code_at: Vec<String>,
    /// JSON pointers to the candidates.
    pub candidates_at: Vec<String>,
    /// A JSON pointer into a candidate, to the value.
    pub value: String,
    /// What a human reads for a candidate.
    pub title: String,
    /// The argument that the choice fills.
    pub argument: String,
    /// What a human is asked.
    pub message: String,
    /// A read-only tool that lists the candidates afresh, and JSON pointers into its result.
    pub candidates_tool: Option<(String, Vec<String>)>,
}

pub(crate) fn refusals(file: &ConfigFile) -> Result<Vec<RefusalEntry>, ConfigError> {
    const KEYS: &[&str] = &[
        "name",
        "enabled",
        "code",
        "code_at",
        "candidates_at",
        "value",
        "title",
        "argument",
        "message",
        "candidates_tool",
    ];
    let mut seen = BTreeSet::new();
    entries(file, "refusal", "name", KEYS)?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let enabled = match entry.table.get("enabled") {
                None => true,
                Some(value) => value.as_bool().ok_or_else(|| entry.error("enabled takes true or false"))?,
            };
            if !enabled {
                return Ok(RefusalEntry { name, rule: None });
            }
            let candidates_tool = match entry.table.get("candidates_tool") {
                None => None,
                Some(value) => Some(candidates_tool(value).ok_or_else(|| {
                    entry.error(
                        "candidates_tool takes { name = \"listDevices\", candidates_at = [\"/devices\"] }",
                    )
                })?),
            };
            let rule = RefusalRule {
                code: entry.text("code")?,
                code_at: entry.paths("code_at")?,
                candidates_at: entry.paths("candidates_at")?,
                value: entry.text("value")?,
                title: entry.text("title")?,
                argument: entry.text("argument")?,
                message: entry.text("message")?,
                candidates_tool,
            };
            Ok(RefusalEntry { name, rule: Some(rule) })
        })
        .collect()
}

fn candidates_tool(value: &Value) -> Option<(String, Vec<String>)> {
    let table = value.as_table().filter(|table| table.len() == 2)?;
    Some((table.get("name")?.as_str()?.to_owned(), strings(table.get("candidates_at")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSAL: &str = "[[refusal]]\nname = 'which_table'\ncode = 'ambiguous'\ncode_at = ['/code']\n\
         candidates_at = ['/tables']\nvalue = '/name'\ntitle = '{name}'\nargument = 'table'\nmessage = 'Which?'\n";

    fn read_refusals(text: &str) -> Result<Vec<RefusalEntry>, String> {
        let file = ConfigFile::parse("/h.toml", text).map_err(|error| error.to_string())?;
        refusals(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn refusals_are_read_in_order_and_one_can_be_switched_off() {
        let text = format!(
            "{REFUSAL}candidates_tool = {{ name = 'list', candidates_at = ['/all'] }}\n\
             [[refusal]]\nname = 'ambiguous_device_target'\nenabled = false\n"
        );
        let read = read_refusals(&text).unwrap();
        assert_eq!(read[0].name, "which_table");
        let rule = read[0].rule.as_ref().unwrap();
        assert_eq!(rule.candidates_tool, Some(("list".to_owned(), vec!["/all".to_owned()])));
        let off = RefusalEntry { name: "ambiguous_device_target".to_owned(), rule: None };
        assert_eq!(read[1], off);
    }

    #[test]
    fn a_wrong_refusal_is_named_with_its_remedy() {
        for (from, to, expected) in [
            ("code = 'ambiguous'\n", "", "code is missing, or no text in quotes"),
            ("['/code']", "'/code'", "code_at takes a list of JSON pointers, such as [\"/code\"]"),
            ("name = 'which_table'", "name = 'which_table'\nenabled = 'no'", "enabled takes true or false"),
            ("argument = ", "argumnet = ", "has no key 'argumnet'; did you mean 'argument'?"),
        ] {
            let text = REFUSAL.replace(from, to);
            // A key that there is not has its line, everything else that of its table.
            let key = expected.strip_prefix("has no key '").and_then(|rest| rest.split('\'').next());
            let at = key.map_or(0, |key| text.lines().position(|line| line.starts_with(key)).unwrap());
            let error = read_refusals(&text).unwrap_err();
            assert_eq!(error, format!("/h.toml:{}, [[refusal]] \"which_table\": {expected}", at + 1));
        }
    }
}
