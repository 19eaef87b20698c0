//! The session of an agent: its introduction, then one turn after the other.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use agent_client_protocol::{Agent, ConnectionTo, Error, UntypedMessage};
use handraise_api::error::{ErrorBody, ErrorCode};
use handraise_holder::Command;
use handraise_transport::{
    escape,
    lines::{Line, Lines, LinesError},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{
    AgentError, AgentSettings, Ended, PromptLines,
    asks::{Asks, Peer},
    connection::Closed,
    driver::maybe,
    introduce::{Introduction, refused, untyped},
    link::Link,
    process::Process,
    transcript::Transcript,
};

/// How long a turn that was cancelled for its silence may take to end.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// How long a turn may take to end when we are going down ourselves.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
/// How long the pipes of an agent that has exited may stay open.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How often the idle clock looks again while a human is waited for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The longest prompt line that is attached, in bytes.
const MAX_PROMPT: usize = 1024 * 1024;

type Turn = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send>>;

/// What drives one session.
pub(crate) struct Turns<'a> {
    pub(crate) settings: AgentSettings,
    pub(crate) session_id: String,
    pub(crate) takes_forms: bool,
    pub(crate) link: Arc<Link>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) transcript: Arc<Transcript>,
    pub(crate) process: &'a mut Process,
    pub(crate) peer: Arc<OnceLock<Peer>>,
    pub(crate) closed: oneshot::Receiver<Closed>,
    pub(crate) commands: mpsc::Receiver<Command>,
}

/// What the loop waits for.
enum Event {
    TurnEnded(Result<Value, Error>),
    Closed(Closed),
    Exited,
    Shutdown,
    Command(Option<Command>),
    Line(Result<Option<Line>, LinesError>),
    Time,
}

