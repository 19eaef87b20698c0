//! What is sent and has no answer of its own, while it is on its way: so much at once, and the rest in order behind it.
//!
//! There are two lanes. What the server waits for, or is to stop for, never stands behind what nobody waits for.

use std::{collections::VecDeque, sync::Arc};

use super::{note::Letter, session::Session};

/// How many may be on their way at once of those that nobody waits for.
const MOST_ORDINARY: usize = 16;
/// And of the others. Of these there are no more than the server has asked questions and the client has open calls.
const MOST_AWAITED: usize = 256;
/// How many may be held. With so many, everything waits.
const MOST_HELD: usize = 1024;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// A notification, or an answer to nothing that is known.
    Ordinary,
    /// The answer to a question of the server's, the cancel of an open call, or what opens a session.
    Awaited,
}

/// What is sent, and what it belongs to.
pub(crate) type Sent = (Letter, Option<Arc<Session>>);

/// Both lanes.
#[derive(Default)]
pub(crate) struct Lanes {
    ordinary: Way,
    awaited: Way,
}

#[derive(Default)]
struct Way {
    /// How many are on their way.
    going: usize,
    /// Those that wait until fewer are, in order.
    held: VecDeque<Sent>,
}

impl Lanes {
    /// Takes what is to be sent; returns it where it may go now.
    pub(crate) fn take(&mut self, sent: Sent) -> Option<Sent> {
        let lane = sent.0.lane;
        let most = match lane {
            Lane::Ordinary => MOST_ORDINARY,
            Lane::Awaited => MOST_AWAITED,
        };
        let way = self.way(lane);
        if way.going < most {
            way.going += 1;
            return Some(sent);
        }
        way.held.push_back(sent);
        None
    }

    /// One has arrived or was given up; returns what may go in its place.
    pub(crate) fn arrived(&mut self, lane: Lane) -> Option<Sent> {
        let way = self.way(lane);
        let next = way.held.pop_front();
        way.going -= usize::from(next.is_none());
        next
    }

    /// How many are held.
    fn held(&self) -> usize {
        self.ordinary.held.len() + self.awaited.held.len()
    }

    pub(crate) fn holds_none(&self) -> bool {
        self.held() == 0
    }

    /// Whether so many are held that nothing more is taken.
    pub(crate) fn are_full(&self) -> bool {
        self.held() >= MOST_HELD
    }

    fn way(&mut self, lane: Lane) -> &mut Way {
        match lane {
            Lane::Ordinary => &mut self.ordinary,
            Lane::Awaited => &mut self.awaited,
        }
    }
}
