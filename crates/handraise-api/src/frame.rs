//! Frames of the holder stream (acp.md, "Holder stream").
//!
//! Every frame is one JSON text message. A `request` is answered by a `response` with its id; an `event` is not
//! answered. Unknown fields are ignored; an unknown action of a request is answered with `UNKNOWN_ACTION`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    ask::{Answer, AskContent, Implementation},
    error::ErrorBody,
    session::{Message, SessionState},
    words::{HolderKind, Outcome, Provenance, Rail, WireAction},
};

/// The largest frame, in bytes of JSON text.
pub const MAX_FRAME_BYTES: usize = 8 * 1024 * 1024;
/// The version of this protocol.
pub const PROTOCOL: u32 = 1;

/// Names of the actions.
pub mod action {
    /// Holder: who it is. A request; answered by [`WELCOME`].
    pub const HELLO: &str = "holder.hello";
    /// Inbox: the response to [`HELLO`].
    pub const WELCOME: &str = "holder.welcome";
    /// Holder: its open asks and unacknowledged settlements, in parts. Requests.
    pub const SNAPSHOT: &str = "asks.snapshot";
    /// Holder: a new ask. A request.
    pub const ASK_OPENED: &str = "ask.opened";
    /// Holder: an ask ended, for whatever reason (F7). A request, repeated until answered.
    pub const ASK_SETTLED: &str = "ask.settled";
    /// Inbox: an operator's answer (AC-20b). A request.
    pub const RESPOND: &str = "agent.elicitations.respond";
    /// Inbox: an operator's answer to a permission request. A request.
    pub const RESPOND_PERMISSION: &str = "agent.permissions.respond";
    /// Inbox: several answers, all or none (S44). A request.
    pub const RESPOND_BATCH: &str = "asks.respond_batch";
    /// Inbox: what became of a submission. A request.
    pub const VERDICT: &str = "agent.elicitations.verdict";
    /// Inbox: prompt a session. A request.
    pub const SESSION_PROMPT: &str = "session.prompt";
    /// Inbox: cancel a session's turn. A request.
    pub const SESSION_CANCEL: &str = "session.cancel";
    /// Inbox: an operator has set a runtime flag; the payload is [`Flags`](super::Flags). An event.
    pub const FLAGS_CHANGED: &str = "flags.changed";
    /// Inbox: the first operator came, or the last one left. An event.
    pub const OPERATORS_PRESENCE: &str = "operators.presence";
    /// Holder: a session began or changed. An event.
    pub const SESSION_UPDATED: &str = "session.updated";
    /// Holder: how many asks it has declined itself. An event.
    pub const ASKS_DECLINED: &str = "asks.declined";
    /// Holder: which rails were tried. A request.
    pub const RECORDS_APPEND: &str = "records.append";
    /// Holder: a transcript entry. A request.
    pub const SESSION_MESSAGE: &str = "session.message";
}

/// One frame.
#[derive(Debug, Serialize, Deserialize)]
pub struct Frame {
    /// Pairs a response with its request; absent on events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: FrameKind,
    /// What it is about.
    pub action: String,
    /// The action's payload, read once the action is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
    /// Set on a failed response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameKind {
    /// Wants a response.
    Request,
    /// Answers a request.
    Response,
    /// Wants nothing.
    Event,
}

/// Payload of `holder.hello`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What kind of holder.
    pub kind: HolderKind,
    /// The instance it was before, when it reconnects.
    #[serde(default)]
    pub instance: Option<String>,
    /// Proves that it is that instance (S9).
    #[serde(default)]
    pub resume_secret: Option<String>,
    /// handraise's version.
    pub version: String,
    /// The machine's name.
    pub host: String,
}

/// Payload of `holder.welcome`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Welcome {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The instance that asks of this connection belong to.
    pub instance: String,
    /// Given once, with a new instance; shown again on reconnect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_secret: Option<String>,
    /// Increases with every connection of the instance.
    pub epoch: u64,
    /// The effective runtime flags (F5).
    pub flags: Flags,
    /// What this inbox takes from one holder.
    pub limits: Limits,
    /// Whether somebody is there who could answer; an inbox of an earlier version does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operators: Option<Presence>,
}

/// Whether operators have a surface before them: an event stream of a page or token that may answer, which is what the
/// page, `handraise inbox watch` and the picker hold open (mcp.md, section 7). Part of [`Welcome`], and payload of
/// `operators.presence`, which follows whenever [`live`](Self::live) changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Whether a surface is live now.
    pub live: bool,
    /// How long ago the last one was live, in milliseconds of the inbox's boot clock. Absent while one is, and where none
    /// has been since the inbox started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ago_ms: Option<u64>,
}

/// Effective runtime flags, snapshotted by a holder per agent start or call. Part of [`Welcome`], and payload of
/// `flags.changed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    /// `features.acpElicitation`.
    pub acp_elicitation: bool,
    /// `elicitation`.
    pub elicitation: bool,
    /// `profiles.adaptive`.
    pub adaptive_profiles: bool,
}

/// What an inbox takes from one holder; beyond, asks are declined by the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open asks in all.
    pub open_asks: u32,
    /// Bytes of open asks in all.
    pub open_bytes: u64,
    /// Open asks of one session.
    pub session_open_asks: u32,
    /// Parked asks of one session.
    pub session_parked_asks: u32,
    /// Asks of one holder per second.
    pub asks_per_second: u32,
}

