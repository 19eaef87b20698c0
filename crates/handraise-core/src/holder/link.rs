//! What the inbox is still to be told on one connection, in order.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{ask::AskId, holder::Ended, time::Moment};

/// An open ask as it is announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    /// Its id.
    pub id: AskId,
    /// What is asked, as its holder put it; opaque to the engine.
    pub announcement: Arc<str>,
    /// How long it is still open; `None`: no deadline.
    pub left: Option<Duration>,
    /// Whether it is parked: open, but its call has been answered.
    pub is_parked: bool,
}

/// One part of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPart {
    /// Counts from 0.
    pub seq: u32,
    /// Whether it is the last part.
    pub last: bool,
    /// Open asks.
    pub asks: Vec<Announced>,
    /// Settlements that no inbox has acknowledged.
    pub settlements: Vec<(AskId, Ended)>,
}

/// Something the inbox is to be told, and to acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Where things stood when the connection began.
    Snapshot(SnapshotPart),
    /// An ask opened.
    Opened(Announced),
    /// An ask ended.
    Settled(AskId, Ended),
}

impl Notice {
    /// What to hand to [`Engine::acknowledged`](super::Engine::acknowledged) when the inbox has taken it.
    pub fn receipt(&self) -> Receipt {
        match self {
            Self::Snapshot(part) => Receipt::Snapshot { last: part.last },
            Self::Opened(ask) => Receipt::Opened(ask.id.clone()),
            Self::Settled(ask, _) => Receipt::Settled(ask.clone()),
        }
    }
}

/// Names a [`Notice`] of the current connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// A part of the snapshot. Its settlements are acknowledged once the last part is.
    Snapshot {
        /// Whether it was the last part.
        last: bool,
    },
    /// An announcement.
    Opened(AskId),
    /// A settlement.
    Settled(AskId),
}

/// An announcement that waits to be sent.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) id: AskId,
    pub(super) announcement: Arc<str>,
    pub(super) deadline: Option<Moment>,
    pub(super) is_parked: bool,
}

impl Waiting {
    fn announced(self, now: Moment) -> Announced {
        let Self { id, announcement, deadline, is_parked } = self;
        Announced { id, announcement, left: deadline.map(|deadline| now.until(deadline)), is_parked }
    }

    /// Room in a frame: the text and what is written around it.
    fn bytes(&self) -> usize {
        self.announcement.len() + 128
    }
}

/// What one connection is still to carry: the snapshot, taken at one instant, then everything since (S9).
#[derive(Debug, Default)]
pub(super) struct Link {
    parts: VecDeque<Part>,
    next_part: u32,
    /// Settlements of this snapshot, acknowledged with its last part.
    pub(super) in_snapshot: Vec<AskId>,
    queue: VecDeque<Event>,
    queue_bytes: usize,
}

/// A part of the snapshot that waits to be sent.
#[derive(Debug, Default)]
struct Part {
    asks: Vec<Waiting>,
    settlements: Vec<(AskId, Ended)>,
}

#[derive(Debug)]
enum Event {
    Opened(Waiting),
    Settled(AskId, Ended),
}

impl Event {
    fn bytes(&self) -> usize {
        match self {
            Self::Opened(ask) => ask.bytes(),
            Self::Settled(..) => Link::SETTLEMENT_BYTES,
        }
    }
}

impl Link {
    /// Room that a settlement takes at most in a frame: two ids of 64 and short words.
    const SETTLEMENT_BYTES: usize = 512;

    /// Splits the state of things into parts of at most `part_bytes`.
    pub(super) fn new(
        asks: impl Iterator<Item = Waiting>,
        settlements: impl Iterator<Item = (AskId, Ended)>,
        part_bytes: usize,
    ) -> Self {
        let mut link = Self { parts: VecDeque::from([Part::default()]), ..Self::default() };
        let mut room = part_bytes;
        for ask in asks {
            let bytes = ask.bytes();
            if let Some(part) = link.part_with_room(&mut room, bytes, part_bytes) {
                part.asks.push(ask);
            }
        }
        for (ask, ended) in settlements {
            link.in_snapshot.push(ask.clone());
            if let Some(part) = link.part_with_room(&mut room, Self::SETTLEMENT_BYTES, part_bytes) {
                part.settlements.push((ask, ended));
            }
        }
        link
    }

    fn part_with_room(&mut self, room: &mut usize, bytes: usize, part_bytes: usize) -> Option<&mut Part> {
        // An announcement may be as large as a part, without what is written around it: it has one for itself.
        if *room < bytes && *room < part_bytes {
            self.parts.push_back(Part::default());
            *room = part_bytes;
        }
        *room = room.saturating_sub(bytes);
        self.parts.back_mut()
    }

    pub(super) fn opened(&mut self, ask: Waiting) {
        self.push(Event::Opened(ask));
    }

    pub(super) fn settled(&mut self, ask: AskId, ended: Ended) {
        self.push(Event::Settled(ask, ended));
    }

    fn push(&mut self, event: Event) {
        self.queue_bytes += event.bytes();
        self.queue.push_back(event);
    }

    /// Bytes that wait behind the snapshot.
    pub(super) fn queue_bytes(&self) -> usize {
        self.queue_bytes
    }

    pub(super) fn is_drained(&self) -> bool {
        self.parts.is_empty() && self.queue.is_empty()
    }

    /// Whether the next notice opens an ask.
    pub(super) fn is_opening(&self) -> bool {
        self.parts.is_empty() && matches!(self.queue.front(), Some(Event::Opened(_)))
    }

    pub(super) fn next(&mut self, now: Moment) -> Option<Notice> {
        if let Some(Part { asks, settlements }) = self.parts.pop_front() {
            let seq = self.next_part;
            self.next_part += 1;
            let asks = asks.into_iter().map(|ask| ask.announced(now)).collect();
            return Some(Notice::Snapshot(SnapshotPart {
                seq,
                last: self.parts.is_empty(),
                asks,
                settlements,
            }));
        }
        let event = self.queue.pop_front()?;
        self.queue_bytes -= event.bytes();
        Some(match event {
            Event::Opened(ask) => Notice::Opened(ask.announced(now)),
            Event::Settled(ask, ended) => Notice::Settled(ask, ended),
        })
    }
}
