//! The side that dials: an MCP server at a URL.
//!
//! A [`Link`] is one client's way to the server: frames go in, frames come out. Each request becomes a POST of its own.
//! Its era is its own: one that describes itself carries the headers that mirror it and needs no session; `initialize`
//! opens a session, which later requests belong to, and whose end is told to the server.
//!
//! - `target`: the server's URL and the headers that every request carries.
//! - `dial`: connections, with TLS.
//! - `server`: what all links share; `link`: one of them, from outside.
//! - `desk`: the order of a client's frames, its open requests; `session`: what they belong to at the server.
//! - `note`: what has no answer of its own, and `lanes`: how much of that is on its way.
//! - `context`: what these requests share, and tell the desk.
//! - `exchange`: one request and its answer.
//! - `answer`, `events`: what an answer is, as one body or as a stream.
//! - `room`: how much of all answers is held at once.
//! - `tools`: what a tool wants to have in headers.
//! - `listen`: the stream on which a legacy server speaks by itself.
//! - `stdio`: the envelope between a client on stdin and stdout and a link; `stdin`, `stdout`: its two ways.

mod answer;
mod context;
mod desk;
mod dial;
mod events;
mod exchange;
mod failure;
mod lanes;
mod link;
mod listen;
mod note;
mod room;
mod server;
mod session;
mod stdin;
mod stdio;
mod stdout;
mod target;
mod tools;

pub(crate) use link::Beside;
pub use link::{Arrival, Arrivals, Link};
pub(crate) use room::Room;
pub use server::Server;
pub use stdio::{Signal, Stdio, run};
pub use target::{Target, TargetError};
