//! Live events of the inbox: Server-Sent Events over its socket, resumed after a loss.

use std::time::Duration;

use anyhow::bail;
use http_body_util::BodyExt as _;
use hyper::{StatusCode, body::Incoming};
use tokio::time::Instant;

use crate::inbox::{Inbox, Reached, Refusal};

/// The inbox says something at least every 15 seconds; one that is quiet for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Waits between attempts to reach the inbox again: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// The most bytes of one event.
const MAX_EVENT: usize = 128 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its number, when it has one.
    pub(crate) id: Option<u64>,
    /// Its name, as in [`handraise_api::event`].
    pub(crate) name: String,
    /// The API object as JSON text.
    pub(crate) data: String,
}

/// What a stream of events has to say.
#[derive(Debug)]
pub(crate) enum Said {
    /// Something happened.
    Event(Event),
    /// The inbox cannot be reached; it is tried again until it can.
    Lost,
    /// It is there again.
    Back,
}

/// The events of an inbox, for as long as they are wanted.
pub(crate) struct Live {
    inbox: Inbox,
    stream: Option<(Incoming, Parser)>,
    heard: Instant,
    ready: Vec<Event>,
    last: Option<u64>,
    retry_at: Instant,
    wait: Duration,
}

impl Live {
    /// Opens the stream.
    ///
    /// # Errors
    /// When the inbox does not give it out.
    pub(crate) async fn open(inbox: Inbox) -> anyhow::Result<Reached<Self>> {
        let Reached::Answer(body) = inbox.events(None).await? else { return Ok(Reached::NotRunning) };
        let now = Instant::now();
        Ok(Reached::Answer(Self {
            inbox,
            stream: Some((body, Parser::default())),
            heard: now,
            ready: Vec::new(),
            last: None,
            retry_at: now,
            wait: RETRY.0,
        }))
    }

    /// Waits for the next thing. May be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// When the inbox is there and will not give the events out any more.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Said> {
        loop {
            if let Some(event) = self.ready.pop() {
                self.last = event.id.or(self.last);
                return Ok(Said::Event(event));
            }
            let Some((body, parser)) = &mut self.stream else {
                tokio::time::sleep_until(self.retry_at).await;
                if self.reconnect().await? {
                    return Ok(Said::Back);
                }
                continue;
            };
            let frame = tokio::time::timeout_at(self.heard + SILENCE, body.frame()).await;
            let Ok(Some(Ok(frame))) = frame else {
                self.stream = None;
                self.retry_at = Instant::now();
                return Ok(Said::Lost);
            };
            let events = frame.into_data().map_or(Ok(Vec::new()), |data| parser.push(&data));
            self.heard = Instant::now();
            self.ready = events?;
            self.ready.reverse();
        }
    }

    /// Tries once; says whether the stream is open again.
    async fn reconnect(&mut self) -> anyhow::Result<bool> {
        // Set first: this call may be dropped while it waits.
        self.retry_at = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(RETRY.1);
        match self.inbox.events(self.last).await {
            // One that goes down or comes up may break off in the middle of everything.
            Err(error) if !is_final(&error) => Ok(false),
            Err(error) => Err(error),
            Ok(Reached::NotRunning) => Ok(false),
            Ok(Reached::Answer(body)) => {
                self.stream = Some((body, Parser::default()));
                self.heard = Instant::now();
                self.wait = RETRY.0;
                Ok(true)
            }
        }
    }
}

/// Whether the inbox will say the same the next time: this token is not good any more.
fn is_final(error: &anyhow::Error) -> bool {
    let refusal = error.downcast_ref::<Refusal>();
    refusal.is_some_and(|refusal| matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN))
}

/// Reads Server-Sent Events from a stream that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    rest: Vec<u8>,
    id: Option<u64>,
    name: String,
    data: String,
    has_data: bool,
}

impl Parser {
    /// The events that a piece completes.
    ///
    /// # Errors
    /// When one is larger than any event of ours.
    pub(crate) fn push(&mut self, piece: &[u8]) -> anyhow::Result<Vec<Event>> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if self.rest.len() + self.data.len() > MAX_EVENT {
                bail!("the inbox sends an event of more than {MAX_EVENT} bytes");
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.rest);
                let line = String::from_utf8_lossy(&line);
                events.extend(self.line(line.trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(events)
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            let has_data = std::mem::take(&mut self.has_data);
            return has_data.then(|| Event { id: self.id.take(), name, data });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = value.parse().ok(),
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // A comment, or a field that means nothing here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event(id: Option<u64>, name: &str, data: &str) -> Event {
        Event { id, name: name.into(), data: data.into() }
    }

    #[test]
    fn events_end_with_an_empty_line_and_comments_mean_nothing() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b": hello\n\nid: 7\nevent: ask.opened\nda").unwrap(), []);
        assert_eq!(parser.push(b"ta: {}\r\n").unwrap(), []);
        assert_eq!(parser.push(b"\r\n").unwrap(), [event(Some(7), "ask.opened", "{}")]);
        assert_eq!(
            parser.push(b"data:a\ndata: b\n\nid: 8\n\n").unwrap(),
            [event(None, "", "a\nb")],
            "an event without data is none"
        );
        assert_eq!(parser.push(b"data: \xff\n\n").unwrap(), [event(Some(8), "", "\u{fffd}")]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut parser = Parser::default();
        parser.push(b"data: ").unwrap();
        let piece = vec![b'x'; MAX_EVENT / 4];
        let outcomes: Vec<bool> = (0..5).map(|_| parser.push(&piece).is_ok()).collect();
        assert_eq!(outcomes.first(), Some(&true));
        assert_eq!(outcomes.last(), Some(&false));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_stream_is_cut(cuts in prop::collection::vec(0usize..80, 0..6)) {
            let text = "id: 1\nevent: a\ndata: {\"é\":1}\n\n: x\n\nid: 2\nevent: b\ndata: 1\ndata: 2\n\n";
            let whole = Parser::default().push(text.as_bytes()).unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut parser, mut events, mut from) = (Parser::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                events.extend(parser.push(&text.as_bytes()[from..cut]).unwrap());
                from = cut;
            }
            prop_assert_eq!(events, whole);
        }

        #[test]
        fn reading_is_total(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Parser::default().push(&bytes);
        }
    }
}
