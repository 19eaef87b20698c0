//! `handraise mcp --listen` in front of the scripted server, as HTTP clients see it.

#[expect(clippy::duplicate_mod, reason = "the same scenarios, with another client")]
#[path = "../gateway/asking.rs"]
mod asking;
mod bounds;
mod crossing;
mod modern;
mod sessions;
mod transparency;
mod walls;

use crate::support::{HttpGateway as Gateway, Pair};

const PAIR: Pair = Pair::Stdio;
