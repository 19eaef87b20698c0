//! A scripted inbox on the other end of a real holder stream: it acknowledges everything and does as the test says.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{SinkExt as _, StreamExt as _};
use handraise_agentctl::{AgentError, AgentSettings, Ended, run};
use handraise_api::{
    frame::{Flags, Frame, FrameKind, Limits, Welcome, action},
    words::{HolderKind, Who},
};
use handraise_holder::{Holder, HolderSettings, InboxAddress, Timing, Token};
use handraise_transport::clock::ManualClock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

use crate::support::{PATIENCE, Stdout, eventually};

/// The inbox, and the holder that is connected to it.
pub(crate) struct Inbox {
    pub(crate) holder: Holder,
    pub(crate) clock: ManualClock,
    to_holder: mpsc::UnboundedSender<String>,
    seen: Arc<Seen>,
    next_id: u64,
    submissions: u64,
    _dir: TempDir,
}

/// Everything that the holder sent, as (action, payload).
#[derive(Default)]
struct Seen {
    frames: Mutex<Vec<(String, Value)>>,
    /// What no test step has waited for yet.
    fresh: Mutex<VecDeque<(String, Value)>>,
    responses: Mutex<Vec<Value>>,
    hung_up: AtomicBool,
    changed: Notify,
}

fn flags(acp_elicitation: bool) -> Flags {
    Flags { acp_elicitation, elicitation: true, adaptive_profiles: false }
}

impl Inbox {
    /// An inbox whose flag `features.acpElicitation` is on.
    pub(crate) async fn start() -> Self {
        Self::with_flag(true).await
    }

    pub(crate) async fn with_flag(acp_elicitation: bool) -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("inbox.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let (to_holder, from_test) = mpsc::unbounded_channel();
        let seen = Arc::new(Seen::default());
        tokio::spawn(serve(listener, acp_elicitation, Arc::clone(&seen), from_test));
        let clock = ManualClock::new();
        let settings = HolderSettings {
            inbox: InboxAddress::Socket(path),
            token: Token::new("token"),
            kind: HolderKind::Agent,
            who: Who::Operator,
            version: "0.1.0".to_owned(),
            host: "test".to_owned(),
            clock: Arc::new(clock.clone()),
            timing: Timing::default(),
        };
        let holder = Holder::connect(settings).await.unwrap();
        Self { holder, clock, to_holder, seen, next_id: 0, submissions: 0, _dir: dir }
    }

    /// Starts an agent that asks here.
    pub(crate) fn run(&self, mut settings: AgentSettings) -> Running {
        settings.clock = Arc::new(self.clock.clone());
        let stdout = Stdout::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move {
            // A dropped sender is no order to stop.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let task = tokio::spawn(run(settings, Some(self.holder.clone()), stdout.clone(), shutdown));
        Running { task, stdout, stop: Some(stop) }
    }

    /// The payload of the next frame with this action that no step has waited for yet.
    pub(crate) async fn next(&self, action: &str) -> Value {
        let found = self.wait(|seen| {
            let mut fresh = seen.fresh.lock().unwrap();
            let at = fresh.iter().position(|(seen, _)| seen == action)?;
            fresh.remove(at)
        });
        let (_, payload) = tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| {
            panic!("no {action} came; what came: {:?}", self.seen.frames.lock().unwrap())
        });
        payload
    }

    /// The next ask that was opened.
    pub(crate) async fn opened(&self) -> Value {
        self.next(action::ASK_OPENED).await["ask"].take()
    }

    /// How the next ask ended: outcome, provenance, wire, reason.
    pub(crate) async fn settled(&self) -> (String, String, Value, Value) {
        let mut settled = self.next(action::ASK_SETTLED).await;
        let settlement = &mut settled["settlement"];
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        (
            word(&settlement["outcome"]),
            word(&settlement["provenance"]),
            settlement["wire"].take(),
            settlement["reason"].take(),
        )
    }

    /// Waits until the holder has gone: then the inbox has heard everything.
    pub(crate) async fn hung_up(&self) {
        let gone = self.wait(|seen| seen.hung_up.load(Ordering::SeqCst).then_some(()));
        tokio::time::timeout(PATIENCE, gone).await.expect("the holder hangs up");
    }

    /// Every payload with this action so far.
    pub(crate) fn all(&self, action: &str) -> Vec<Value> {
        let frames = self.seen.frames.lock().unwrap();
        frames.iter().filter(|(seen, _)| seen == action).map(|(_, payload)| payload.clone()).collect()
    }

    async fn wait<T>(&self, mut look: impl FnMut(&Seen) -> Option<T>) -> T {
        loop {
            let changed = self.seen.changed.notified();
            if let Some(found) = look(&self.seen) {
                return found;
            }
            changed.await;
        }
    }

