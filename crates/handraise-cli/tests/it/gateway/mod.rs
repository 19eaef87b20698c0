//! `handraise mcp` in front of the scripted server, as a client sees it.

pub(crate) mod answering;
mod asking;
mod confirm;
mod confirming;
mod ending;
mod example;
pub(crate) mod frames;
mod gone;
pub(crate) mod hostile;
mod inbox;
mod over_cut_streams;
mod over_http;
mod over_two_hops;
mod processes;
pub(crate) mod smuggled;
mod storms;
mod transparency;
mod upstream;

use crate::support::{Gateway, Pair};

const PAIR: Pair = Pair::Stdio;
/// Who calls.
const PRINCIPAL: &str = "stdio";
