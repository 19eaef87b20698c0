//! What was refused because of who said it (S9, S16).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Rises with time; some numbers may be missing.
    pub id: u64,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What, as `handraise_refused_total` counts it: `not_owner`, `content_changed`, `stale_epoch`, `stray_responses`,
    /// `answerers`.
    pub what: String,
    /// The id of the token that it came with.
    pub token: String,
    /// That token's name, also when it has been revoked since.
    pub token_name: String,
    /// The holder that said it, where one did.
    #[schema(required)]
    pub instance: Option<String>,
    /// The id of what it was about, where it named anything; by the word of whoever was refused.
    #[schema(required)]
    pub about: Option<String>,
}

/// `GET /audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The latest first.
    pub entries: Vec<AuditEntry>,
    /// Pass as `before` for earlier ones; `null` where there are none.
    #[schema(required)]
    pub next_before: Option<u64>,
}
