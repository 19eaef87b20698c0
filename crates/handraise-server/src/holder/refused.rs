//! What a holder is told of what is not taken up, and the trace that it leaves.

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::Ended,
};
use handraise_store::{Full, StoreError};

use super::talk::Talk;
use crate::{hub::refusal, metrics::Refused};

/// Longest id that is quoted back.
const LONGEST_ID: usize = 64;

/// What a frame came to, when it was not simply taken up.
pub(super) enum Said {
    Error(ErrorBody),
    Ended(ErrorBody, Box<Ended>),
    Fatal(StoreError),
}

impl From<ErrorBody> for Said {
    fn from(error: ErrorBody) -> Self {
        Self::Error(error)
    }
}

impl From<StoreError> for Said {
    fn from(error: StoreError) -> Self {
        Self::Fatal(error)
    }
}

impl Talk<'_> {
    /// This holder, or all that come with its token, have as much in here as they may have (S37).
    pub(super) fn full(&self, full: Full) -> Said {
        let bounds = self.app.settings.bounds();
        let (counter, setting, message) = match full {
            Full::OpenAsks => (
                Refused::HolderAsks,
                "open_asks",
                format!("this holder has {} asks open, the most it may", bounds.open_asks),
            ),
            Full::OpenBytes => (
                Refused::HolderAsks,
                "open_bytes",
                format!("this holder's open asks would have more than {} bytes", bounds.open_bytes),
            ),
            Full::SessionOpenAsks => (
                Refused::HolderAsks,
                "session_open_asks",
                format!("this session has {} asks open, the most it may", bounds.session_open_asks),
            ),
            Full::TokenOpenAsks => (
                Refused::TokenAsks,
                "token_open_asks",
                format!(
                    "holders with this token have {} asks open, the most they may",
                    bounds.token_open_asks
                ),
            ),
            Full::TokenAsks => (
                Refused::TokenAsks,
                "token_asks",
                format!("{} asks of this token are kept, the most there may be", bounds.token_asks),
            ),
            Full::TokenBytes => (
                Refused::TokenBytes,
                "token_bytes",
                format!(
                    "asks and transcripts of this token would have more than {} bytes",
                    bounds.token_bytes
                ),
            ),
            Full::TokenSessions => (
                Refused::TokenSessions,
                "token_sessions",
                format!("{} sessions of this token are kept, the most there may be", bounds.token_sessions),
            ),
            Full::TokenInstances => (
                Refused::TokenInstances,
                "token_instances",
                format!("{} holders of this token are kept, the most there may be", bounds.token_instances),
            ),
        };
        self.app.metrics.refused(counter);
        let message = format!("{message}; limits.{setting} of the inbox says so");
        refusal(ErrorCode::LimitExceeded, message).into()
    }

    pub(super) async fn not_owner(&self, what: &str) -> Said {
        let what: String = what.chars().take(LONGEST_ID).collect();
        self.audit(Refused::NotOwner, Some(&what)).await;
        refusal(ErrorCode::NotOwner, format!("{what} belongs to another holder")).into()
    }

    /// Leaves a trace of what a holder may not say (S9).
    pub(super) async fn audit(&self, what: Refused, about: Option<&str>) {
        let connection = self.connection;
        self.app.audit(what, &connection.grant, Some(&connection.instance), about).await;
    }
}
