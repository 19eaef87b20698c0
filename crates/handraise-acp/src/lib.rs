//! The Agent Client Protocol as handraise reads and answers it.
//!
//! Everything here turns JSON into values and values into JSON: no socket, no clock, no async. Requests come in
//! as raw `serde_json` trees, because typed structs lose the order of properties and refuse a whole form for one
//! odd property (form.md). What agents do differently is decided once per agent, in [`quirks`].
//!
//! - [`capabilities`]: what `initialize` tells an agent.
//! - [`elicitation`]: `elicitation/create` → questions, or a reason to decline.
//! - [`permission`]: `session/request_permission` → one question, and its outcomes.
//! - [`terminal`]: `terminal/…` → a command to run, and what is answered about it.
//! - [`update`]: `session/update` → transcript entries.
//! - [`quirks`]: one file per agent, with the versions measured.

pub mod capabilities;
pub mod elicitation;
pub mod permission;
pub mod quirks;
pub mod terminal;
pub mod update;

mod read;
#[cfg(test)]
mod testing;

pub use quirks::{Agent, AgentInfo, Quirks};
