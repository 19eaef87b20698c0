//! `handraise mcp --listen` in front of the scripted server, as HTTP clients see it.

#[expect(clippy::duplicate_mod, reason = "the same scenarios, with another client")]
#[path = "../gateway/asking.rs"]
mod asking;
mod beside;
mod beyond;
mod bounds;
#[expect(clippy::duplicate_mod, reason = "the same scenarios, with another client")]
#[path = "../gateway/confirming.rs"]
mod confirming;
mod credentials;
mod crossing;
mod ending;
mod eras;
mod guarded;
mod half_closed;
mod headers;
mod hostile;
mod idle_cost;
mod ids;
mod in_front_of_a_url;
mod inbox;
mod modern;
mod over_cut_streams;
mod over_http;
mod plain;
mod sessions;
mod states;
mod subscriptions;
mod transparency;
mod trickle;
mod walls;

use crate::support::{HttpGateway as Gateway, Pair};

const PAIR: Pair = Pair::Stdio;
/// Who calls, as long as no caller is configured.
const PRINCIPAL: &str = "local";
