//! How an ask ends: each cause with what goes on the wire and what is recorded (acp.md, "Elicitation life").

use crate::{
    ask::SubmissionId,
    form::Content,
    time::Moment,
    words::{Outcome, Provenance, WireAction},
};

/// Why an ask ends without a human's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndCause {
    /// Nobody answered in time (AC-64).
    Deadline,
    /// The asking side took the request back: `$/cancel_request`, `notifications/cancelled`.
    RequestCancelled,
    /// The call that the question was about was cancelled: there is nobody to be told anything.
    CallCancelled,
    /// The turn around it was cancelled (AC-15).
    TurnCancelled,
    /// The prompt was answered while the ask was open.
    PromptEnded,
    /// The asking side is gone: nobody can be told anything.
    AgentDisconnected,
    /// The holder goes down.
    Shutdown,
    /// The inbox does not take the ask.
    InboxRefused,
}

/// A reason beside an outcome, as a stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(&'static str);

impl Reason {
    /// The asking side was gone when something was to be delivered, or went away.
    pub const AGENT_DISCONNECTED: Self = Self("agent_disconnected");

    /// The spelling on every wire.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl EndCause {
    /// Every cause.
    pub const ALL: &'static [Self] = &[
        Self::Deadline,
        Self::RequestCancelled,
        Self::CallCancelled,
        Self::TurnCancelled,
        Self::PromptEnded,
        Self::AgentDisconnected,
        Self::Shutdown,
        Self::InboxRefused,
    ];

    /// Why, for the settlement.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Deadline => Reason("deadline"),
            Self::RequestCancelled | Self::CallCancelled => Reason("request_cancelled"),
            Self::TurnCancelled => Reason("turn_cancelled"),
            Self::PromptEnded => Reason("prompt_ended"),
            Self::AgentDisconnected => Reason::AGENT_DISCONNECTED,
            Self::Shutdown => Reason("shutdown"),
            Self::InboxRefused => Reason("inbox_refused"),
        }
    }

    /// What to tell the asking side; `None` when nobody is left to be told.
    pub const fn delivery(self) -> Option<Delivery> {
        match self {
            Self::Deadline | Self::InboxRefused => Some(Delivery::Decline),
            Self::RequestCancelled | Self::TurnCancelled | Self::PromptEnded | Self::Shutdown => {
                Some(Delivery::Cancel)
            }
            Self::CallCancelled | Self::AgentDisconnected => None,
        }
    }

    /// What is recorded when the delivery went out.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Deadline => Outcome::Timeout,
            Self::RequestCancelled | Self::TurnCancelled | Self::Shutdown => Outcome::Cancel,
            Self::CallCancelled | Self::PromptEnded | Self::AgentDisconnected => Outcome::Withdrawn,
            Self::InboxRefused => Outcome::Decline,
        }
    }
}

/// What the asking side is sent, exactly once per ask. `Debug` hides the content.
#[derive(Clone, PartialEq)]
pub enum Delivery {
    /// The human's answers.
    Accept(Content),
    /// The human skipped, or the deadline passed.
    Decline,
    /// The question died with its turn.
    Cancel,
}

impl Delivery {
    /// Its action on the wire.
    pub const fn wire(&self) -> WireAction {
        match self {
            Self::Accept(_) => WireAction::Accept,
            Self::Decline => WireAction::Decline,
            Self::Cancel => WireAction::Cancel,
        }
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Delivery").field(&self.wire().as_str()).finish()
    }
}

/// How an ask ended, by its holder's word. It never says `human` (S15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// `client` for a submission (the inbox knows who sent it), otherwise `system`.
    pub provenance: Provenance,
    /// What the asking side was sent; `None` when nothing could be sent.
    pub wire: Option<WireAction>,
    /// Why; `None` for a submission.
    pub reason: Option<Reason>,
    /// The submission that won, when one did.
    pub submission: Option<SubmissionId>,
    /// When.
    pub at: Moment,
}
