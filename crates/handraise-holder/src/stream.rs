//! One connection, from its welcome to its end: what is sent, what is taken, and when it counts as dead.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    time::Duration,
};

use futures_util::{
    SinkExt, StreamExt,
    stream::{FuturesUnordered, SplitSink},
};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{
        FrameKind, Respond, RespondBatch, RespondPermission, SessionCancel, SessionPrompt, VerdictQuery,
        action,
    },
};
use handraise_core::{
    Answer, AskId, Submission, SubmissionId,
    holder::{Receipt, Route, Verdict},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};

use crate::{
    Command, Reply, Timing,
    dial::Socket,
    settled::{Answered, InboxRefusal},
    state::{Sent, Shared, State},
    wire::{self, Incoming, shorten},
};

/// Requests of ours that wait for their response.
const WINDOW: usize = 256;
/// Responses of ours that wait to be written; then nothing more is read.
const MAX_REPLIES: usize = 64;
/// Commands of the inbox that wait to be taken up.
const MAX_COMMANDS: usize = 64;
/// Frames between the pump and the socket.
const WRITE_QUEUE: usize = 4;
/// Submissions in one batch.
const MAX_BATCH: usize = 1_000;

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
            message = stream.next(), if pump.replies.len() < MAX_REPLIES => {
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
            Some(answered) = pump.commands.next(), if !pump.commands.is_empty() => pump.command_answered(answered),
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

type CommandAnswer = (String, String, Result<(), ErrorBody>);

struct Pump<'a> {
    shared: &'a Shared,
    timing: Timing,
    next_id: u64,
    in_flight: BTreeMap<u64, (Sent, Instant)>,
    replies: VecDeque<Message>,
    commands: FuturesUnordered<Pin<Box<dyn Future<Output = CommandAnswer> + Send>>>,
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
            replies: VecDeque::new(),
            commands: FuturesUnordered::new(),
            heard: now,
            pinged: now,
            worked: false,
        }
    }

    fn is_done(&self) -> bool {
        self.replies.is_empty()
            && self.shared.look(|state| state.is_closing && (state.is_told() || !state.has_outgoing()))
    }

    fn has_outgoing(&self) -> bool {
        !self.replies.is_empty() || (self.in_flight.len() < WINDOW && self.shared.look(State::has_outgoing))
    }

    /// The next message to write: responses first.
    fn next(&mut self) -> Option<Message> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        let id = self.next_id;
        let (text, sent) = self.shared.change(|state, now| state.next_frame(id, now))?;
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
            self.replies.push_back(Message::Ping(Bytes::new()));
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
                        self.take_request(&frame);
                        Ok(())
                    }
                    // There are none that mean anything to a holder; unknown ones are ignored.
                    FrameKind::Event => Ok(()),
                }
            }
            Message::Ping(_) | Message::Pong(_) => Ok(()),
            Message::Close(_) => Err(Lost::Closed),
            Message::Binary(_) | Message::Frame(_) => Err(Lost::Garbage),
        }
    }

    fn take_response(&mut self, frame: &Incoming<'_>) -> Result<(), Lost> {
        let id = frame.id.as_ref().and_then(|id| id.parse::<u64>().ok());
        let Some((sent, _)) = id.and_then(|id| self.in_flight.remove(&id)) else { return Ok(()) };
        if let Some(failure) = frame.failure() {
            let message =
                wire::plain(failure.message.as_deref().unwrap_or("no reason given"), InboxRefusal::LONGEST);
            tracing::warn!(code = ?failure.code, request = ?sent, "the inbox did not take a request: {message}");
            match (&sent, failure.code.filter(|code| is_final(*code))) {
                (Sent::Notice(Receipt::Opened(ask)), Some(code)) => {
                    let refusal = InboxRefusal { code, message };
                    self.shared.change(|state, now| state.ask_refused(ask, refusal, now));
                }
                // It will never be taken, so it counts as told.
                (Sent::Notice(Receipt::Settled(_)) | Sent::Entry(_), Some(_)) => {}
                (Sent::Notice(_) | Sent::Entry(_), _) => return Err(Lost::Refused(message)),
            }
        }
        self.worked |= matches!(sent, Sent::Notice(Receipt::Snapshot { last: true }));
        self.shared.change(|state, _| state.acknowledged(&sent));
        self.shared.settled.notify_waiters();
        Ok(())
    }

    fn take_request(&mut self, frame: &Incoming<'_>) {
        // A request without an id cannot be answered; it is carried out all the same.
        let id = frame.id.as_deref().unwrap_or("");
        if let Some(reply) = self.answer(id, frame) {
            self.replies.push_back(Message::text(reply));
        }
    }

    /// Carries a request out. `None`: its response comes later.
    fn answer(&mut self, id: &str, frame: &Incoming<'_>) -> Option<String> {
        let name = frame.action.as_ref();
        let result = match name {
            action::RESPOND => frame.payload().map(|respond| Some(self.respond(id, name, respond))),
            action::RESPOND_PERMISSION => {
                frame.payload().map(|respond| Some(self.respond_permission(id, name, respond)))
            }
            action::RESPOND_BATCH => frame.payload().map(|batch| Some(self.respond_batch(id, name, batch))),
            action::VERDICT => frame.payload().map(|query| Some(self.verdict(id, name, &query))),
            action::SESSION_PROMPT => frame.payload().map(|SessionPrompt { session_id, text }| {
                self.command(id, name, |reply| Command::Prompt { session_id, text, reply })
            }),
            action::SESSION_CANCEL => frame.payload().map(|SessionCancel { session_id }| {
                self.command(id, name, |reply| Command::Cancel { session_id, reply })
            }),
            unknown => {
                let message = format!("this holder knows no action `{}`", shorten(unknown));
                let error = ErrorBody::new(ErrorCode::UnknownAction, message);
                return Some(wire::failure(id, &shorten(unknown), error));
            }
        };
        // The error may quote the payload, which may hold an answer: only its place is told.
        result.unwrap_or_else(|error| {
            let message = format!("the payload of `{name}` cannot be read at column {}", error.column());
            Some(bad_request(id, name, message))
        })
    }

    fn respond(&self, id: &str, name: &str, respond: Respond) -> String {
        match submission(respond) {
            Ok(submitted) => self.submit(id, name, submitted, Route::Elicitation),
            Err(message) => bad_request(id, name, message),
        }
    }

    fn respond_permission(&self, id: &str, name: &str, respond: RespondPermission) -> String {
        let RespondPermission { pending_id, submission_id, option_id, by, provenance } = respond;
        let rejected = option_id.is_none();
        let answers = option_id.map(|option| handraise_api::ask::Answer {
            question_id: PERMISSION_QUESTION.into(),
            selected_options: vec![option],
            custom_text: String::new(),
        });
        let answers = answers.into_iter().collect();
        let reject_reason = String::new();
        match submission(Respond {
            pending_id,
            submission_id,
            answers,
            rejected,
            reject_reason,
            by,
            provenance,
        }) {
            Ok(submitted) => self.submit(id, name, submitted, Route::Permission),
            Err(message) => bad_request(id, name, message),
        }
    }

    fn submit(&self, id: &str, name: &str, submitted: Submitted, route: Route) -> String {
        let Submitted { ask, submission, answered } = submitted;
        self.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            let verdict = engine.submit(now, &ask, &submission, route, courier);
            tracing::debug!(ask.id = %ask, submission.id = %submission.id, verdict = word(&verdict), "submission");
            if verdict == Verdict::Delivered {
                state.answerers.insert(ask.clone(), answered);
            }
            wire::verdict(id, name, &ask, verdict, now)
        })
    }

    fn respond_batch(&self, id: &str, name: &str, batch: RespondBatch) -> String {
        if batch.submissions.len() > MAX_BATCH {
            return bad_request(id, name, format!("a batch has at most {MAX_BATCH} submissions"));
        }
        let submissions: Result<Vec<_>, _> = batch.submissions.into_iter().map(submission).collect();
        let (submissions, answerers): (Vec<_>, Vec<_>) = match submissions {
            Ok(submitted) => submitted.into_iter().map(|it| ((it.ask, it.submission), it.answered)).unzip(),
            Err(message) => return bad_request(id, name, message),
        };
        self.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            match engine.submit_batch(now, &submissions, courier) {
                Ok(()) => {
                    for ((ask, _), answered) in submissions.iter().zip(answerers) {
                        state.answerers.insert(ask.clone(), answered);
                    }
                    wire::success(id, name)
                }
                Err((index, verdict)) => match submissions.get(index) {
                    Some((ask, _)) => wire::verdict(id, name, ask, verdict, now),
                    None => bad_request(id, name, "the batch could not be taken".into()),
                },
            }
        })
    }

    fn verdict(&self, id: &str, name: &str, query: &VerdictQuery) -> String {
        let ids = (AskId::new(&*query.pending_id), SubmissionId::new(&*query.submission_id));
        let (Ok(ask), Ok(submission)) = ids else {
            return bad_request(id, name, "pending_id or submission_id is no id".into());
        };
        self.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            let verdict = engine.verdict(now, &ask, &submission, courier);
            tracing::debug!(ask.id = %ask, submission.id = %submission, verdict = word(&verdict), "verdict asked");
            wire::verdict(id, name, &ask, verdict, now)
        })
    }

    /// Hands a command to whoever runs the sessions; its response comes when they reply.
    fn command(&self, id: &str, name: &str, command: impl FnOnce(Reply) -> Command) -> Option<String> {
        let (sender, answer) = oneshot::channel();
        let nobody = || ErrorBody::new(ErrorCode::NotFound, "this holder runs no sessions");
        let busy =
            || ErrorBody::new(ErrorCode::LimitExceeded, "too many commands wait in this holder; try again");
        let sent = self.shared.look(|state| match &state.commands {
            _ if self.commands.len() >= MAX_COMMANDS => Err(busy()),
            None => Err(nobody()),
            Some(commands) => commands.try_send(command(Reply(sender))).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => busy(),
                mpsc::error::TrySendError::Closed(_) => nobody(),
            }),
        });
        if let Err(error) = sent {
            return Some(wire::failure(id, name, error));
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        self.commands.push(Box::pin(async move {
            let dropped =
                || Err(ErrorBody::new(ErrorCode::Internal, "the holder did not take the command up"));
            (id, name, answer.await.unwrap_or_else(|_| dropped()))
        }));
        None
    }

    fn command_answered(&mut self, (id, name, result): CommandAnswer) {
        self.replies.push_back(Message::text(match result {
            Ok(()) => wire::success(&id, &name),
            Err(error) => wire::failure(&id, &name, error),
        }));
    }
}

