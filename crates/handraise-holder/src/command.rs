//! What the inbox asks of a holder's sessions, and what happens in them.

use handraise_api::{
    error::ErrorBody,
    session::{Author, MessageKind},
};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// Something that the inbox wants done with a session.
#[derive(Debug)]
pub enum Command {
    /// Prompt it.
    Prompt {
        /// Which session.
        session_id: String,
        /// The operator's words.
        text: String,
        /// Answered once the prompt is on its way to the agent, not when the turn ends.
        reply: Reply,
    },
    /// Cancel its turn.
    Cancel {
        /// Which session.
        session_id: String,
        /// Answered once the cancellation is on its way.
        reply: Reply,
    },
}

/// The answer to a [`Command`]. Dropped unanswered, the inbox is told that the command was not taken up.
#[derive(Debug)]
pub struct Reply(pub(crate) oneshot::Sender<Result<(), ErrorBody>>);

impl Reply {
    /// Answers: done, or why not (`NOT_FOUND` for a session that is not here).
    pub fn send(self, result: Result<(), ErrorBody>) {
        // The inbox may be gone; then nobody wants to know.
        let _ = self.0.send(result);
    }
}

/// A transcript entry before the holder numbers and dates it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The session.
    pub session_id: String,
    /// What it is.
    pub kind: MessageKind,
    /// Who speaks.
    pub author: Author,
    /// The words.
    pub text: String,
    /// Whether `text` goes on where the entry before it stopped.
    pub continues: bool,
    /// Whether a human is asked for something.
    pub requests_input: bool,
    /// See [`handraise_api::session::Message::metadata`].
    pub metadata: Map<String, Value>,
}
