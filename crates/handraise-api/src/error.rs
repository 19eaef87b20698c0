//! Errors as operators, scripts and holders see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ask::Settlement;

/// What went wrong, for a program to act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// The holder refused the answers; the ask is still open (422).
    Invalid,
    /// No such ask, or it already ended (404).
    NotFound,
    /// The frame is about another instance's ask (S9).
    NotOwner,
    /// The ask's holder is not connected; nothing was written (503).
    HolderNotConnected,
    /// The answer was written, its verdict is not in (504).
    VerdictUnknown,
    /// An open ask was announced again with other content (S9).
    ContentChanged,
    /// The holder never saw that submission.
    Unseen,
    /// The peer knows no such action.
    UnknownAction,
    /// The connection was superseded by a newer one of the same instance.
    StaleEpoch,
    /// The request could not be read (400).
    BadRequest,
    /// No token, or a bad one (401).
    Unauthorized,
    /// The token's scope does not allow it, or the request comes from a foreign page (403).
    Forbidden,
    /// The `Host` header names something else than this inbox (421).
    Misdirected,
    /// Too many attempts (429).
    RateLimited,
    /// A bound was exceeded (413 on HTTP).
    LimitExceeded,
    /// Our fault; the log says more (500).
    Internal,
}

/// What is wrong with one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// Which question; empty when it is the submission as a whole.
    pub question_id: String,
    /// Which rule, as a stable word such as `maximum`.
    pub rule: String,
    /// What to tell a human: the value, the rule, what would do.
    pub message: String,
}

/// An error with everything a caller may act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, thiserror::Error)]
#[error("{message}")]
pub struct ErrorBody {
    /// For programs.
    pub code: ErrorCode,
    /// For people.
    pub message: String,
    /// Per question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ErrorDetail>,
}

impl ErrorBody {
    /// An error without details.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }
}

/// The body of every failed call: `{"error":{…}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    /// The error.
    pub error: ErrorBody,
}

/// The body of a 404 on an answer: how the ask had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotFoundResponse {
    /// The error.
    pub error: ErrorBody,
    /// How the ask ended, if it existed.
    pub settlement: Option<Settlement>,
    /// Whether the answer was kept as a record of what the operator chose, undelivered.
    pub recorded: bool,
}