    /// Sends a request and waits for the holder's response.
    pub(crate) async fn request(&mut self, action: &str, payload: Value) -> Value {
        self.next_id += 1;
        let id = format!("t{}", self.next_id);
        let frame = json!({"id": id, "type": "request", "action": action, "payload": payload});
        self.to_holder.send(frame.to_string()).unwrap();
        let response = self.wait(|seen| {
            let mut responses = seen.responses.lock().unwrap();
            let at = responses.iter().position(|response| response["id"] == id.as_str())?;
            Some(responses.remove(at))
        });
        tokio::time::timeout(PATIENCE, response).await.expect("the holder responds")
    }

    /// Answers an ask: `answers` are (question, selected, text).
    pub(crate) async fn answer(&mut self, ask: &Value, answers: &[(&str, &[&str], &str)]) -> Value {
        let answers: Vec<Value> = answers
            .iter()
            .map(|(question, selected, text)| {
                json!({"question_id": question, "selected_options": selected, "custom_text": text})
            })
            .collect();
        let payload = self.submission(ask, json!({"answers": answers, "rejected": false}));
        self.request(action::RESPOND, payload).await
    }

    /// Skips an ask.
    pub(crate) async fn skip(&mut self, ask: &Value) -> Value {
        let payload = self.submission(ask, json!({"answers": [], "rejected": true}));
        self.request(action::RESPOND, payload).await
    }

    /// Picks an option of a permission, or skips it.
    pub(crate) async fn permit(&mut self, ask: &Value, option: Option<&str>) -> Value {
        let payload = self.submission(ask, json!({"option_id": option}));
        self.request(action::RESPOND_PERMISSION, payload).await
    }

    fn submission(&mut self, ask: &Value, mut payload: Value) -> Value {
        self.submissions += 1;
        payload["pending_id"] = ask["id"].clone();
        payload["submission_id"] = json!(format!("submission-{}", self.submissions));
        payload["by"] = json!("ada");
        payload["provenance"] = json!("human");
        payload
    }
}

async fn serve(
    listener: UnixListener,
    acp_elicitation: bool,
    seen: Arc<Seen>,
    mut from_test: mpsc::UnboundedReceiver<String>,
) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut socket = accept_async(stream).await.unwrap();
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => take(&text, acp_elicitation, &seen, &mut socket).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
            },
            Some(frame) = from_test.recv() => socket.send(Message::text(frame)).await.unwrap(),
        }
    }
    seen.hung_up.store(true, Ordering::SeqCst);
    seen.changed.notify_waiters();
}

async fn take(text: &str, acp_elicitation: bool, seen: &Seen, socket: &mut WebSocketStream<UnixStream>) {
    let frame: Frame = serde_json::from_str(text).unwrap();
    let payload: Value = frame.payload.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap());
    let reply = match (frame.kind, frame.action.as_str()) {
        (FrameKind::Request, action::HELLO) => {
            let limits = Limits {
                open_asks: 1000,
                open_bytes: 1 << 26,
                session_open_asks: 50,
                session_parked_asks: 16,
                asks_per_second: 1000,
            };
            let welcome = Welcome {
                protocol: 1,
                instance: "instance".to_owned(),
                resume_secret: Some("resume".to_owned()),
                epoch: 1,
                flags: flags(acp_elicitation),
                limits,
                operators: None,
            };
            Some((action::WELCOME, json!(welcome)))
        }
        (FrameKind::Request, action) => Some((action, json!({"success": true}))),
        (FrameKind::Response, _) => {
            seen.responses.lock().unwrap().push(serde_json::from_str(text).unwrap());
            None
        }
        (FrameKind::Event, _) => None,
    };
    if let Some((action, payload)) = reply {
        let response = json!({"id": frame.id, "type": "response", "action": action, "payload": payload});
        socket.send(Message::text(response.to_string())).await.unwrap();
    }
    if frame.kind != FrameKind::Response {
        seen.frames.lock().unwrap().push((frame.action.clone(), payload.clone()));
        seen.fresh.lock().unwrap().push_back((frame.action, payload));
    }
    seen.changed.notify_waiters();
}

/// An agent under way.
pub(crate) struct Running {
    task: JoinHandle<Result<Ended, AgentError>>,
    pub(crate) stdout: Stdout,
    stop: Option<oneshot::Sender<()>>,
}

impl Running {
    /// Tells it to shut down.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for its end.
    pub(crate) async fn end(self) -> (Result<Ended, AgentError>, String) {
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("the run ends").unwrap();
        (ended, self.stdout.text())
    }

    /// Waits for its end, which must be the end of a turn: its stop reason, and what was said.
    pub(crate) async fn end_of_turn(self) -> (String, String) {
        let (ended, said) = self.end().await;
        (ended.unwrap().stop_reason().unwrap().to_owned(), said)
    }

    /// Waits until the agent has said something.
    pub(crate) async fn said(&self, words: &str) {
        eventually(words, || self.stdout.text().contains(words)).await;
    }
}
