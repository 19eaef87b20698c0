//! `[[agent]]`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::entry::entries;
use crate::{error::ConfigError, file::ConfigFile, value::absolute};

/// `[[agent]]`: an agent that `handraise up` starts itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEntry {
    /// What it is called, e.g. `claude-acp`.
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs unless the request says otherwise.
    pub cwd: Option<PathBuf>,
}

pub(crate) fn agents(file: &ConfigFile, home: Option<&Path>) -> Result<Vec<AgentEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    entries(file, "agent", "id", &["id", "command", "cwd"])?
        .into_iter()
        .map(|entry| {
            let id = entry.name("id", &mut seen)?;
            let command = entry.command()?;
            let cwd = match entry.table.get("cwd") {
                None => None,
                Some(value) => {
                    let text = value.as_str().ok_or_else(|| entry.error("cwd takes a path in quotes"))?;
                    Some(absolute(text, home).map_err(|problem| entry.error(format!("cwd: {problem}")))?)
                }
            };
            Ok(AgentEntry { id, command, cwd })
        })
        .collect()
}
