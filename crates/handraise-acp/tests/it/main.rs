//! Conformance with real agents, by what their shipped builders produced.
//!
//! `tests/data/claude-agent-acp/VERSION.json` holds the output of every exported builder of that version of
//! `@agentclientprotocol/claude-agent-acp`, captured by calling them on the inputs that stand beside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop where a fixture is not as captured")]

mod bridge;
mod builders;
mod intents;
mod results;
