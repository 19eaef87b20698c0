//! The same questions, through `handraise mcp --listen --upstream` in front of a server that speaks Streamable HTTP.

use crate::support::{Gateway, Pair};

pub(super) const PAIR: Pair = Pair::HttpTwice;
pub(super) const PRINCIPAL: &str = "stdio";

#[expect(clippy::duplicate_mod, reason = "one table of tests, for each way to the server")]
#[path = "asking.rs"]
mod asking;
