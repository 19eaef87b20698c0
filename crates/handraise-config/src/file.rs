//! The config file: TOML text in, known keys out.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use toml::{
    Table, Value,
    de::{DeTable, DeValue},
};

use crate::{error::ConfigError, lists, registry::SETTINGS};

/// Where something stands in a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// A parsed config file in which every key is known.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    path: PathBuf,
    table: Table,
    /// The line of each key, and of each `key[0]` of a list.
    lines: BTreeMap<String, usize>,
}

impl ConfigFile {
    /// Reads the file's text. Values are judged later, by the settings that take them.
    ///
    /// # Errors
    /// When it is no TOML, or sets a key that is no setting; the error names the setting it looks like.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self, ConfigError> {
        let path = path.into();
        let table: Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
            path: path.clone(),
            message: syntax(&error, text),
        })?;
        let mut lines = BTreeMap::new();
        if let Ok(spanned) = DeTable::parse(text) {
            collect_lines("", spanned.get_ref(), text, &mut lines);
        }
        let file = Self { path, table, lines };
        let mut unknown = Vec::new();
        collect_unknown("", &file.table, &mut unknown);
        if let Some((key, value)) = unknown.into_iter().next() {
            let suggestion = match value {
                Value::Table(_) => closest(&key, known_tables().chain(known_keys())),
                _ => closest(&key, known_keys()),
            };
            return Err(ConfigError::UnknownKey { place: file.place(&key), key, suggestion });
        }
        Ok(file)
    }

    /// Where a key stands, or an entry such as `agent[0]`.
    pub(crate) fn place(&self, key: &str) -> Place {
        Place { path: self.path.clone(), line: self.lines.get(key).copied() }
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings of this file that nobody else should read: secrets, and what proves who calls.
    pub fn secrets(&self) -> Vec<String> {
        let secret = SETTINGS.iter().filter(|setting| setting.is_secret).map(|setting| setting.key);
        let tables = lists::SECRET_TABLES.iter().copied();
        let alone = secret.chain(tables).filter(|key| self.value(key).is_some()).map(str::to_owned);
        let has = |list: &str, key: &str| {
            let entries = self.list(list).and_then(Value::as_array).into_iter().flatten();
            entries.filter_map(Value::as_table).any(|entry| entry.contains_key(key))
        };
        let listed = lists::SECRET_KEYS.iter().filter(|(list, key)| has(list, key));
        alone.chain(listed.map(|(list, key)| format!("[[{list}]] {key}"))).collect()
    }

    /// The value at a setting's key.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        let mut tables = key.split('.');
        let mut value = self.table.get(tables.next()?)?;
        for part in tables {
            value = value.as_table()?.get(part)?;
        }
        Some(value)
    }

    /// The value of a list such as `[[agent]]`.
    pub(crate) fn list(&self, name: &str) -> Option<&Value> {
        self.table.get(name)
    }
}

/// Collects the keys that are neither a setting, nor a table that holds one, nor a list.
fn collect_unknown<'a>(prefix: &str, table: &'a Table, unknown: &mut Vec<(String, &'a Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let is_list = prefix.is_empty() && lists::NAMES.contains(&name.as_str());
        if is_list || lists::TABLES.contains(&&*key) || SETTINGS.iter().any(|setting| setting.key == key) {
            continue;
        }
        let below = format!("{key}.");
        match value {
            Value::Table(inner) if known_keys().any(|known| known.starts_with(&below)) => {
                collect_unknown(&key, inner, unknown);
            }
            _ => unknown.push((key, value)),
        }
    }
}

/// The parser's words with line, column and key. The line itself is not told: its value may be a secret (S33), and a
/// missing quote makes anything part of it.
fn syntax(error: &toml::de::Error, text: &str) -> String {
    let words = match error.message() {
        words if words.contains(" as i128") || words.contains(" as u128") => {
            format!("a number is too large; whole numbers go from {} to {}", i64::MIN, i64::MAX)
        }
        words => words.to_owned(),
    };
    let Some(at) = error.span().map(|span| span.start) else { return words };
    let before = text.get(..at).unwrap_or(text);
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[begin..].chars().count() + 1);
    match key(text[begin..].lines().next().unwrap_or_default()) {
        Some(key) => format!("line {line}, column {column}, at '{key}': {words}"),
        None => format!("line {line}, column {column}: {words}"),
    }
}

/// The setting that a line sets, as it is written there; what is none may be a part of some secret.
fn key(line: &str) -> Option<&str> {
    let key = line.split_once('=')?.0.trim();
    known_keys().any(|known| known == key || known.rsplit('.').next() == Some(key)).then_some(key)
}

