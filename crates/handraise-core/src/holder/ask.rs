//! One ask: as it is handed in, as it is kept while open, and what a submission to it may become.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    ask::{AskId, Submission, SubmissionId},
    form::{AnswerError, AnswerRules, Form},
    holder::{Ended, link::Waiting},
    time::Moment,
    words::Source,
};

/// What is to be asked.
#[derive(Debug, Clone)]
pub struct NewAsk {
    /// Minted by the caller, never used before (AC-60).
    pub id: AskId,
    /// Where it comes from.
    pub source: Source,
    /// The session it belongs to, for the limits and for [`Engine::end_session`](super::Engine::end_session).
    pub session: Option<String>,
    /// What is announced. Immutable (S9).
    pub announcement: Arc<str>,
    /// Its questions, and how answers to them become content.
    pub form: Form,
    /// Which answers are valid.
    pub rules: AnswerRules,
    /// Values that a batch may select where the source is `permission` (S44).
    pub single_use: Vec<String>,
    /// How long until it is declined; `None`: no deadline.
    pub timeout: Option<Duration>,
}

/// The action that a submission came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// `agent.elicitations.respond`: every source but permission.
    Elicitation,
    /// `agent.permissions.respond`.
    Permission,
    /// `asks.respond_batch`: confirms and permissions (S44).
    Batch,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It won: it is what the asking side got.
    Delivered,
    /// It was refused; the ask is still open (F10).
    Invalid(Vec<AnswerError>),
    /// The ask had ended, thus; `None`: it is not known, or no longer.
    Ended(Option<Ended>),
    /// The ask is open and this submission never arrived, or was said not to have: it will not be delivered.
    Unseen,
    /// It cannot be answered this way; the ask is still open.
    Unsuitable(&'static str),
}

impl Verdict {
    /// Most errors that one verdict holds, and most bytes of them: those of a form of 200 questions fit.
    const MAX_ERRORS: usize = 256;
    const MAX_ERROR_BYTES: usize = 256 * 1024;

    /// Refused, for at most as many reasons as a verdict holds, and for one at least.
    pub(super) fn invalid(mut errors: Vec<AnswerError>) -> Self {
        errors.truncate(Self::MAX_ERRORS);
        let mut bytes = 0;
        let mut kept = 0;
        errors.retain(|error| {
            bytes += error.question_id.len() + error.message.len();
            let keeps = kept == 0 || bytes <= Self::MAX_ERROR_BYTES;
            kept += usize::from(keeps);
            keeps
        });
        Self::Invalid(errors)
    }
}

/// An open ask.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) source: Source,
    pub(super) session: Option<String>,
    pub(super) announcement: Arc<str>,
    pub(super) form: Form,
    pub(super) rules: AnswerRules,
    pub(super) single_use: Vec<String>,
    pub(super) deadline: Option<Moment>,
    pub(super) is_parked: bool,
    pub(super) judged: Judged,
}

/// Verdicts on submissions that did not end their ask: the latest few.
#[derive(Debug, Default)]
pub(super) struct Judged(VecDeque<(SubmissionId, Verdict)>);

impl Judged {
    const KEPT: usize = 16;

    pub(super) fn get(&self, submission: &SubmissionId) -> Option<&Verdict> {
        self.0.iter().find(|(id, _)| id == submission).map(|(_, verdict)| verdict)
    }

    pub(super) fn insert(&mut self, submission: SubmissionId, verdict: Verdict) {
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back((submission, verdict));
    }
}

impl Open {
    pub(super) fn waiting(&self, id: &AskId) -> Waiting {
        Waiting {
            id: id.clone(),
            announcement: Arc::clone(&self.announcement),
            deadline: self.deadline,
            is_parked: self.is_parked,
        }
    }

    /// Why this ask cannot be answered by `route`.
    pub(super) fn unsuitable(&self, route: Route, submission: &Submission) -> Option<&'static str> {
        match (route, self.source) {
            (Route::Elicitation, Source::Permission) => {
                Some("this ask is a permission request; answer it with agent.permissions.respond")
            }
            (Route::Permission | Route::Batch, Source::Permission)
            | (Route::Elicitation | Route::Batch, Source::Confirm)
            | (Route::Elicitation, _) => {
                let picks = submission.answers.iter().flat_map(|answer| &answer.selected_options);
                let is_lasting = |pick: &String| !self.single_use.contains(pick);
                let lasts = route == Route::Batch
                    && self.source == Source::Permission
                    && picks.into_iter().any(is_lasting);
                lasts.then_some("a batch takes single-use options only (S44)")
            }
            (Route::Permission, _) => {
                Some("this ask is no permission request; answer it with agent.elicitations.respond")
            }
            (Route::Batch, _) => Some("a batch takes confirms and permissions only (S44)"),
        }
    }
}
