//! The envelope: one client connection in front of one upstream.
//!
//! # The contract: one input, then drain
//!
//! The owner of an [`Envelope`] brings it one input at a time: a frame of either side, the end of either side, or the
//! time. Every input may append [`Out`] values, which the owner carries out **in order** before it brings the next
//! input. A frame's input also says with a [`Route`] what becomes of that very frame: it goes on as it is, **after**
//! the outputs, or it goes nowhere. The envelope never writes a frame anew that may go on as it is.
//!
//! ```text
//!   client ── ClientFrame::read ──▶ client_frame ──▶ Route + Out* ──▶ upstream, client
//!   upstream ── Process::read_server_frame ──▶ upstream_frame ──▶ Route + Out* ──▶ client, upstream
//!   timer ── next_deadline() ──▶ tick ──▶ Out*
//! ```
//!
//! Reading a frame needs no envelope, so an owner that shares one among threads reads outside its lock, and holds the
//! lock from the input until its outputs are queued in order. After every input, [`Envelope::next_deadline`] may have
//! changed.
//!
//! There is no clock and no randomness in here: [`Now`] comes with every input, and unguessable ids are derived from
//! the seed that the owner draws once. A frame that is not [`ClientFrame`] is answered with
//! [`Malformed::reply`](crate::frame::Malformed::reply), and is no input.
//!
//! # What it does
//!
//! It knows which requests of the client are open, so that each of them is answered once, also when the upstream dies.

mod process;

use std::sync::Arc;

use handraise_core::Moment;

use crate::Now;
use crate::frame::reply::{self, INTERNAL};
use crate::frame::{ById, ClientFrame, Id, RequestId, ServerFrame, Shape};

use crate::record::Record;

pub use process::{EnvelopeConfig, Limits, Process};

/// Who sent a frame: what states are bound to (S10). Never taken from the frame itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The caller's configured name, or the connection.
    pub principal: String,
    /// The session header of an HTTP request; stdio has none.
    pub session: Option<String>,
}

/// What becomes of the frame that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Route {
    /// It goes to the other side, byte for byte, after the outputs.
    Forward,
    /// It goes nowhere: the envelope has dealt with it.
    Consumed,
}

/// What the owner does next. Frames are complete JSON texts without a line end.
#[derive(Debug, Clone, PartialEq)]
pub enum Out {
    /// Send a frame to the client.
    ToClient {
        /// The call that the frame belongs to: its response, or a question on its behalf. An HTTP owner sends it on
        /// the stream of that call.
        for_call: Option<RequestId>,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Send a frame to the upstream.
    ToUpstream(Vec<u8>),
    /// Log the record, and tell the inbox.
    Record(Record),
}

/// The state of one client connection in front of one upstream.
#[derive(Debug)]
pub struct Envelope {
    process: Arc<Process>,
    open: ById<Open>,
    /// How the upstream ended.
    ended: Option<String>,
}

/// A request of the client that has no answer yet.
#[derive(Debug)]
struct Open {
    id: RequestId,
}

impl Envelope {
    /// A connection on which nothing has happened. `seed` is fresh randomness: ids are derived from it.
    pub fn new(process: Arc<Process>, _seed: [u8; 32]) -> Self {
        Self { process, open: ById::default(), ended: None }
    }

    /// Takes a frame of the client.
    pub fn client_frame(
        &mut self,
        frame: &ClientFrame<'_>,
        _caller: &Arc<Caller>,
        _now: Now,
        out: &mut Vec<Out>,
    ) -> Route {
        match (frame.method(), frame.id()) {
            (Some(_), Some(id)) => self.request(id, out),
            (Some("notifications/cancelled"), None) => self.cancelled(frame),
            _ => Route::Forward,
        }
    }

    fn request(&mut self, id: Id<'_>, out: &mut Vec<Out>) -> Route {
        if let Some(status) = &self.ended {
            out.push(refused(id.to_owned(), &ended_message(status)));
            return Route::Consumed;
        }
        if self.open.len() >= self.process.config.limits.open_requests {
            out.push(refused(id.to_owned(), "too many requests of this client are open"));
            return Route::Consumed;
        }
        self.open.insert(id, Open { id: id.to_owned() });
        Route::Forward
    }

    /// Takes a cancellation. One that names no open request is late, and means nothing to us.
    fn cancelled(&mut self, frame: &ClientFrame<'_>) -> Route {
        if let Some(id) = frame.param_named("requestId").and_then(Id::parse) {
            self.open.remove(id);
        }
        Route::Forward
    }

    /// Takes a frame of the upstream.
    pub fn upstream_frame(&mut self, frame: &ServerFrame<'_>, _now: Now, _out: &mut Vec<Out>) -> Route {
        if let Shape::Response { id, .. } = &frame.shape {
            self.open.remove(*id);
        }
        Route::Forward
    }

    /// Takes the time: settles what has waited long enough.
    pub fn tick(&mut self, _now: Now, _out: &mut Vec<Out>) {}

    /// When [`Self::tick`] is due. It may change with every input.
    pub fn next_deadline(&self) -> Option<Moment> {
        None
    }

    /// The client sends nothing more. Open requests stay open: their answers may still be delivered.
    pub fn client_closed(&mut self, _now: Now, _out: &mut Vec<Out>) {}

    /// The upstream is gone: every open request is answered with an error that names `status`, and so is every later
    /// one. `status` is shown to the client: it says how the process ended, and nothing that the process wrote (S33).
    pub fn upstream_ended(&mut self, status: &str, _now: Now, out: &mut Vec<Out>) {
        let message = ended_message(status);
        out.extend(self.open.take().map(|open| refused(open.id, &message)));
        self.ended = Some(status.to_owned());
    }

    /// How many requests of the client have no answer yet.
    pub fn open_requests(&self) -> usize {
        self.open.len()
    }
}

fn ended_message(status: &str) -> String {
    format!("the MCP server ended: {status}")
}

fn refused(id: RequestId, message: &str) -> Out {
    let frame = reply::error(id.raw(), INTERNAL, message, None);
    Out::ToClient { for_call: Some(id), frame }
}

#[cfg(test)]
mod tests;