/// A moment at which patience ends, and with what.
#[derive(Clone, Copy)]
struct Patience {
    /// Milliseconds of the boot clock.
    until: u64,
    with: Impatience,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Impatience {
    /// The agent was silent, and its turn was cancelled for it.
    Silence,
    /// We are going down.
    Shutdown,
    /// The process has exited.
    Exit,
}

/// Who can still be waited for.
struct OpenEnds {
    process: bool,
    commands: bool,
}

/// What the loop knows.
struct State {
    cx: ConnectionTo<Agent>,
    /// The agent's own id of the session.
    session: String,
    turn: Option<Turn>,
    closed: Option<Closed>,
    is_ending: bool,
    patience: Option<Patience>,
    open_ends: OpenEnds,
    attached: Option<Lines<PromptLines>>,
    /// Whether the end of a turn with nothing attached is the end of the run.
    ends_with_turn: bool,
    look_again: u64,
}

impl Turns<'_> {
    pub(crate) async fn run(
        mut self,
        cx: ConnectionTo<Agent>,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Ended, AgentError> {
        let introduced = {
            let patience =
                self.link.clock().sleep_until(millis_after(&self.link, self.settings.idle_timeout));
            let idle = self.settings.idle_timeout;
            let introduction = Introduction::new(&self.settings, self.takes_forms).carry_out(&cx);
            tokio::select! {
                introduced = introduction => introduced,
                () = patience => return Err(AgentError::Silent(idle)),
                () = &mut shutdown => return Ok(Ended::Stopped),
            }
        };
        let peer = match introduced {
            Ok(peer) => peer,
            Err(error) if self.link.is_alive() => return Err(error),
            Err(_) => return Err(self.why_closed().await.before_a_session()),
        };
        let session = peer.session.clone();
        // Set once: this runs once.
        let _ = self.peer.set(peer);
        self.transcript.tell().await;
        let attached = self.settings.attach.take().map(|lines| Lines::new(lines, MAX_PROMPT));
        let prompt = self.settings.prompt.take();
        let mut state = State {
            cx,
            session,
            turn: None,
            closed: None,
            is_ending: false,
            patience: None,
            open_ends: OpenEnds { process: true, commands: true },
            ends_with_turn: prompt.is_some() || attached.is_some(),
            attached,
            look_again: 0,
        };
        if let Some(prompt) = prompt {
            self.prompt(&mut state, &prompt).await?;
        }
        loop {
            let event = self.next(&mut state, shutdown.as_mut()).await;
            if let Some(result) = self.react(&mut state, event).await {
                return result;
            }
        }
    }

    async fn next(&mut self, state: &mut State, shutdown: Pin<&mut impl Future<Output = ()>>) -> Event {
        let wakes_at = match state.patience {
            Some(patience) => patience.until,
            None => self.idle_until().max(state.look_again),
        };
        let time = self.link.clock().sleep_until(wakes_at);
        let takes_lines = state.turn.is_none();
        tokio::select! {
            biased;
            // A turn's end and what the agent said before come before its going away.
            result = maybe(state.turn.as_mut()) => Event::TurnEnded(result),
            closed = &mut self.closed, if state.closed.is_none() => {
                Event::Closed(closed.unwrap_or(Closed::End))
            }
            _ = self.process.wait(), if state.open_ends.process => Event::Exited,
            () = shutdown, if !state.is_ending => Event::Shutdown,
            command = self.commands.recv(), if state.open_ends.commands => Event::Command(command),
            line = next_line(state.attached.as_mut()), if takes_lines => Event::Line(line),
            () = time => Event::Time,
        }
    }

    /// `Some` when the run is over.
    async fn react(&mut self, state: &mut State, event: Event) -> Option<Result<Ended, AgentError>> {
        match event {
            Event::TurnEnded(result) => self.turn_ended(state, result).await,
            Event::Closed(closed) => {
                let turn_is_over = state.turn.is_none();
                state.closed = Some(closed);
                // The protocol crate fails the open prompt once it has handled everything before the end.
                if turn_is_over { Some(self.finish(state).await) } else { None }
            }
            Event::Exited => {
                state.open_ends.process = false;
                state.patience = Some(self.patience(EXIT_GRACE, Impatience::Exit));
                None
            }
            Event::Shutdown => {
                state.is_ending = true;
                if state.turn.is_none() {
                    self.asks.shut_down();
                    return Some(Ok(Ended::Stopped));
                }
                Self::send_cancel(state);
                self.asks.shut_down();
                state.patience = Some(self.patience(SHUTDOWN_GRACE, Impatience::Shutdown));
                None
            }
            Event::Command(Some(command)) => self.command(state, command).await,
            Event::Command(None) => {
                state.open_ends.commands = false;
                None
            }
            Event::Line(Ok(Some(line))) => {
                let text = line.lossy().into_owned();
                self.prompt(state, &text).await.err().map(Err)
            }
            Event::Line(ended) => {
                if let Err(error) = ended {
                    tracing::warn!(%error, "no more prompts are read from stdin");
                }
                state.attached = None;
                let last = self.transcript.stop_reason().await;
                Some(Ok(last.map_or(Ended::Stopped, |stop_reason| Ended::Turn { stop_reason })))
            }
            Event::Time => self.time(state).await,
        }
    }

    async fn prompt(&mut self, state: &mut State, text: &str) -> Result<(), AgentError> {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": state.session, "prompt": prompt});
        let message = untyped("session/prompt", &params)?;
        self.transcript.prompted(text).await;
        self.link.sign_of_life();
        state.turn = Some(Box::pin(state.cx.send_request(message).block_task()));
        Ok(())
    }

    async fn turn_ended(
        &mut self,
        state: &mut State,
        result: Result<Value, Error>,
    ) -> Option<Result<Ended, AgentError>> {
        state.turn = None;
        if state.patience.is_some_and(|patience| patience.with == Impatience::Silence) {
            state.patience = None;
        }
        let result = match result {
            Ok(reply) => {
                let word = reply.get("stopReason").and_then(Value::as_str).unwrap_or("unknown");
                let stop_reason = escape::shortened(word, 100);
                self.transcript.turn_ended(&stop_reason).await;
                Ok(Ended::Turn { stop_reason })
            }
            Err(_) if !self.link.is_alive() => {
                self.transcript.turn_ended("error").await;
                return if state.closed.is_some() { Some(self.finish(state).await) } else { None };
            }
            Err(error) => {
                let error = refused("session/prompt", &error);
                tracing::warn!("a turn failed: {error}");
                self.transcript.notice(&error.to_string()).await;
                self.transcript.turn_ended("error").await;
                Err(error)
            }
        };
        let is_over = state.is_ending || (state.ends_with_turn && state.attached.is_none());
        if is_over {
            Some(result)
        } else if state.closed.is_some() {
            Some(self.finish(state).await)
        } else {
            None
        }
    }

    async fn command(&mut self, state: &mut State, command: Command) -> Option<Result<Ended, AgentError>> {
        match command {
            Command::Prompt { session_id, text, reply } => {
                if session_id != self.session_id {
                    reply.send(Err(unknown_session(&session_id)));
                } else if state.turn.is_some() || state.is_ending {
                    let message = "a turn is under way; wait for its end or cancel it";
                    reply.send(Err(ErrorBody::new(ErrorCode::BadRequest, message)));
                } else {
                    let prompted = self.prompt(state, &text).await;
                    reply.send(Ok(()));
                    return prompted.err().map(Err);
                }
            }
            Command::Cancel { session_id, reply } => {
                if session_id == self.session_id {
                    Self::send_cancel(state);
                    self.asks.turn_cancelled(state.turn.is_some());
                    reply.send(Ok(()));
                } else {
                    reply.send(Err(unknown_session(&session_id)));
                }
            }
        }
        None
    }

    /// Tells the agent to end its turn. Its asks are to be answered right after: some agents wait for that, and know
    /// from the order why they are cancelled.
    fn send_cancel(state: &State) {
        let params = json!({"sessionId": state.session});
        let sent = UntypedMessage::new("session/cancel", params)
            .and_then(|message| state.cx.send_notification(message));
        if let Err(error) = sent {
            tracing::warn!(code = i32::from(error.code), "session/cancel could not be sent");
        }
    }

    async fn time(&mut self, state: &mut State) -> Option<Result<Ended, AgentError>> {
        let now = self.link.clock().boot_millis();
        if let Some(patience) = state.patience {
            if now < patience.until {
                return None;
            }
            return Some(match patience.with {
                Impatience::Silence => Err(AgentError::Silent(self.settings.idle_timeout)),
                Impatience::Exit => Err(self.process.ended().await),
                Impatience::Shutdown => {
                    self.transcript.turn_ended("cancelled").await;
                    Ok(Ended::Turn { stop_reason: "cancelled".to_owned() })
                }
            });
        }
        if now < self.idle_until() {
            return None;
        }
        if self.asks.any_open() {
            // The human has the answer timeout; the agent's clock starts when the last ask has ended.
            state.look_again = millis_after(&self.link, LOOK_AGAIN);
            return None;
        }
        if state.turn.is_none() {
            tracing::info!("the agent had nothing to do for {:?} and is stopped", self.settings.idle_timeout);
            return Some(Ok(Ended::Idle));
        }
        tracing::warn!("the agent said nothing for {:?}; its turn is cancelled", self.settings.idle_timeout);
        Self::send_cancel(state);
        self.asks.turn_cancelled(true);
        state.patience = Some(self.patience(CANCEL_GRACE, Impatience::Silence));
        None
    }

    fn idle_until(&self) -> u64 {
        let idle = u64::try_from(self.settings.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        self.link.last_sign().saturating_add(idle)
    }

    fn patience(&self, span: Duration, with: Impatience) -> Patience {
        Patience { until: millis_after(&self.link, span), with }
    }

    /// The connection is closed and no turn is open.
    async fn finish(&mut self, state: &mut State) -> Result<Ended, AgentError> {
        match state.closed.take() {
            Some(Closed::TooLong { limit }) => Err(AgentError::LineTooLong { limit }),
            Some(Closed::Failed(error)) => Err(AgentError::Broken(error.to_string())),
            Some(Closed::End) | None => {
                if state.is_ending {
                    return Ok(Ended::Stopped);
                }
                let error = self.process.ended().await;
                let was_expected = state.ends_with_turn
                    || !matches!(&error, AgentError::Ended { how, .. } if how == "with exit status 0");
                if was_expected { Err(error) } else { Ok(Ended::Left) }
            }
        }
    }

    /// Why there is no connection, before a session was open.
    async fn why_closed(&mut self) -> AgentError {
        match (&mut self.closed).await {
            Ok(Closed::TooLong { limit }) => AgentError::LineTooLong { limit },
            Ok(Closed::Failed(error)) => AgentError::Broken(error.to_string()),
            Ok(Closed::End) | Err(_) => self.process.ended().await,
        }
    }
}

fn millis_after(link: &Link, span: Duration) -> u64 {
    link.clock().boot_millis().saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

async fn next_line(lines: Option<&mut Lines<PromptLines>>) -> Result<Option<Line>, LinesError> {
    match lines {
        Some(lines) => lines.next().await,
        None => std::future::pending().await,
    }
}

fn unknown_session(session_id: &str) -> ErrorBody {
    let shown = escape::shortened(session_id, 64);
    ErrorBody::new(ErrorCode::NotFound, format!("session {shown} is not run by this process"))
}
