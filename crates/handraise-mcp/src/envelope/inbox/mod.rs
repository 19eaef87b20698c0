//! The inbox: a question that its client cannot be asked is put to an operator, and its call waits (mcp.md §7).
//!
//! The envelope asks with [`Out::Ask`], under a key of its own that nobody can guess, and takes what became of it with
//! [`Envelope::inbox_said`]. It knows of no connection: whoever owns it opens the ask, and whoever holds the ask decides
//! which answer counts. A key is good once, for the one call that asked.
//!
//! # Decided here
//!
//! - Whoever holds the ask ends it at its deadline, so that an answer and the deadline have one order. The envelope ends the
//!   wait by itself [`ON_ITS_WAY`] later, should nothing come.
//! - An answer that was given before its question is taken back counts for nothing, and the record says that it was given: the
//!   owner of the envelope asks whoever holds the ask, whose lock orders both.
//! - What an answer says is checked against what was offered here as well.
//! - Waits at the same time count once toward what a session may wait in all.
//! - Each wait that ends unanswered is a reason to wait no more for a while ([`AGAIN_AFTER`]), or until somebody answers: also
//!   one that its client gave up ([`GIVEN_UP`]), but not one that was cut short by what was left of all waits.
//! - Less than [`LEAST_WAIT`] of all waits is nothing.
//! - A client that could not be told that its call goes on (its token is too long to be watched) waits like one without a token.
//! - A session has at most 50 questions open and opens five a second; a caller has its part of what the inbox takes of a gateway.
//! - The question of one state is put to the inbox once at a time, and never once that state is spent.
//! - A retry of a confirmed call's question goes no further than its client: its approval is for one run.
//! - A guarded call whose form nobody was shown goes on to the inbox, and never to a token (S8).

mod answer;
mod patience;
mod put;
mod turns;

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use handraise_core::words::{Provenance, Source};

use crate::confirm::Demand;

pub(super) use patience::Patience;
pub(super) use put::{InInbox, ToPut, Unshown, Waiting, watched_token};
pub(super) use turns::Turns;

/// For how long after an operator was last there the inbox is worth asking.
pub const OPERATOR_GONE: Duration = Duration::from_mins(5);

/// How long an answer, or the end, may take from whoever holds the ask to here.
pub const ON_ITS_WAY: Duration = Duration::from_millis(250);

/// How long a session waits for nobody after a wait that nobody ended.
pub const AGAIN_AFTER: Duration = Duration::from_mins(15);

/// What is left of a session's waits is worth a question from here on: nobody answers faster.
pub const LEAST_WAIT: Duration = Duration::from_secs(5);

/// A wait that the client ends by itself after this has ended unanswered.
pub const GIVEN_UP: Duration = Duration::from_secs(5);

/// How often the client of a call that waits hears that it does.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// How long calls may wait for an answer of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// One call, from its arrival (`HANDRAISE_ASK_WAIT`).
    pub plain: Duration,
    /// One whose client is told that it goes on (`HANDRAISE_ASK_WAIT_WITH_PROGRESS`).
    pub with_progress: Duration,
    /// All calls of a session together (`HANDRAISE_ASK_MAX_BLOCKED`).
    pub in_all: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            plain: Duration::from_secs(45),
            with_progress: Duration::from_mins(10),
            in_all: Duration::from_mins(15),
        }
    }
}

/// A question for the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxAsk {
    /// What its end is brought back with, to [`Envelope::inbox_said`](super::Envelope::inbox_said).
    pub key: String,
    /// What it is about.
    pub source: Source,
    /// What is asked.
    pub message: String,
    /// The schema of the answer's content, as JSON.
    pub schema: String,
    /// The tool that was called.
    pub tool: String,
    /// Who calls, by proof.
    pub principal: String,
    /// The client's name for itself. A claim.
    pub client: Option<String>,
    /// The server's name for itself. A claim.
    pub server: Option<String>,
    /// How long it may wait.
    pub timeout: Duration,
    /// The guarded call that it is about, where it is about one.
    pub confirm: Option<InboxConfirm>,
}

/// A guarded call, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxConfirm {
    /// For whom the call acts, where the rule says.
    pub account: Option<String>,
    /// What it acts on, unless that is something new.
    pub target: Option<String>,
    /// What is to be confirmed.
    pub action: String,
    /// Exactly the arguments that are hashed, one a line; what hides in them is escaped.
    pub arguments: String,
    /// What would happen, in the server's words.
    pub preview: Option<String>,
    /// What is demanded of whoever accepts.
    pub demand: Demand,
}

/// What became of a question for the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxSaid {
    /// How it ended.
    pub end: InboxEnd,
    /// Who stands behind that, by the inbox's word.
    pub provenance: Provenance,
}

/// How a question for the inbox ended. `Debug` hides the answer.
#[derive(Clone, PartialEq, Eq)]
pub enum InboxEnd {
    /// It was answered: the content, as JSON.
    Accepted(String),
    /// It was declined.
    Declined,
    /// It was put away.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// It could not be put to anybody. Why, as records say it: one of a closed set of words.
    NotOpened(&'static str),
}

impl fmt::Debug for InboxEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(_) => f.write_str("Accepted(•)"),
            Self::Declined => f.write_str("Declined"),
            Self::Cancelled => f.write_str("Cancelled"),
            Self::TimedOut => f.write_str("TimedOut"),
            Self::NotOpened(why) => f.debug_tuple("NotOpened").field(why).finish(),
        }
    }
}

/// Why a question is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// The client cancelled its call.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
    /// The client or the server is gone.
    Gone,
}

/// Says how long ago an operator could last be asked. Without an inbox that can be reached: nothing.
type Seen = Box<dyn Fn() -> Option<Duration> + Send + Sync>;

/// Says whether questions of ours are asked.
type Switch = Box<dyn Fn() -> bool + Send + Sync>;

/// The inbox, as far as a process knows of one.
#[derive(Default)]
pub(super) struct Attached(OnceLock<Seen>, OnceLock<Switch>);

impl Attached {
    pub(super) fn set(&self, seen: Seen) {
        // The first one stays: there is one inbox.
        let _ = self.0.set(seen);
    }

    pub(super) fn set_switch(&self, switch: Switch) {
        let _ = self.1.set(switch);
    }

    /// Whether its operators have not switched off what we ask.
    pub(super) fn is_switched_on(&self) -> bool {
        self.1.get().is_none_or(|is_on| is_on())
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Whether somebody could answer.
    pub(super) fn is_usable(&self) -> bool {
        self.0.get().and_then(|seen| seen()).is_some_and(|ago| ago <= OPERATOR_GONE)
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attached").field(&self.is_set()).finish()
    }
}
