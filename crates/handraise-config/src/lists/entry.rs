//! One table of a list, and what its keys take.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::{
    error::ConfigError,
    file::{ConfigFile, Place, closest},
    value::{Secret, strings},
};

/// The longest id or name, in bytes.
const LONGEST_NAME: usize = 64;

/// One table of a list.
pub(super) struct Entry<'a> {
    file: &'a ConfigFile,
    /// Its place, such as `agent[0]`.
    key: String,
    list: &'static str,
    shown: String,
    pub(super) table: &'a Table,
}

/// The tables of a list; refuses unknown keys in them.
pub(super) fn entries<'a>(
    file: &'a ConfigFile,
    list: &'static str,
    name_key: &str,
    keys: &[&str],
) -> Result<Vec<Entry<'a>>, ConfigError> {
    let Some(value) = file.list(list) else { return Ok(Vec::new()) };
    let not_a_list = || ConfigError::Entry {
        place: file.place(list),
        list,
        entry: String::new(),
        problem: format!("is a list: write [[{list}]] with two brackets"),
    };
    let items = value.as_array().ok_or_else(not_a_list)?;
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            let table = item.as_table().ok_or_else(not_a_list)?;
            let shown = match table.get(name_key).and_then(Value::as_str) {
                Some(name) => format!("{name:?}"),
                None => format!("number {}", index + 1),
            };
            let entry = Entry { file, key: format!("{list}[{index}]"), list, shown, table };
            if let Some(key) = table.keys().find(|key| !keys.contains(&key.as_str())) {
                let hint = closest(key, keys.iter().copied()).map_or_else(
                    || format!("it takes {}", keys.join(", ")),
                    |key| format!("did you mean '{key}'?"),
                );
                return Err(entry.error_at(key, format!("has no key '{key}'; {hint}")));
            }
            Ok(entry)
        })
        .collect()
}

impl Entry<'_> {
    pub(super) fn error(&self, problem: impl Into<String>) -> ConfigError {
        self.error_in(self.file.place(&self.key), problem)
    }

    /// The same about one of its keys.
    fn error_at(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        self.error_in(self.file.place(&format!("{}.{key}", self.key)), problem)
    }

    fn error_in(&self, place: Place, problem: impl Into<String>) -> ConfigError {
        ConfigError::Entry { place, list: self.list, entry: self.shown.clone(), problem: problem.into() }
    }

    pub(super) fn name(&self, key: &'static str, seen: &mut BTreeSet<String>) -> Result<String, ConfigError> {
        let name = self.table.get(key).and_then(Value::as_str).unwrap_or_default();
        let fits = (1..=LONGEST_NAME).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if !fits {
            return Err(
                self.error(format!("{key} takes 1 to {LONGEST_NAME} letters, digits, '-', '_' or '.'"))
            );
        }
        if !seen.insert(name.to_owned()) {
            return Err(self.error(format!("{key} is taken by an entry before it")));
        }
        Ok(name.to_owned())
    }

    pub(super) fn text(&self, key: &'static str) -> Result<String, ConfigError> {
        let text = self.table.get(key).and_then(Value::as_str).map(str::to_owned);
        text.ok_or_else(|| self.error(format!("{key} is missing, or no text in quotes")))
    }

    pub(super) fn paths(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        let paths = self.table.get(key).and_then(strings);
        paths.ok_or_else(|| self.error(format!("{key} takes a list of JSON pointers, such as [\"/code\"]")))
    }

    pub(super) fn command(&self) -> Result<Vec<String>, ConfigError> {
        let command = self.table.get("command").and_then(strings).filter(|words| {
            words.first().is_some_and(|program| !program.is_empty())
                && words.iter().all(|w| !w.contains('\0'))
        });
        command.ok_or_else(|| {
            self.error("command takes a list: the program, then its arguments, such as [\"npx\", \"-y\", \"some-agent\"]")
        })
    }

    pub(super) fn pairs(&self, key: &'static str) -> Result<BTreeMap<String, Secret>, ConfigError> {
        let Some(value) = self.table.get(key) else { return Ok(BTreeMap::new()) };
        pairs(value)
            .ok_or_else(|| self.error(format!("{key} takes names with text, such as {{ NAME = \"value\" }}")))
    }
}

/// Names with text.
pub(super) fn pairs(value: &Value) -> Option<BTreeMap<String, Secret>> {
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), Secret::new(value.as_str()?)));
    value.as_table()?.iter().map(pair).collect()
}
