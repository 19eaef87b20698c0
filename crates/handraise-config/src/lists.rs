//! The lists of the config file: `[[agent]]`, `[[caller]]`, `[[confirm]]`, `[[mcp_server]]` and `[[refusal]]`, and tables
//! with names of the user's own.

mod agent;
mod caller;
mod confirm;
mod entry;
mod mcp_server;
mod refusal;
#[cfg(test)]
mod tests;
mod upstream;

pub use agent::AgentEntry;
pub(crate) use agent::agents;
pub use caller::CallerEntry;
pub(crate) use caller::callers;
pub(crate) use confirm::confirms;
pub use confirm::{ConfirmEntry, PreviewEntry, Require, Who};
pub(crate) use mcp_server::mcp_servers;
pub use mcp_server::{McpServerEntry, McpTransport};
pub(crate) use refusal::refusals;
pub use refusal::{RefusalEntry, RefusalRule};
pub(crate) use upstream::upstream_headers;

/// The lists that a config file may have.
pub(crate) const NAMES: &[&str] = &["agent", "caller", "confirm", "mcp_server", "refusal"];

/// Tables of the config file whose keys are names of the user's own.
pub(crate) const TABLES: &[&str] = &[UPSTREAM_HEADERS];

/// Those of them that may hold secrets.
pub(crate) const SECRET_TABLES: &[&str] = &[UPSTREAM_HEADERS];

/// Keys of lists that may hold secrets, or what proves who calls.
pub(crate) const SECRET_KEYS: &[(&str, &str)] =
    &[("caller", "token_hash"), ("mcp_server", "env"), ("mcp_server", "headers")];

const UPSTREAM_HEADERS: &str = "upstream.headers";
