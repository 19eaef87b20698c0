//! The live events of all streams: one ring that everybody reads at their own pace.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use handraise_api::event;
use serde::Serialize;
use tokio::sync::watch;

use crate::live::{LiveEvent, LiveEvents};

/// An event that streams never see: whoever meets it starts again with a snapshot. It stands for changes of more
/// asks than events are worth, such as the loss of a holder with a thousand.
pub(crate) const START_AGAIN: &str = "start again";

/// The ring and who reads it.
#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<LiveEvents>,
    latest: watch::Sender<u64>,
    streams: Arc<AtomicUsize>,
}

impl Events {
    pub(crate) fn new(run: u64, max_events: usize, max_bytes: usize) -> Self {
        let ring = LiveEvents::starting(run, max_events, max_bytes);
        let latest = watch::Sender::new(ring.last_id());
        Self { ring: Mutex::new(ring), latest, streams: Arc::default() }
    }

    /// Publishes an API object under a name.
    pub(crate) fn publish<T: Serialize>(&self, name: &'static str, subject: Option<String>, object: &T) {
        match serde_json::to_string(object) {
            Ok(data) => self.push(name, subject, data),
            Err(error) => tracing::error!(%error, name, "an event could not be written"),
        }
    }

    /// Lets every stream start again with a snapshot.
    pub(crate) fn start_again(&self) {
        self.push(START_AGAIN, None, String::new());
    }

    fn push(&self, name: &'static str, subject: Option<String>, data: String) {
        let last = self.ring().push(name, subject.map(Into::into), data);
        self.latest.send_replace(last);
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.ring().last_id()
    }

    /// See [`LiveEvents::after`].
    pub(crate) fn after(&self, cursor: u64, limit: usize) -> Option<Vec<LiveEvent>> {
        self.ring().after(cursor, limit)
    }

    /// Changes with every event.
    pub(crate) fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// A place for one more stream, unless there are `most` already (S37).
    pub(crate) fn enter(&self, most: usize) -> Option<Entered> {
        let entered = self.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |streams| {
            (streams < most).then_some(streams + 1)
        });
        entered.ok().map(|_| Entered(Arc::clone(&self.streams)))
    }

    /// How many streams there are.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    fn ring(&self) -> MutexGuard<'_, LiveEvents> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream's place; dropped when it ends.
#[derive(Debug)]
pub(crate) struct Entered(Arc<AtomicUsize>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a slow stream has missed, said as briefly as possible: of several events about one subject only the last,
/// which says everything. An ask that opened meanwhile is still said to have opened.
pub(crate) fn coalesce(events: Vec<LiveEvent>) -> Vec<LiveEvent> {
    let mut last: HashMap<Arc<str>, usize> = HashMap::new();
    let mut opened: HashSet<Arc<str>> = HashSet::new();
    for (at, event) in events.iter().enumerate() {
        if let Some(subject) = &event.subject {
            last.insert(Arc::clone(subject), at);
            if event.name == event::ASK_OPENED {
                opened.insert(Arc::clone(subject));
            }
        }
    }
    events
        .into_iter()
        .enumerate()
        .filter_map(|(at, mut event)| {
            let Some(subject) = &event.subject else { return Some(event) };
            if last.get(subject) != Some(&at) {
                return None;
            }
            if event.name == event::ASK_UPDATED && opened.contains(subject) {
                event.name = event::ASK_OPENED;
            }
            Some(event)
        })
        .collect()
}

/// Appends one event in the form of Server-Sent Events. JSON text has no line breaks.
pub(crate) fn write(frame: &mut String, id: u64, name: &str, data: &str) {
    let _ = write!(frame, "id: {id}\nevent: {name}\ndata: {data}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, name: &'static str, subject: Option<&str>) -> LiveEvent {
        LiveEvent { id, name, subject: subject.map(Into::into), data: "{}".into() }
    }

    #[test]
    fn of_several_events_about_one_ask_the_last_is_left() {
        let left = coalesce(vec![
            event(1, event::ASK_OPENED, Some("a")),
            event(2, event::CLARIFICATION_REQUESTED, None),
            event(3, event::ASK_OPENED, Some("b")),
            event(4, event::ASK_UPDATED, Some("a")),
            event(5, event::SESSION_MESSAGE, None),
            event(6, event::ASK_SETTLED, Some("b")),
            event(7, event::ASK_UPDATED, Some("c")),
        ]);
        let shown: Vec<_> = left.iter().map(|event| (event.id, event.name)).collect();
        assert_eq!(
            shown,
            [
                (2, event::CLARIFICATION_REQUESTED),
                (4, event::ASK_OPENED),
                (5, event::SESSION_MESSAGE),
                (6, event::ASK_SETTLED),
                (7, event::ASK_UPDATED),
            ]
        );
    }

    #[test]
    fn s37_streams_are_counted_and_bounded() {
        let events = Events::new(1, 10, 1_000);
        let first = events.enter(1).unwrap();
        assert!(events.enter(1).is_none());
        drop(first);
        assert_eq!(events.streams(), 0);
        assert!(events.enter(1).is_some());
    }
}