/// An ask as its holder announces it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnouncedAsk {
    /// Minted by the holder (UUIDv7).
    pub id: String,
    /// How long it is still open; absent: no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// How long an answer is still kept for the next identical call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_ms: Option<u64>,
    /// The agent or client, by its own word.
    #[serde(default)]
    pub client: Option<Implementation>,
    /// The server behind the question, by its own word.
    #[serde(default)]
    pub server: Option<String>,
    /// What is asked.
    #[serde(flatten)]
    pub content: AskContent,
}

/// Payload of `ask.opened`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskOpened {
    /// The ask.
    pub ask: AnnouncedAsk,
}

/// Payload of `ask.settled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskSettled {
    /// Which ask.
    pub pending_id: String,
    /// How it ended.
    pub settlement: HolderSettlement,
    /// The submission that won, when one did: outcome's provenance and name then come from the inbox's own row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission_id: Option<String>,
}

/// The holder's word on how an ask ended. It can never say `human` (S15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HolderSettlement {
    /// How.
    pub outcome: Outcome,
    /// `client`, `not_shown` or `system`.
    pub provenance: Provenance,
    /// How it reached a human.
    pub rail: Rail,
    /// What the asking side was sent.
    pub wire: Option<WireAction>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long ago, in milliseconds.
    #[serde(default)]
    pub ago_ms: u64,
}

/// Payload of one part of `asks.snapshot`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotPart {
    /// Counts from 0.
    pub seq: u32,
    /// Whether it is the last part.
    pub last: bool,
    /// Open asks.
    pub asks: Vec<AnnouncedAsk>,
    /// Settlements that no inbox has acknowledged.
    #[serde(default)]
    pub settlements: Vec<AskSettled>,
}

/// Payload of a successful response to a part of `asks.snapshot`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTaken {
    /// Always `true`: the part as a whole is taken.
    pub success: bool,
    /// Asks of the part that are not taken, and never will be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedAsk>,
}

/// An ask that the inbox does not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedAsk {
    /// Which.
    pub pending_id: String,
    /// Why, as if it had been announced by itself.
    pub error: ErrorBody,
}

/// Payload of `agent.elicitations.respond`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Respond {
    /// Which ask.
    pub pending_id: String,
    /// Minted by the inbox and committed before it is forwarded.
    pub submission_id: String,
    /// One entry per answered question.
    pub answers: Vec<Answer>,
    /// Set by the Skip control.
    pub rejected: bool,
    /// Why it was skipped.
    #[serde(default)]
    pub reject_reason: String,
    /// Who.
    pub by: String,
    /// `human` or `client`.
    pub provenance: Provenance,
}

/// Payload of `agent.permissions.respond`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RespondPermission {
    /// Which ask.
    pub pending_id: String,
    /// Minted by the inbox and committed before it is forwarded.
    pub submission_id: String,
    /// The option picked; `null` skips.
    pub option_id: Option<String>,
    /// Who.
    pub by: String,
    /// `human` or `client`.
    pub provenance: Provenance,
}

/// Payload of `asks.respond_batch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RespondBatch {
    /// All delivered, or none.
    pub submissions: Vec<Respond>,
}

/// Payload of `agent.elicitations.verdict`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictQuery {
    /// Which ask.
    pub pending_id: String,
    /// Which submission.
    pub submission_id: String,
}

/// Payload of a successful response to a submission, a verdict query, or an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Success {
    /// Always `true`.
    pub success: bool,
}

/// Payload of a `NOT_FOUND` response to a submission or verdict query: beside the error, how the ask ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// How it ended, if the holder still knows.
    pub ended: Option<AskSettled>,
}

/// Payload of `asks.declined`: asks that were declined without reaching anyone, since the last time that it was told.
/// With the stream a count may be lost, and none is told twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsksDeclined {
    /// How many, by reason: words of [`DECLINE_REASONS`].
    pub counts: BTreeMap<String, u64>,
}

/// Every reason for which an ask is declined without reaching anyone (acp.md; form.md, "Size limits"; AC-16 to AC-20).
pub const DECLINE_REASONS: &[&str] = &[
    // The request is none that can be asked here.
    "off",
    "url_mode",
    "unknown_mode",
    "request_scope",
    "both_scopes",
    "no_scope",
    "no_session",
    "malformed",
    "too_many_options",
    // Nothing can be made of its form.
    "no_questions",
    "not_an_object",
    "schema_too_large",
    "too_deep",
    "too_many_properties",
    "too_many_choices",
    "message_too_large",
    "choice_count",
    "duplicate_question",
    // The holder takes no more.
    "no_inbox",
    "shutting_down",
    "known_id",
    "open_asks",
    "open_bytes",
    "session_open_asks",
    "session_parked_asks",
    "rate",
    "too_large",
];

/// Payload of `session.updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUpdated {
    /// Minted by the holder; inbox-wide.
    pub session_id: String,
    /// The agent's configured id.
    pub agent: String,
    /// What it is called.
    pub title: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// Whether a turn is under way.
    pub state: SessionState,
    /// How the last turn ended.
    pub stop_reason: Option<String>,
    /// Whether tool calls go on although no turn is under way.
    #[serde(default)]
    pub background: bool,
}

/// Payload of `session.message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionMessage {
    /// The entry. An entry whose `seq` the inbox has is acknowledged and ignored.
    pub message: Message,
}

/// Payload of `session.prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPrompt {
    /// Which session.
    pub session_id: String,
    /// The operator's words.
    pub text: String,
}

/// Payload of `session.cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCancel {
    /// Which session.
    pub session_id: String,
}