fn collect_lines(prefix: &str, table: &DeTable<'_>, text: &str, lines: &mut BTreeMap<String, usize>) {
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    for (name, value) in table {
        let name_of = name.get_ref();
        let key = if prefix.is_empty() { name_of.to_string() } else { format!("{prefix}.{name_of}") };
        lines.insert(key.clone(), line(name.span().start));
        match value.get_ref() {
            DeValue::Table(inner) => collect_lines(&key, inner, text, lines),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let key = format!("{key}[{index}]");
                    lines.insert(key.clone(), line(item.span().start));
                    if let DeValue::Table(inner) = item.get_ref() {
                        collect_lines(&key, inner, text, lines);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Every table that holds a setting.
fn known_tables() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter_map(|setting| setting.key.rsplit_once('.')).map(|(table, _)| table)
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.key).chain(lists::NAMES.iter().chain(lists::TABLES).copied())
}

/// The known name that `name` most looks like, if any looks like it at all.
pub(crate) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    const ALIKE: f64 = 0.8;
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    known
        .map(|key| {
            // A key in the wrong table is as likely as a misspelt one.
            let whole = strsim::jaro_winkler(&name.to_ascii_lowercase(), &key.to_ascii_lowercase());
            let part = strsim::jaro_winkler(&last(name), &last(key));
            (whole.max(part), key)
        })
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, key)| key.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = ConfigFile::parse("/h.toml", text).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_says_what_was_meant() {
        check_error(
            "lissten = '127.0.0.1:1'",
            "/h.toml:1 sets 'lissten', which is no setting; did you mean 'listen'?",
        );
        check_error(
            "[acp]\nanswer_timout = '5m'",
            "/h.toml:2 sets 'acp.answer_timout', which is no setting; did you mean 'acp.answer_timeout'?",
        );
        check_error(
            "answer_timeout = '5m'",
            "/h.toml:1 sets 'answer_timeout', which is no setting; did you mean 'acp.answer_timeout'?",
        );
        check_error(
            "[[agents]]\nid = 'a'",
            "/h.toml:1 sets 'agents', which is no setting; did you mean 'agent'?",
        );
        check_error(
            "[zzz]\nq = 1",
            "/h.toml:1 sets 'zzz', which is no setting; docs/configuration.md lists the settings",
        );
    }

    #[test]
    fn a_table_that_there_is_not_is_told_of_a_table() {
        check_error(
            "\n\n[limit]\nasks = 1",
            "/h.toml:3 sets 'limit', which is no setting; did you mean 'limits'?",
        );
        check_error("[asks]\nwait = '1m'", "/h.toml:1 sets 'asks', which is no setting; did you mean 'ask'?");
    }

    #[test]
    fn secrets_of_a_file_are_known_by_name() {
        let secrets = |text: &str| ConfigFile::parse("/h.toml", text).unwrap().secrets();
        let none = "listen = '127.0.0.1:1'\n[[caller]]\nname = 'a'\n[[mcp_server]]\nname = 'b'\nurl = 'c'\n";
        assert_eq!(secrets(none), [""; 0]);
        let all = "token = 'a'\nstate_secret = 'b'\ndatabase_url = 'c'\nupstream.headers = { Authorization = 'd' }\n\
             [[caller]]\nname = 'e'\n[[caller]]\ntoken_hash = 'f'\n\
             [[mcp_server]]\nenv = {}\n[[mcp_server]]\nheaders = {}\n";
        let mut found = secrets(all);
        found.sort();
        let expected = [
            "[[caller]] token_hash",
            "[[mcp_server]] env",
            "[[mcp_server]] headers",
            "database_url",
            "state_secret",
            "token",
            "upstream.headers",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_number_that_fits_nothing_is_told_what_does() {
        let error = ConfigFile::parse("/h.toml", "[mcp]\nsessions = 99999999999999999999").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("line 2") && error.contains("to 9223372036854775807"), "{error}");
        assert!(!error.contains("128"), "{error}");
    }

    #[test]
    fn a_syntax_error_names_file_line_and_setting() {
        check_error(
            "listen = 'a\nb = 1",
            "/h.toml is not valid TOML: line 1, column 12, at 'listen': invalid literal string, expected `'`",
        );
        check_error(
            "\nlisten",
            "/h.toml is not valid TOML: line 2, column 7: key with no value, expected `=`",
        );
        let large =
            ConfigFile::parse("/h.toml", "[mcp]\nsessions = 99999999999999999999").unwrap_err().to_string();
        assert!(large.contains("line 2, column 12, at 'sessions'"), "{large}");
    }

    #[test]
    fn s33_a_syntax_error_quotes_nothing_that_may_be_a_secret() {
        for text in [
            "[upstream]\nheaders = { Authorization = \"Bearer s3cr3t }",
            "state_secret = s3cr3t-and-more",
            "token = 12abs3cr3t",
            "token = \"\\qs3cr3t\"",
            "token = 0x1s3cr3t",
            "token = 1979-05-27T99:s3cr3t",
            "token = \"\"\"\ns3cr3t=\n\\q\"\"\"",
            "token = \"\"\"\ns3cr3t=\\q\"\"\"",
            "token = '''s3cr3t",
            "s3cr3t",
            "\"s3cr3t",
            "a = [1, s3cr3t",
        ] {
            let error = ConfigFile::parse("/h.toml", text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_file_or_an_error(text in "\\PC{0,200}|([a-z_.]{1,12} ?= ?(1|\"a\"|\\[\\]|\\{\\})\n){0,6}|(\\[{1,2}[a-z.]{1,8}\\]{1,2}\n){0,4}") {
            let _ = ConfigFile::parse("/h.toml", &text);
        }
    }
}
