//! The live events of all streams: one ring that everybody reads at their own pace.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    streams: Arc<Mutex<Streams>>,
}

/// How many streams there are, and how many of each token.
#[derive(Debug, Default)]
struct Streams {
    all: usize,
    by_token: HashMap<String, usize>,
}

/// Why there is no place for one more stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// There are as many as there may be.
    All,
    /// The token has as many as it may have.
    Token,
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

    /// Publishes an object that says two things: under one name to whoever shows it, and under the other; each with its
    /// subject.
    pub(crate) fn publish_twice<T: Serialize>(
        &self,
        (shown, subject): (&'static str, String),
        (name, about): (&'static str, String),
        object: &T,
    ) {
        match serde_json::to_string(object) {
            Ok(data) => {
                let data: Arc<str> = data.into();
                self.push(shown, Some(subject), Arc::clone(&data));
                self.push(name, Some(about), data);
            }
            Err(error) => tracing::error!(%error, name, "an event could not be written"),
        }
    }

    /// Lets every stream start again with a snapshot.
    pub(crate) fn start_again(&self) {
        self.push(START_AGAIN, None, "");
    }

    fn push(&self, name: &'static str, subject: Option<String>, data: impl Into<Arc<str>>) {
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

    /// A place for one more stream, unless there are `most` already, or `share` of them are the same token's (S37).
    pub(crate) fn enter(&self, token: &str, most: usize, share: usize) -> Result<Entered, Crowded> {
        let mut streams = lock(&self.streams);
        if streams.all >= most {
            return Err(Crowded::All);
        }
        let own = streams.by_token.entry(token.to_owned()).or_default();
        if *own >= share {
            return Err(Crowded::Token);
        }
        *own += 1;
        streams.all += 1;
        Ok(Entered { token: token.to_owned(), streams: Arc::clone(&self.streams) })
    }

    /// How many streams there are.
    pub(crate) fn streams(&self) -> usize {
        lock(&self.streams).all
    }

    fn ring(&self) -> MutexGuard<'_, LiveEvents> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream's place; dropped when it ends.
#[derive(Debug)]
pub(crate) struct Entered {
    token: String,
    streams: Arc<Mutex<Streams>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut streams = lock(&self.streams);
        streams.all -= 1;
        if let Some(own) = streams.by_token.get_mut(&self.token) {
            *own -= 1;
            if *own == 0 {
                streams.by_token.remove(&self.token);
            }
        }
    }
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The subject of a notification about an ask. It replaces nothing, and nobody wants it once its ask has ended.
pub(crate) fn request_for(ask: &str) -> String {
    format!("{REQUEST}{ask}")
}

const REQUEST: &str = "request for ";

/// What a slow stream has missed, said as briefly as possible: of several events about one subject only the last,
/// which says everything. An ask that opened meanwhile is still said to have opened, where it did and as it stands now;
/// one that has ended by now is said to have ended, and nobody is notified of it.
pub(crate) fn coalesce(mut events: Vec<LiveEvent>) -> Vec<LiveEvent> {
    let mut last: HashMap<Arc<str>, usize> = HashMap::new();
    let mut opened: HashMap<Arc<str>, usize> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        if let Some(subject) = &event.subject {
            last.insert(Arc::clone(subject), at);
            if event.name == event::ASK_OPENED {
                opened.insert(Arc::clone(subject), at);
            }
        }
    }
    let mut ended: HashSet<Arc<str>> = HashSet::new();
    for (subject, at) in &mut last {
        if events[*at].name == event::ASK_SETTLED {
            ended.insert(Arc::clone(subject));
        } else if let Some(opened) = opened.get(subject) {
            events[*opened].data = Arc::clone(&events[*at].data);
            *at = *opened;
        }
    }
    let is_left = |at: usize, event: &LiveEvent| {
        let Some(subject) = &event.subject else { return true };
        match subject.strip_prefix(REQUEST) {
            Some(ask) => !ended.contains(ask),
            None => last.get(subject) == Some(&at),
        }
    };
    events.into_iter().enumerate().filter(|(at, event)| is_left(*at, event)).map(|(_, event)| event).collect()
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

    #[track_caller]
    fn check(missed: Vec<LiveEvent>, expected: &[(u64, &str)]) {
        let left = coalesce(missed);
        let shown: Vec<_> = left.iter().map(|event| (event.id, event.name)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn of_several_events_about_one_ask_the_last_is_left() {
        check(
            vec![
                event(1, event::ASK_UPDATED, Some("ask/a")),
                event(2, event::SESSION_MESSAGE, None),
                event(3, event::ASK_UPDATED, Some("ask/a")),
                event(4, event::ASK_UPDATED, Some("ask/b")),
                event(5, event::ASK_SETTLED, Some("ask/b")),
            ],
            &[(2, event::SESSION_MESSAGE), (3, event::ASK_UPDATED), (5, event::ASK_SETTLED)],
        );
    }

    #[test]
    fn an_ask_opens_before_anybody_is_notified_of_it_and_as_it_stands_now() {
        let mut missed = vec![
            event(1, event::ASK_OPENED, Some("ask/a")),
            event(2, event::CLARIFICATION_REQUESTED, Some("request for ask/a")),
            event(3, event::ASK_UPDATED, Some("ask/a")),
        ];
        missed[2].data = "{\"state\":\"sent\"}".into();
        assert_eq!(&*coalesce(missed.clone())[0].data, "{\"state\":\"sent\"}");
        check(missed, &[(1, event::ASK_OPENED), (2, event::CLARIFICATION_REQUESTED)]);
    }

    #[test]
    fn nobody_is_notified_of_an_ask_that_has_ended() {
        check(
            vec![
                event(1, event::ASK_OPENED, Some("ask/a")),
                event(2, event::CLARIFICATION_REQUESTED, Some("request for ask/a")),
                event(3, event::CLARIFICATION_REQUESTED, Some("request for ask/b")),
                event(4, event::ASK_SETTLED, Some("ask/a")),
            ],
            &[(3, event::CLARIFICATION_REQUESTED), (4, event::ASK_SETTLED)],
        );
    }

    #[test]
    fn s37_streams_are_counted_and_bounded() {
        let events = Events::new(1, 10, 1_000);
        let first = events.enter("a", 3, 2).unwrap();
        let second = events.enter("a", 3, 2).unwrap();
        assert_eq!(events.enter("a", 3, 2).unwrap_err(), Crowded::Token);
        let other = events.enter("b", 3, 2).unwrap();
        assert_eq!(events.enter("c", 3, 2).unwrap_err(), Crowded::All);
        drop(first);
        assert_eq!(events.streams(), 2);
        drop((second, other));
        assert_eq!((events.streams(), lock(&events.streams).by_token.len()), (0, 0));
        assert!(events.enter("a", 1, 1).is_ok());
    }
}