/// The one question of a permission ask (acp.md, "Agent life").
const PERMISSION_QUESTION: &str = "permission";

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

/// A submission, and who sent it by the inbox's word: only the inbox writes `by` and `human` (S15).
struct Submitted {
    ask: AskId,
    submission: Submission,
    answered: Answered,
}

fn submission(respond: Respond) -> Result<Submitted, String> {
    let Respond { pending_id, submission_id, answers, rejected, reject_reason, by, provenance } = respond;
    let ask = AskId::new(pending_id).map_err(|error| format!("pending_id: {error}"))?;
    let id = SubmissionId::new(submission_id).map_err(|error| format!("submission_id: {error}"))?;
    let answers = answers.into_iter().map(Answer::from).collect();
    let answered =
        Answered { by: shorten(&by), provenance: provenance.into(), reject_reason: reject_reason.clone() };
    Ok(Submitted { ask, submission: Submission { id, answers, rejected, reject_reason }, answered })
}

fn bad_request(id: &str, name: &str, message: String) -> String {
    wire::failure(id, name, ErrorBody::new(ErrorCode::BadRequest, message))
}

/// A verdict for the log, which never holds an answer.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Delivered => "delivered",
        Verdict::Invalid(_) => "invalid",
        Verdict::Ended(_) => "ended",
        Verdict::Unseen => "unseen",
        Verdict::Unsuitable(_) => "unsuitable",
    }
}
