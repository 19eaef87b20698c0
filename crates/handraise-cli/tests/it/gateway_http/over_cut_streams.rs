//! The same questions with HTTP on both sides, where the server ends every stream of a session after one event.

use crate::support::{HttpGateway as Gateway, Pair};

pub(super) const PAIR: Pair = Pair::HttpCut;
pub(super) const PRINCIPAL: &str = "local";

#[expect(clippy::duplicate_mod, reason = "one table of tests, for each way to the server")]
#[path = "../gateway/asking.rs"]
mod asking;
