//! A session as others see it: its state, and what was said in it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use handraise_acp::update;
use handraise_api::{
    frame::SessionUpdated,
    session::{Author, Message, MessageKind, Session, SessionState},
};
use handraise_holder::{Holder, NewMessage};
use handraise_transport::clock::SharedClock;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::output::Printer;

/// The longest title taken from a prompt, in characters.
const TITLE: usize = 80;
/// How long pieces of text are gathered before they are handed on as one.
const GATHER: Duration = Duration::from_millis(100);

/// Tells the holder and stdout what happens in a session, in one order for both.
pub(crate) struct Transcript {
    holder: Holder,
    printer: Printer,
    clock: SharedClock,
    state: Mutex<State>,
}

struct State {
    session: SessionUpdated,
    started_at: Timestamp,
    has_inbox: bool,
    next: u64,
    gathered: update::Transcript,
    /// Whether somebody will come and hand on what is gathered.
    is_due: bool,
}

impl Transcript {
    pub(crate) fn new(
        holder: Holder,
        printer: Printer,
        clock: SharedClock,
        session: SessionUpdated,
        has_inbox: bool,
    ) -> Arc<Self> {
        let started_at = clock.wall();
        let gathered = update::Transcript::default();
        let state = State { session, started_at, has_inbox, next: 0, gathered, is_due: false };
        Arc::new(Self { holder, printer, clock, state: Mutex::new(state) })
    }

    /// `session/update`.
    pub(crate) async fn update(self: &Arc<Self>, params: &Value) {
        let mut state = self.state.lock().await;
        if let Some(title) = update::title_of(params) {
            state.session.title = Some(title);
            self.announce(&state).await;
        }
        let mut entries = Vec::new();
        state.gathered.take(params, &mut entries);
        self.append_all(&mut state, entries).await;
        let background = state.session.state == SessionState::Idle && state.gathered.has_calls_under_way();
        if state.session.background != background {
            state.session.background = background;
            self.announce(&state).await;
        }
        if state.gathered.is_gathering() && !state.is_due {
            state.is_due = true;
            tokio::spawn(hand_on_later(Arc::downgrade(self)));
        }
    }

    /// Hands on what is gathered, so that what happens next stands after it.
    pub(crate) async fn flush(&self) {
        let mut state = self.state.lock().await;
        let mut entries = Vec::new();
        state.gathered.flush(&mut entries);
        self.append_all(&mut state, entries).await;
    }

    /// A prompt is on its way.
    pub(crate) async fn prompted(&self, text: &str) {
        let mut state = self.state.lock().await;
        self.end_message(&mut state).await;
        state.session.state = SessionState::Running;
        state.session.stop_reason = None;
        state.session.background = false;
        if state.session.title.is_none() {
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            state.session.title = Some(line.trim().chars().take(TITLE).collect());
        }
        self.append(&mut state, entry(MessageKind::UserText, Author::Operator, text, Map::new())).await;
        self.announce(&state).await;
    }

    /// The turn ended. What was under way then goes on in the background, unless the turn was broken off.
    pub(crate) async fn turn_ended(&self, stop_reason: &str) {
        let mut state = self.state.lock().await;
        self.end_message(&mut state).await;
        if matches!(stop_reason, "cancelled" | "error") {
            state.gathered.forget_calls();
        }
        state.session.background = state.gathered.has_calls_under_way();
        state.session.state = SessionState::Idle;
        state.session.stop_reason = Some(stop_reason.to_owned());
        let metadata = Map::from_iter([("stop_reason".to_owned(), json!(stop_reason))]);
        self.append(&mut state, entry(MessageKind::TurnEnded, Author::System, "", metadata)).await;
        self.announce(&state).await;
    }

    /// Something about the session itself.
    pub(crate) async fn notice(&self, text: &str) {
        let mut state = self.state.lock().await;
        self.end_message(&mut state).await;
        self.append(&mut state, entry(MessageKind::Notice, Author::System, text, Map::new())).await;
    }

    /// The agent is gone.
    pub(crate) async fn ended(&self) {
        let mut state = self.state.lock().await;
        self.end_message(&mut state).await;
        state.session.state = SessionState::Ended;
        state.session.background = false;
        self.announce(&state).await;
    }

    /// Announces the session as it stands.
    pub(crate) async fn tell(&self) {
        self.announce(&*self.state.lock().await).await;
    }

    /// How the last turn ended, if there was one.
    pub(crate) async fn stop_reason(&self) -> Option<String> {
        self.state.lock().await.session.stop_reason.clone()
    }

    async fn announce(&self, state: &State) {
        self.holder.session_updated(state.session.clone());
        self.printer.session(&state.as_api(self.clock.wall())).await;
    }

    async fn end_message(&self, state: &mut State) {
        let mut entries = Vec::new();
        state.gathered.finish(&mut entries);
        self.append_all(state, entries).await;
    }

    async fn append_all(&self, state: &mut State, entries: Vec<update::Entry>) {
        for entry in entries {
            self.append(state, entry).await;
        }
    }

    async fn append(&self, state: &mut State, entry: update::Entry) {
        let update::Entry { kind, author, text, continues, metadata } = entry;
        let session_id = state.session.session_id.clone();
        let message = NewMessage {
            session_id: session_id.clone(),
            kind,
            author,
            text,
            continues,
            requests_input: false,
            metadata,
        };
        self.holder.session_message(message.clone());
        let NewMessage { text, metadata, .. } = message;
        let (seq, at) = (state.next, self.clock.wall());
        state.next += 1;
        let message =
            Message { seq, session_id, at, kind, author, text, continues, requests_input: false, metadata };
        self.printer.message(&message).await;
    }
}

fn entry(kind: MessageKind, author: Author, text: &str, metadata: Map<String, Value>) -> update::Entry {
    update::Entry { kind, author, text: text.to_owned(), continues: false, metadata }
}

async fn hand_on_later(transcript: Weak<Transcript>) {
    tokio::time::sleep(GATHER).await;
    if let Some(transcript) = transcript.upgrade() {
        transcript.state.lock().await.is_due = false;
        transcript.flush().await;
    }
}

impl State {
    fn as_api(&self, now: Timestamp) -> Session {
        let SessionUpdated { session_id, agent, title, cwd, state, stop_reason, background } =
            self.session.clone();
        Session {
            id: session_id,
            agent,
            title,
            cwd,
            state,
            stop_reason,
            background,
            pending_action: None,
            waiting: 0,
            holder_connected: self.has_inbox,
            holder_token: String::new(),
            started_at: self.started_at,
            updated_at: now,
        }
    }
}
