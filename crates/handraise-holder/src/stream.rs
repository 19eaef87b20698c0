//! One connection, from its welcome to its end: what is sent, what is taken, and when it counts as dead.

use std::{collections::BTreeMap, time::Duration};

use futures_util::{SinkExt, StreamExt, stream::SplitSink};
use handraise_api::{
    error::ErrorCode,
    frame::{FrameKind, action},
};
use handraise_core::{AskId, holder::Receipt};
use tokio::{sync::mpsc, time::Instant};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};

use crate::{
    Timing,
    dial::Socket,
    requests::Requests,
    settled::InboxRefusal,
    state::{Sent, Shared},
    wire::Incoming,
};

/// Requests of ours that wait for their response.
const WINDOW: usize = 256;
/// Responses of ours that wait to be written; then nothing more is read.
const MAX_REPLIES: usize = 64;
/// Frames between the pump and the socket.
const WRITE_QUEUE: usize = 4;
/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the inbox closed the stream")]
    Closed,
    #[error("the stream failed: {0}")]
    Broken(Box<tungstenite::Error>),
    #[error("the inbox sent something that is no frame")]
    Garbage,
    #[error("nothing came from the inbox for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the inbox did not acknowledge within {} s", .0.as_secs())]
    Unacknowledged(Duration),
    #[error("the inbox does not read what it is sent")]
    Lagging,
    #[error("the inbox could not take a request: {0}")]
    Refused(String),
}

impl From<tungstenite::Error> for Lost {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => Self::Closed,
            error => Self::Broken(Box::new(error)),
        }
    }
}

/// How a connection ended, and whether it had worked.
pub(crate) struct Finished {
    /// `None`: it was closed because everything is said.
    pub(crate) lost: Option<Lost>,
    /// Whether the inbox took the snapshot: the next attempt need not be cautious.
    pub(crate) worked: bool,
}

/// Runs a connection until it ends.
pub(crate) async fn run(shared: &Shared, socket: Socket, timing: Timing) -> Finished {
    let (sink, mut stream) = socket.split();
    let (writer, write) = mpsc::channel(WRITE_QUEUE);
    let mut writing = Aborts(tokio::spawn(write_all(sink, write, timing.dead_after)));
    let mut pump = Pump::new(shared, timing);
    let lost = loop {
        if pump.is_done() {
            break None;
        }
        let (has_outgoing, look_at) = (pump.has_outgoing(), pump.look_at());
        tokio::select! {
            message = stream.next(), if pump.requests.replies.len() < MAX_REPLIES => {
                let taken = match message {
                    Some(Ok(message)) => pump.take(&message),
                    Some(Err(error)) => Err(error.into()),
                    None => Err(Lost::Closed),
                };
                if let Err(lost) = taken {
                    break Some(lost);
                }
            }
            permit = writer.reserve(), if has_outgoing => match permit {
                Ok(permit) => if let Some(message) = pump.next() {
                    permit.send(message);
                },
                Err(_) => break Some(writing.lost().await),
            },
            lost = writing.lost() => break Some(lost),
            () = shared.outgoing.notified() => if shared.look(|state| state.engine.is_lagging()) {
                break Some(Lost::Lagging);
            },
            () = pump.requests.command_answered(), if pump.requests.has_commands() => {}
            () = tokio::time::sleep_until(look_at) => if let Err(lost) = pump.look() {
                break Some(lost);
            },
        }
    };
    if lost.is_none() {
        // What is queued still goes out, then the stream is closed in good order.
        drop(writer);
        let _ = tokio::time::timeout(timing.close, &mut writing.0).await;
    }
    Finished { lost, worked: pump.worked }
}

/// A task that does not outlive its owner.
struct Aborts(tokio::task::JoinHandle<Result<(), Lost>>);

impl Aborts {
    /// Waits until the task fails.
    async fn lost(&mut self) -> Lost {
        match (&mut self.0).await {
            Ok(Err(lost)) => lost,
            Ok(Ok(())) | Err(_) => Lost::Closed,
        }
    }
}

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Writes what comes; one that the inbox does not read for `patience` ends the connection.
async fn write_all(
    mut sink: SplitSink<Socket, Message>,
    mut messages: mpsc::Receiver<Message>,
    patience: Duration,
) -> Result<(), Lost> {
    while let Some(message) = messages.recv().await {
        tokio::time::timeout(patience, sink.send(message)).await.map_err(|_| Lost::Lagging)??;
    }
    sink.close().await.map_err(Lost::from)
}

struct Pump<'a> {
    shared: &'a Shared,
    timing: Timing,
    next_id: u64,
    in_flight: BTreeMap<u64, (Sent, Instant)>,
    requests: Requests<'a>,
    heard: Instant,
    pinged: Instant,
    worked: bool,
}

impl<'a> Pump<'a> {
    fn new(shared: &'a Shared, timing: Timing) -> Self {
        let now = Instant::now();
        Self {
            shared,
            timing,
            next_id: 1,
            in_flight: BTreeMap::new(),
            requests: Requests::new(shared),
            heard: now,
            pinged: now,
            worked: false,
        }
    }

    fn is_done(&self) -> bool {
        self.requests.replies.is_empty()
            && self.shared.look(|state| state.is_closing)
            && (self.shared.is_told() || !self.shared.has_outgoing())
    }

    fn has_outgoing(&self) -> bool {
        !self.requests.replies.is_empty() || (self.in_flight.len() < WINDOW && self.shared.has_outgoing())
    }

