//! How an ask ended and who ended it, for the asking side.

use std::collections::VecDeque;

use handraise_api::error::ErrorCode;
use handraise_core::{AskId, Provenance, Submission, holder::Ended};

/// How an ask ended, as its holder knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The holder's own word.
    pub ended: Ended,
    /// Who answered, by the inbox's word; `None` when nobody did.
    pub answered: Option<Answered>,
    /// Why the inbox did not take it, for an ask that ended by [`EndCause::InboxRefused`](crate::EndCause::InboxRefused):
    /// nobody was shown it, and nobody declined.
    pub refused: Option<InboxRefusal>,
}

impl Settled {
    /// Who stands behind the outcome: whoever the inbox says answered (S15), otherwise the holder's own word.
    pub fn provenance(&self) -> Provenance {
        self.answered.as_ref().map_or(self.ended.provenance, |answered| answered.provenance)
    }
}

/// Who sent the submission that won. `Debug` hides the reason, which are a human's words.
#[derive(Clone, PartialEq, Eq)]
pub struct Answered {
    /// The operator or token.
    pub by: String,
    /// `human` or `client`.
    pub provenance: Provenance,
    /// Why it was skipped; empty when it was not, or unsaid.
    pub reject_reason: String,
}

impl Answered {
    /// Whether an acceptance is not the person's whose alone counts.
    pub(crate) fn falls_short_of(&self, persons_alone: bool, submission: &Submission) -> bool {
        persons_alone && !submission.rejected && self.provenance != Provenance::Human
    }
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answered")
            .field("by", &self.by)
            .field("provenance", &self.provenance)
            .finish_non_exhaustive()
    }
}

/// Why the inbox did not take an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRefusal {
    /// For programs.
    pub code: ErrorCode,
    /// The inbox's own words, at most [`LONGEST`](Self::LONGEST) characters and none of them a control.
    pub message: String,
}

impl InboxRefusal {
    /// The most characters that are kept of the inbox's words.
    pub const LONGEST: usize = 500;
}

/// What the inbox said about the asks that ended last.
#[derive(Debug)]
pub(crate) struct Latest<T>(VecDeque<(AskId, T)>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Latest<T> {
    /// An asking side looks as soon as it was delivered to, so few are enough.
    const KEPT: usize = 1_024;

    pub(crate) fn insert(&mut self, ask: AskId, said: T) {
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back((ask, said));
    }

    /// The first word counts: a submission that is sent again changes nothing.
    pub(crate) fn get(&self, ask: &AskId) -> Option<&T> {
        self.0.iter().find(|(id, _)| id == ask).map(|(_, said)| said)
    }
}
