//! The answer to one POST, from the side of those who write it.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    budget::Budget,
    events::{Events, comment, event},
    handover::{AtOnce, First, Giver, Taker, handover},
    pieces::Pieces,
};

/// For how many ticks a call may be silent before its answer becomes a stream, which keeps the way open.
pub(crate) const PATIENCE: u32 = 5;
/// After how many quiet ticks a stream gets a comment.
pub(crate) const QUIET: u32 = 15;

/// Where an answer stands.
#[derive(Debug)]
pub(crate) enum Outlet {
    /// Nothing has been said yet. `ticks`: for how long.
    Silent { first: Giver, takes_events: bool, ticks: u32 },
    /// It is a stream.
    Streaming(Arc<Events>),
    /// It was a stream whose client has left.
    Detached,
    /// The client has left and knows nothing to come back to.
    Lost,
}

impl Outlet {
    /// An outlet, and where its answer begins.
    pub(crate) fn new(takes_events: bool, at_once: Option<AtOnce>) -> (Self, Taker) {
        let (first, taker) = handover(at_once);
        (Self::Silent { first, takes_events, ticks: 0 }, taker)
    }

    /// Sends an event; false: it reached nobody.
    pub(crate) fn event(&mut self, event: &Pieces, budget: &Arc<Budget>) -> bool {
        match std::mem::replace(self, Self::Lost) {
            Self::Silent { first, takes_events: true, .. } => {
                let events = Events::new(budget);
                let is_sent = events.push(event.clone()).is_ok();
                if is_sent && first.give(First::Events(Arc::clone(&events))) {
                    *self = Self::Streaming(events);
                    return true;
                }
                false
            }
            silent @ Self::Silent { .. } => {
                *self = silent;
                false
            }
            Self::Streaming(events) => {
                let is_sent = events.push(event.clone()).is_ok();
                *self = match is_sent {
                    true => Self::Streaming(events),
                    false if events.is_lost() => Self::Lost,
                    false => Self::Detached,
                };
                is_sent
            }
            Self::Detached => {
                *self = Self::Detached;
                false
            }
            Self::Lost => false,
        }
    }

    /// Whether what is said here can still reach the client, now or when it comes back.
    pub(crate) fn takes_events(&self) -> bool {
        match self {
            Self::Silent { first, takes_events, .. } => *takes_events && !first.is_closed(),
            Self::Streaming(events) => !events.is_lost(),
            Self::Detached => true,
            Self::Lost => false,
        }
    }

    /// Whether it was a stream whose client has left, and knows nothing to come back to.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Streaming(events) => events.is_lost(),
            Self::Lost => true,
            Self::Silent { .. } | Self::Detached => false,
        }
    }

    /// Whether a client is there now.
    pub(crate) fn is_attended(&self) -> bool {
        match self {
            Self::Silent { first, .. } => !first.is_closed(),
            Self::Streaming(events) => events.is_read(),
            Self::Detached | Self::Lost => false,
        }
    }

    /// Whether nothing has been said yet.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Silent { .. })
    }

    /// Lets a second pass. `opening` begins a stream that nothing has been said on.
    pub(crate) fn tick(&mut self, budget: &Arc<Budget>, opening: impl FnOnce() -> Pieces) {
        match self {
            Self::Silent { takes_events: true, ticks, .. } => {
                *ticks += 1;
                if *ticks >= PATIENCE {
                    self.event(&opening(), budget);
                }
            }
            Self::Streaming(events) => events.tick(QUIET),
            Self::Silent { .. } | Self::Detached | Self::Lost => {}
        }
    }

    /// Ends it with an answer that nobody resumes.
    pub(crate) fn settle(self, frame: &Bytes, budget: &Arc<Budget>) {
        match self {
            Self::Silent { first, .. } => first.answer([&frame[..], b"", b""], || frame.clone().into()),
            mut outlet => {
                outlet.event(&event("", &frame.clone().into()), budget);
                outlet.end(budget);
            }
        }
    }

    /// Ends it with the refusal of its request, which went nowhere.
    pub(crate) fn refuse(self, frame: Bytes, budget: &Arc<Budget>) {
        match self {
            Self::Silent { first, .. } => {
                // Nobody may be there any more.
                first.give(First::Refused(frame));
            }
            outlet => outlet.settle(&frame, budget),
        }
    }

    /// Ends it without an answer.
    pub(crate) fn end(self, budget: &Arc<Budget>) {
        match self {
            Self::Silent { first, takes_events, .. } => {
                let nothing = if takes_events {
                    let events = Events::new(budget);
                    events.close();
                    First::Events(events)
                } else {
                    First::Nothing
                };
                // Nobody may be there any more.
                first.give(nothing);
            }
            Self::Streaming(events) => events.close(),
            Self::Detached | Self::Lost => {}
        }
    }
}

/// What a stream that cannot be resumed begins with.
pub(crate) fn plain_opening() -> Pieces {
    comment()
}