    /// The next message to write: responses first.
    fn next(&mut self) -> Option<Message> {
        if let Some(reply) = self.requests.replies.pop_front() {
            return Some(reply);
        }
        let id = self.next_id;
        let (text, sent) = self.shared.next_frame(id)?;
        if let Some(sent) = sent {
            self.next_id += 1;
            self.in_flight.insert(id, (sent, Instant::now()));
        } else {
            // Nobody acknowledges an event: with its writing all that can be done is done.
            self.shared.settled.notify_waiters();
        }
        Some(Message::text(text))
    }

    /// When [`look`](Self::look) is to be called next.
    fn look_at(&self) -> Instant {
        let oldest = self.in_flight.values().next().map(|(_, since)| *since + self.timing.dead_after);
        let ping = self.pinged.max(self.heard) + self.timing.ping_every;
        let silence = self.heard + self.timing.dead_after;
        oldest.into_iter().fold(ping.min(silence), Instant::min)
    }

    /// Pings a quiet inbox, and gives a dead one up.
    fn look(&mut self) -> Result<(), Lost> {
        let now = Instant::now();
        let dead_after = self.timing.dead_after;
        if now >= self.heard + dead_after {
            return Err(Lost::Silent(dead_after));
        }
        if self.in_flight.values().next().is_some_and(|(_, since)| now >= *since + dead_after) {
            return Err(Lost::Unacknowledged(dead_after));
        }
        if now >= self.pinged.max(self.heard) + self.timing.ping_every {
            self.pinged = now;
            self.requests.replies.push_back(Message::Ping(Bytes::new()));
        }
        Ok(())
    }

    fn take(&mut self, message: &Message) -> Result<(), Lost> {
        self.heard = Instant::now();
        match message {
            Message::Text(text) => {
                let frame = Incoming::read(text).ok_or(Lost::Garbage)?;
                match frame.kind {
                    FrameKind::Response => self.take_response(&frame),
                    FrameKind::Request => {
                        self.requests.take(&frame);
                        Ok(())
                    }
                    FrameKind::Event => {
                        self.hear(&frame);
                        Ok(())
                    }
                }
            }
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(Lost::Closed),
            Message::Binary(_) | Message::Frame(_) => Err(Lost::Garbage),
        }
    }

    /// An event of the inbox. What is not known here is ignored, and so is what cannot be read.
    fn hear(&self, frame: &Incoming<'_>) {
        match &*frame.action {
            action::OPERATORS_PRESENCE => {
                if let Ok(presence) = frame.payload() {
                    self.shared.operators.said(presence, self.shared.clock.boot_millis());
                }
            }
            action::FLAGS_CHANGED => {
                if let Ok(flags) = frame.payload() {
                    self.shared.flags_changed(flags);
                }
            }
            _ => {}
        }
    }

    fn take_response(&mut self, frame: &Incoming<'_>) -> Result<(), Lost> {
        let id = frame.id.as_ref().and_then(|id| id.parse::<u64>().ok());
        let Some((sent, _)) = id.and_then(|id| self.in_flight.remove(&id)) else { return Ok(()) };
        if let Some(failure) = frame.failure() {
            let message = failure.words();
            tracing::warn!(code = ?failure.code, request = ?sent, "the inbox did not take a request: {message}");
            match (&sent, failure.code.filter(|code| is_final(*code))) {
                (Sent::Notice(Receipt::Opened(ask)), Some(code)) => {
                    let refusal = InboxRefusal { code, message };
                    self.shared.change(|state, now| state.ask_refused(ask, refusal, now));
                }
                (Sent::Records, Some(code)) => {
                    self.shared.records.refused(code == ErrorCode::UnknownAction);
                }
                // It will never be taken, so it counts as told.
                (Sent::Notice(Receipt::Settled(_)) | Sent::Entry(_), Some(_)) => {}
                (Sent::Notice(_) | Sent::Entry(_) | Sent::Records, _) => return Err(Lost::Refused(message)),
            }
        }
        if matches!(sent, Sent::Notice(Receipt::Snapshot { .. })) {
            self.hear_of_refused(frame);
        }
        self.worked |= matches!(sent, Sent::Notice(Receipt::Snapshot { last: true }));
        self.shared.acknowledged(&sent);
        self.shared.settled.notify_waiters();
        Ok(())
    }

    /// Asks of a part of the snapshot that the inbox does not take: their askers hear of it as of any other.
    fn hear_of_refused(&self, frame: &Incoming<'_>) {
        for (ask, failure) in frame.refused() {
            let (Ok(ask), Some(code)) = (AskId::new(ask), failure.code.filter(|code| is_final(*code))) else {
                continue;
            };
            let refusal = InboxRefusal { code, message: failure.words() };
            tracing::warn!(ask.id = %ask, ?code, "the inbox did not take an ask of the snapshot: {}", refusal.message);
            self.shared.change(|state, now| state.ask_refused(&ask, refusal, now));
        }
    }
}

/// Whether the inbox will say the same the next time.
fn is_final(code: ErrorCode) -> bool {
    match code {
        ErrorCode::Invalid
        | ErrorCode::NotFound
        | ErrorCode::NotOwner
        | ErrorCode::ContentChanged
        | ErrorCode::Unseen
        | ErrorCode::UnknownAction
        | ErrorCode::BadRequest
        | ErrorCode::LimitExceeded => true,
        ErrorCode::HolderNotConnected
        | ErrorCode::VerdictUnknown
        | ErrorCode::StaleEpoch
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::Misdirected
        | ErrorCode::RateLimited
        | ErrorCode::Internal => false,
    }
}
