//! What a legacy session's streams have said lately, for clients that come back with `Last-Event-ID`.

use std::{collections::VecDeque, sync::Arc};

use super::{
    metrics::{Count, Metrics},
    pieces::Pieces,
};

/// An event's id: the stream that it belongs to, and its number in the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: u64,
    pub(crate) number: u64,
}

impl EventId {
    /// Reads what a client sends. What is no id of ours is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        let digits =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        Some(Self { stream: digits(stream)?, number: digits(number)? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.number)
    }
}

/// The latest events of one session, oldest first, within bounds (S37).
#[derive(Debug)]
pub(crate) struct Replay {
    events: VecDeque<(EventId, Pieces)>,
    bytes: usize,
    last: u64,
    most_events: usize,
    most_bytes: usize,
    /// Where is counted how many events had to go.
    metrics: Arc<Metrics>,
}

impl Replay {
    pub(crate) fn new(most_events: usize, most_bytes: usize, metrics: &Arc<Metrics>) -> Self {
        let metrics = Arc::clone(metrics);
        Self { events: VecDeque::new(), bytes: 0, last: 0, most_events, most_bytes, metrics }
    }

    /// The id of the next event of a stream.
    pub(crate) fn next_id(&mut self, stream: u64) -> EventId {
        self.last += 1;
        EventId { stream, number: self.last }
    }

    /// Keeps an event.
    pub(crate) fn keep(&mut self, id: EventId, event: Pieces) {
        self.bytes += event.len();
        self.events.push_back((id, event));
        while self.events.len() > self.most_events || self.bytes > self.most_bytes {
            let Some((_, event)) = self.events.pop_front() else { return };
            self.bytes -= event.len();
            self.metrics.count(Count::ReplayedOut);
        }
    }

    /// The events of a stream behind a number, oldest first.
    pub(crate) fn after(&self, id: EventId) -> impl Iterator<Item = (EventId, Pieces)> {
        let is_behind = move |kept: &EventId| kept.stream == id.stream && kept.number > id.number;
        self.events.iter().filter(move |(kept, _)| is_behind(kept)).cloned()
    }

    /// Forgets all of them, and their memory.
    pub(crate) fn clear(&mut self) {
        (self.events, self.bytes) = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(replay: &Replay, stream: u64, number: u64) -> Vec<u64> {
        replay.after(EventId { stream, number }).map(|(id, _)| id.number).collect()
    }

    #[test]
    fn s37_what_is_forgotten_holds_nothing_and_numbers_go_on() {
        let metrics = Arc::default();
        let mut replay = Replay::new(100, 1000, &metrics);
        let id = replay.next_id(1);
        replay.keep(id, vec![b'x'; 10].into());
        replay.clear();
        assert_eq!((replay.events.capacity(), replay.bytes, metrics.counted(Count::ReplayedOut)), (0, 0, 0));
        assert_eq!(replay.next_id(1).number, 2);
    }

    #[test]
    fn a_stream_is_resumed_behind_the_last_event_and_never_with_anothers() {
        let mut replay = Replay::new(100, 1000, &Arc::default());
        for stream in [1, 2, 1, 1, 2] {
            let id = replay.next_id(stream);
            replay.keep(id, vec![b'x'].into());
        }
        assert_eq!(numbers(&replay, 1, 0), [1, 3, 4]);
        assert_eq!(numbers(&replay, 1, 3), [4]);
        assert_eq!(numbers(&replay, 2, 2), [5]);
        assert!(numbers(&replay, 3, 0).is_empty());
    }

    #[test]
    fn s37_a_session_keeps_so_many_events_and_bytes_and_no_more() {
        let metrics = Arc::default();
        let mut replay = Replay::new(3, 100, &metrics);
        for _ in 0..5 {
            let id = replay.next_id(1);
            replay.keep(id, vec![b'x'].into());
        }
        assert_eq!((numbers(&replay, 1, 0), metrics.counted(Count::ReplayedOut)), (vec![3, 4, 5], 2));
        let id = replay.next_id(1);
        replay.keep(id, vec![b'x'; 99].into());
        assert_eq!(numbers(&replay, 1, 0), [5, 6]);
        let id = replay.next_id(1);
        replay.keep(id, vec![b'x'; 101].into());
        assert!(numbers(&replay, 1, 0).is_empty() && replay.bytes == 0);
    }

    #[test]
    fn what_is_no_id_of_ours_is_none() {
        assert_eq!(EventId::parse("3-17"), Some(EventId { stream: 3, number: 17 }));
        for text in ["", "3", "-", "3-", "a-1", "+3-1", "3-1-1", "99999999999999999999-1", "3- 1"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }
}
