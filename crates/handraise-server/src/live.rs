//! Live events: numbered for ever upwards, the latest kept so that a stream can go on where it stopped.
//!
//! A value without I/O: the hub pushes, streams read behind their own cursor, whoever fell out of what is kept
//! starts again with a snapshot.

use std::{collections::VecDeque, sync::Arc};

/// One event, ready to be written to any number of streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveEvent {
    /// Greater than every earlier event's, across restarts too.
    pub(crate) id: u64,
    /// Its name, as in [`handraise_api::event`].
    pub(crate) name: &'static str,
    /// What it replaces: a later event of the same subject says all that an earlier one said.
    pub(crate) subject: Option<Arc<str>>,
    /// The API object as JSON text.
    pub(crate) data: Arc<str>,
}

/// The latest events.
#[derive(Debug)]
pub(crate) struct LiveEvents {
    kept: VecDeque<LiveEvent>,
    bytes: usize,
    last: u64,
    max_events: usize,
    max_bytes: usize,
}

impl LiveEvents {
    /// Starts numbering where no earlier run of this inbox can have come to: `run` counts its starts.
    ///
    /// Ids stay exact in a page's numbers for two million starts of four thousand million events each.
    pub(crate) fn starting(run: u64, max_events: usize, max_bytes: usize) -> Self {
        Self { kept: VecDeque::new(), bytes: 0, last: run << 32, max_events, max_bytes }
    }

    /// The id of the latest event; a snapshot taken now stands for everything up to it.
    pub(crate) fn last_id(&self) -> u64 {
        self.last
    }

    /// Adds an event and forgets the oldest beyond what is kept.
    pub(crate) fn push(
        &mut self,
        name: &'static str,
        subject: Option<Arc<str>>,
        data: impl Into<Arc<str>>,
    ) -> u64 {
        self.last += 1;
        let event = LiveEvent { id: self.last, name, subject, data: data.into() };
        self.bytes += event.data.len();
        self.kept.push_back(event);
        while self.kept.len() > self.max_events || self.bytes > self.max_bytes {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.bytes -= oldest.data.len();
        }
        self.last
    }

    /// At most `limit` events after `cursor`, or `None` when some of them are gone or `cursor` is none of ours.
    pub(crate) fn after(&self, cursor: u64, limit: usize) -> Option<Vec<LiveEvent>> {
        let first_kept = self.last + 1 - self.kept.len() as u64;
        if cursor > self.last || cursor.saturating_add(1) < first_kept {
            return None;
        }
        let skip = (cursor + 1 - first_kept) as usize;
        Some(self.kept.iter().skip(skip).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_go_on_rising_after_a_restart() {
        let mut before = LiveEvents::starting(7, 10, 1_000);
        for _ in 0..200 {
            before.push("ask.opened", None, "{}");
        }
        let after = LiveEvents::starting(8, 10, 1_000);
        assert!(after.last_id() > before.last_id());
        assert_eq!(after.after(before.last_id(), 10), None, "an id of an earlier run needs a snapshot");
    }

    proptest! {
        #[test]
        fn a_stream_gets_every_event_once_or_is_told_to_start_again(
            sizes in prop::collection::vec(0usize..60, 1..80),
            reads in prop::collection::vec((0usize..8, 1usize..6), 1..80),
        ) {
            let mut events = LiveEvents::starting(7, 12, 200);
            let mut cursor = events.last_id();
            let mut pushed = sizes.into_iter();
            for (pushes, limit) in reads {
                for size in pushed.by_ref().take(pushes) {
                    events.push("ask.updated", None, "x".repeat(size));
                }
                prop_assert!(events.kept.len() <= 12 && events.bytes <= 200);
                match events.after(cursor, limit) {
                    Some(next) => {
                        for event in next {
                            prop_assert_eq!(event.id, cursor + 1);
                            cursor = event.id;
                        }
                    }
                    None => cursor = events.last_id(),
                }
            }
        }

        #[test]
        fn any_cursor_is_safe(cursor in any::<u64>(), limit in any::<usize>()) {
            let mut events = LiveEvents::starting(7, 4, 100);
            events.push("ask.opened", None, "{}");
            if let Some(next) = events.after(cursor, limit) {
                prop_assert!(next.iter().all(|event| event.id > cursor));
            }
        }
    }
}
