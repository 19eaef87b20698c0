//! The same questions, to a server that speaks Streamable HTTP and ends every stream of a session after one event.

use crate::support::{Gateway, Pair};

pub(super) const PAIR: Pair = Pair::HttpCut;
pub(super) const PRINCIPAL: &str = "stdio";

#[expect(clippy::duplicate_mod, reason = "one table of tests, for each way to the server")]
#[path = "asking.rs"]
mod asking;
