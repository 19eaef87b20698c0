//! The same questions and confirmations, with HTTP on both sides.

use crate::support::{HttpGateway as Gateway, Pair};

pub(super) const PAIR: Pair = Pair::Http;
pub(super) const PRINCIPAL: &str = "local";

#[expect(clippy::duplicate_mod, reason = "one table of tests, for each way to the server")]
#[path = "../gateway/asking.rs"]
mod asking;
#[expect(clippy::duplicate_mod, reason = "one table of tests, for each way to the server")]
#[path = "../gateway/confirming.rs"]
mod confirming;
