//! Live events of `GET /events`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ask::Ask, session::Session};

/// Event name: replaces everything the page knows; data is [`Snapshot`].
pub const SNAPSHOT: &str = "snapshot";
/// Event name: a new ask; data is [`Ask`].
pub const ASK_OPENED: &str = "ask.opened";
/// Event name: an ask changed; data is [`Ask`].
pub const ASK_UPDATED: &str = "ask.updated";
/// Event name: an ask ended; data is [`Ask`].
pub const ASK_SETTLED: &str = "ask.settled";
/// Event name: data is [`Session`].
pub const SESSION_UPDATED: &str = "session.updated";
/// Event name: data is [`crate::session::Message`].
pub const SESSION_MESSAGE: &str = "session.message";
/// Event name: a human is asked for, exactly once per ask (F9); data is [`Ask`].
pub const CLARIFICATION_REQUESTED: &str = "session.clarification_requested";

/// Where things stand when a stream begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// The first page of open asks, in the order of `GET /asks?state=open`.
    pub asks: Vec<Ask>,
    /// How many asks are open in all.
    pub open: u64,
    /// Passed as `cursor` to `GET /asks?state=open` for those that follow.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// Sessions that have not ended, and the latest that have.
    pub sessions: Vec<Session>,
}
