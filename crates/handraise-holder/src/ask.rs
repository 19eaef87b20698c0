//! An ask as the asking side hands it in, and why it may be refused.

use std::time::Duration;

use handraise_api::ask::{Confirm, Implementation};
use handraise_core::{
    Mode, OnDeadline, Source,
    form::{AnswerRules, Form},
};

/// What is to be asked. Immutable once opened (S9).
pub struct NewAsk {
    /// Where it comes from.
    pub source: Source,
    /// Form or link.
    pub mode: Mode,
    /// The inbox-wide session it belongs to.
    pub session_id: Option<String>,
    /// The agent's tool call around it.
    pub tool_call_id: Option<String>,
    /// The request's own words.
    pub message: String,
    /// The page to open, in `url` mode.
    pub url: Option<String>,
    /// The guarded call, for a confirm.
    pub confirm: Option<Confirm>,
    /// What the asking side does at the deadline.
    pub on_deadline: Option<OnDeadline>,
    /// Its questions, and how answers to them become content.
    pub form: Form,
    /// Which answers are valid; announced to the inbox (F3, F6).
    pub rules: AnswerRules,
    /// Values that a batch may select (S44): options that hold for this one time. Only for `permission`.
    pub single_use: Vec<String>,
    /// The agent or client, by its own word.
    pub client: Option<Implementation>,
    /// The server behind the question, by its own word.
    pub server: Option<String>,
    /// How long until it is declined; `None`: no deadline.
    pub timeout: Option<Duration>,
}

/// Why an ask was not opened. The asking side is to be declined, with this as the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refused {
    /// The holder has no inbox.
    #[error("no inbox is configured, so nobody can be asked")]
    NoInbox,
    /// The holder is going down.
    #[error("the holder is shutting down")]
    ShuttingDown,
    /// The holder's asks are too many.
    #[error("too many asks are open in this process")]
    OpenAsks,
    /// The holder's asks are too large together.
    #[error("the open asks of this process are too large together")]
    OpenBytes,
    /// The session's asks are too many.
    #[error("too many asks are open in this session")]
    SessionOpenAsks,
    /// The asks come too fast.
    #[error("asks come faster than the inbox takes them")]
    Rate,
    /// The ask does not fit a frame.
    #[error("the ask is too large for one frame of the holder stream")]
    TooLarge,
}
