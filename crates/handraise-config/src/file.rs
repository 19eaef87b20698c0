//! The config file: TOML text in, known keys out.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::{error::ConfigError, lists, registry::SETTINGS};

/// A parsed config file in which every key is known.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    path: PathBuf,
    table: Table,
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
            message: error.to_string().trim_end().to_owned(),
        })?;
        let mut unknown = Vec::new();
        collect_unknown("", &table, &mut unknown);
        if let Some(key) = unknown.into_iter().next() {
            let suggestion = closest(&key, known_keys());
            return Err(ConfigError::UnknownKey { path, key, suggestion });
        }
        Ok(Self { path, table })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
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
fn collect_unknown(prefix: &str, table: &Table, unknown: &mut Vec<String>) {
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
            _ => unknown.push(key),
        }
    }
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
            "/h.toml sets 'lissten', which is no setting; did you mean 'listen'?",
        );
        check_error(
            "[acp]\nanswer_timout = '5m'",
            "/h.toml sets 'acp.answer_timout', which is no setting; did you mean 'acp.answer_timeout'?",
        );
        check_error(
            "answer_timeout = '5m'",
            "/h.toml sets 'answer_timeout', which is no setting; did you mean 'acp.answer_timeout'?",
        );
        check_error(
            "[[agents]]\nid = 'a'",
            "/h.toml sets 'agents', which is no setting; did you mean 'agent'?",
        );
        check_error(
            "[zzz]\nq = 1",
            "/h.toml sets 'zzz', which is no setting; docs/configuration.md lists the settings",
        );
    }

    #[test]
    fn a_syntax_error_names_file_and_line() {
        let error = ConfigFile::parse("/h.toml", "listen = \n").unwrap_err().to_string();
        assert!(error.starts_with("/h.toml is not valid TOML") && error.contains("line 1"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_file_or_an_error(text in "\\PC{0,200}|([a-z_.]{1,12} ?= ?(1|\"a\"|\\[\\]|\\{\\})\n){0,6}|(\\[{1,2}[a-z.]{1,8}\\]{1,2}\n){0,4}") {
            let _ = ConfigFile::parse("/h.toml", &text);
        }
    }
}
