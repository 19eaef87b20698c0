//! The same questions, to a server that speaks Streamable HTTP.

use crate::support::Pair;

pub(super) const PAIR: Pair = Pair::Http;

#[path = "asking.rs"]
mod asking;
