//! What the shells touch of the machine: clocks, random ids, lines of a pipe, child processes.
//!
//! Nothing here knows a protocol. The crate is the only place of the workspace that reads a clock ([`clock`]),
//! draws random bytes ([`ids`]) or starts a process ([`spawn`] and [`blocking`], under [`supervise`]).

pub mod blocking;
pub mod clock;
pub mod complaints;
mod descendants;
pub mod ends;
mod environment;
pub mod escape;
pub mod frames;
pub mod ids;
pub mod limited;
pub mod lines;
pub mod pipes;
pub mod program;
pub mod signals;
pub mod spawn;
pub mod supervise;
pub mod surrogates;
