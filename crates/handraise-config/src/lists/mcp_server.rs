//! `[[mcp_server]]`.

use std::collections::{BTreeMap, BTreeSet};

use toml::Value;

use super::entry::entries;
use crate::{error::ConfigError, file::ConfigFile, value::Secret};

/// `[[mcp_server]]`: an MCP server that agents are told of in `session/new`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerEntry {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// The agent starts it.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// Its environment.
        env: BTreeMap<String, Secret>,
    },
    /// The agent connects to it.
    Http {
        /// Its address.
        url: String,
        /// Headers for every request.
        headers: BTreeMap<String, Secret>,
    },
}

pub(crate) fn mcp_servers(file: &ConfigFile) -> Result<Vec<McpServerEntry>, ConfigError> {
    let mut seen = BTreeSet::new();
    entries(file, "mcp_server", "name", &["name", "command", "env", "url", "headers"])?
        .into_iter()
        .map(|entry| {
            let name = entry.name("name", &mut seen)?;
            let transport = match (entry.table.get("url"), entry.table.get("command")) {
                (None, Some(_)) if !entry.table.contains_key("headers") => {
                    McpTransport::Stdio { command: entry.command()?, env: entry.pairs("env")? }
                }
                (Some(Value::String(url)), None) if !entry.table.contains_key("env") => {
                    if !url.starts_with("https://") && !url.starts_with("http://") {
                        return Err(entry.error("url takes an http:// or https:// URL"));
                    }
                    McpTransport::Http { url: url.clone(), headers: entry.pairs("headers")? }
                }
                _ => return Err(entry.error("give either command and env, or url and headers")),
            };
            Ok(McpServerEntry { name, transport })
        })
        .collect()
}
