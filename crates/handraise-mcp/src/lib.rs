//! The Model Context Protocol as handraise reads it, and the envelope around a tool call.
//!
//! Everything here is pure: frames, both clocks' readings and random bytes come in, frames and records come out. The
//! gateway and the library drive the same code.
//!
//! - [`frame`]: one JSON-RPC frame, read where it stands.
//! - [`envelope`]: the state of one client connection in front of one upstream.
//! - [`http`]: what Streamable HTTP adds to frames: mirrored headers, streams of events.
//! - [`declared`]: who is behind a request, and what it can be asked with.
//! - [`refusal`]: which results are a refusal that offers candidates, and what it offers.
//! - [`question`]: those candidates as a question to the client, and the client's answer.
//! - [`canonical`]: the canonical text of arguments, for what is bound to a call.
//! - [`seal`]: states that travel through the client and come back.
//! - [`confirm`]: which calls are guarded, and what confirms them.
//! - [`memory`]: what was declined on a connection.
//! - [`rails`]: in which order the ways to a human are tried.
//! - [`record`]: one line for every rail that was tried.

pub mod canonical;
pub mod confirm;
pub mod declared;
pub mod envelope;
pub mod frame;
pub mod http;
pub mod memory;
pub mod pointer;
pub mod question;
pub mod rails;
pub mod record;
pub mod refusal;
pub mod seal;

mod now;
mod spelled;
mod visible;

pub use envelope::{Caller, Envelope, EnvelopeConfig, Limits, Out, Process, Reached, Route, Spend};
pub use frame::{ClientFrame, Id, Malformed, NoFrame, Problem, RequestId, ServerFrame};
pub use now::Now;
