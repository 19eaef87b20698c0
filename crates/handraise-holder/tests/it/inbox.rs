//! A scripted inbox: it serves the stream's two routes and hands every connection to the test.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{
        Query, State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade},
    },
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::get,
};
use handraise_api::{
    ask::Answer,
    error::ErrorCode,
    frame::{Flags, Frame, FrameKind, Limits, Presence, Respond, SnapshotPart, Welcome, action},
    words::{HolderKind, Provenance, Who},
};
use handraise_core::{
    Choice, Constraints, Kind, Mode, Question, Source,
    form::{AnswerRules, Form},
};
use handraise_holder::{Delivery, Holder, HolderSettings, InboxAddress, NewAsk, Timing, Token};
use handraise_transport::clock::ManualClock;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

/// The token that the scripted inbox knows.
pub(crate) const TOKEN: &str = "holder-token-of-the-test";
/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Less patient than the default, so that tests of lost connections are quick.
pub(crate) fn timing() -> Timing {
    Timing {
        handshake: Duration::from_secs(5),
        ping_every: Duration::from_millis(100),
        dead_after: Duration::from_secs(5),
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(50),
        close: Duration::from_secs(2),
    }
}

/// Waits for something that must come.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("it comes within the test's patience")
}

/// Where the scripted inbox listens.
pub(crate) enum Listen {
    Socket,
    Tcp,
}

pub(crate) struct Inbox {
    pub(crate) address: InboxAddress,
    pub(crate) clock: ManualClock,
    connections: mpsc::UnboundedReceiver<Connection>,
    shared: Arc<Shared>,
    server: tokio::task::JoinHandle<()>,
    _directory: tempfile::TempDir,
}

/// What the routes know.
pub(crate) struct Shared {
    connections: mpsc::UnboundedSender<Connection>,
    /// Every `Authorization` header that was ever sent.
    pub(crate) tokens_seen: Mutex<Vec<String>>,
    pub(crate) proofs: AtomicUsize,
    /// The token the proof is made with.
    proves_with: String,
}

impl Inbox {
    pub(crate) async fn start(listen: Listen) -> Self {
        Self::start_proving(listen, TOKEN).await
    }

    pub(crate) async fn start_proving(listen: Listen, proves_with: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (sender, connections) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            connections: sender,
            tokens_seen: Mutex::default(),
            proofs: AtomicUsize::new(0),
            proves_with: proves_with.into(),
        });
        let routes = Router::new()
            .route("/api/v1/holder", get(stream))
            .route("/api/v1/holder/proof", get(proof))
            .with_state(Arc::clone(&shared));
        let (address, server) = match listen {
            Listen::Socket => {
                let path: PathBuf = directory.path().join("inbox.sock");
                let listener = tokio::net::UnixListener::bind(&path).unwrap();
                let serve = async move { axum::serve(listener, routes).await.unwrap() };
                (InboxAddress::Socket(path), tokio::spawn(serve))
            }
            Listen::Tcp => {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
                let serve = async move { axum::serve(listener, routes).await.unwrap() };
                (address, tokio::spawn(serve))
            }
        };
        Self { address, clock: ManualClock::new(), connections, shared, server, _directory: directory }
    }

    pub(crate) fn settings(&self) -> HolderSettings {
        HolderSettings {
            inbox: self.address.clone(),
            token: Token::new(TOKEN),
            kind: HolderKind::Agent,
            who: Who::Operator,
            version: "0.0.0".into(),
            host: "test".into(),
            clock: Arc::new(self.clock.clone()),
            timing: timing(),
        }
    }

    /// A connected holder, and its connection after welcome and snapshot.
    pub(crate) async fn holder(&mut self) -> (Holder, Connection) {
        self.holder_with(self.settings(), wide_limits()).await
    }

    pub(crate) async fn holder_with(
        &mut self,
        settings: HolderSettings,
        limits: Limits,
    ) -> (Holder, Connection) {
        let connecting = tokio::spawn(Holder::connect(settings));
        let mut connection = self.next().await;
        connection.welcome_with(1, limits).await;
        let holder = soon(connecting).await.unwrap().unwrap();
        assert_eq!(connection.snapshot().await.asks.len(), 0);
        (holder, connection)
    }

    /// The next connection that a holder makes.
    pub(crate) async fn next(&mut self) -> Connection {
        soon(self.connections.recv()).await.unwrap()
    }

    pub(crate) fn tokens_seen(&self) -> Vec<String> {
        self.shared.tokens_seen.lock().unwrap().clone()
    }

    pub(crate) fn proofs(&self) -> usize {
        self.shared.proofs.load(Ordering::SeqCst)
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn stream(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let token = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    shared.tokens_seen.lock().unwrap().extend(token.clone());
    if token.as_deref() != Some(&format!("Bearer {TOKEN}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    upgrade.max_message_size(64 << 20).max_frame_size(64 << 20).on_upgrade(async move |socket| {
        // A test that is over wants no more connections.
        let _ = shared.connections.send(Connection { socket, next_id: 1, operators: None });
    })
}

async fn proof(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<std::collections::BTreeMap<String, String>>,
    headers: HeaderMap,
) -> axum::Json<Value> {
    shared.proofs.fetch_add(1, Ordering::SeqCst);
    let key = Sha256::digest(shared.proves_with.as_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(query["nonce"].as_bytes());
    mac.update(headers["host"].as_bytes());
    let proof =
        mac.finalize().into_bytes().iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    axum::Json(json!({ "proof": proof }))
}

/// Limits that no test reaches by accident.
pub(crate) fn wide_limits() -> Limits {
    Limits {
        open_asks: 100_000,
        open_bytes: 1 << 30,
        session_open_asks: 100_000,
        session_parked_asks: 100_000,
        asks_per_second: 100_000,
    }
}

/// One connection, from the inbox's side.
pub(crate) struct Connection {
    socket: WebSocket,
    next_id: u64,
    /// What the welcome says of operators; nothing, as an inbox of an earlier version.
    pub(crate) operators: Option<Presence>,
}

impl Connection {
    pub(crate) async fn send_text(&mut self, text: impl Into<String>) {
        soon(self.socket.send(Message::Text(text.into().into()))).await.unwrap();
    }

    /// Sends something that the holder may hang up on before it is through.
    pub(crate) async fn blurt(&mut self, text: String) {
        let _ = soon(self.socket.send(Message::Text(text.into()))).await;
    }

    /// The next frame; pings and pongs are not frames.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        loop {
            match soon(self.socket.recv()).await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).expect("a frame")),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(Message::Binary(_)) => panic!("holders send text"),
            }
        }
    }

    /// Waits until the holder has hung up.
    pub(crate) async fn is_over(&mut self) {
        while self.frame().await.is_some() {}
    }

    /// The next frame, which must be `action`; acknowledged if it is a request.
    pub(crate) async fn expect<P: DeserializeOwned>(&mut self, action: &str) -> P {
        let (frame, payload) = self.expect_unacknowledged(action).await;
        self.acknowledge(&frame).await;
        payload
    }

    pub(crate) async fn expect_unacknowledged<P: DeserializeOwned>(&mut self, action: &str) -> (Frame, P) {
        let frame = self.frame().await.expect("the holder is there");
        assert_eq!(frame.action, action, "{:?}", frame.payload);
        let payload =
            serde_json::from_str(frame.payload.as_ref().expect("a payload").get()).expect("its payload");
        (frame, payload)
    }

    pub(crate) async fn acknowledge(&mut self, frame: &Frame) {
        if frame.kind == FrameKind::Request {
            self.respond(frame, json!({"payload": {"success": true}})).await;
        }
    }

    pub(crate) async fn refuse(&mut self, frame: &Frame, code: &str) {
        self.respond(frame, json!({"error": {"code": code, "message": "the script says so"}})).await;
    }

    pub(crate) async fn respond(&mut self, frame: &Frame, mut rest: Value) {
        rest["id"] = json!(frame.id);
        rest["type"] = json!("response");
        rest["action"] = json!(frame.action);
        self.send_text(rest.to_string()).await;
    }

    /// Takes the greeting and answers it; returns what the holder said.
    pub(crate) async fn welcome(&mut self, epoch: u64) -> Value {
        self.welcome_with(epoch, wide_limits()).await
    }

    pub(crate) async fn welcome_with(&mut self, epoch: u64, limits: Limits) -> Value {
        let (frame, hello): (Frame, Value) = self.expect_unacknowledged(action::HELLO).await;
        let instance = hello["instance"].as_str().unwrap_or("instance-1").to_owned();
        let resume_secret = hello["instance"].is_null().then(|| "secret-1".to_owned());
        let flags = Flags { acp_elicitation: true, elicitation: true, adaptive_profiles: false };
        let operators = self.operators;
        let welcome = Welcome { protocol: 1, instance, resume_secret, epoch, flags, limits, operators };
        let text = json!({"id": frame.id, "type": "response", "action": action::WELCOME, "payload": welcome});
        self.send_text(text.to_string()).await;
        hello
    }

    /// All parts of the snapshot, in one.
    pub(crate) async fn snapshot(&mut self) -> SnapshotPart {
        let mut whole: SnapshotPart = self.expect(action::SNAPSHOT).await;
        assert_eq!(whole.seq, 0);
        while !whole.last {
            let part: SnapshotPart = self.expect(action::SNAPSHOT).await;
            assert_eq!(part.seq, whole.seq + 1);
            whole.asks.extend(part.asks);
            whole.settlements.extend(part.settlements);
            (whole.seq, whole.last) = (part.seq, part.last);
        }
        whole
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, action: &str, payload: &impl Serialize) -> String {
        let id = format!("inbox-{}", self.next_id);
        self.next_id += 1;
        let payload = serde_json::value::to_raw_value(payload).unwrap();
        let frame = Frame {
            id: Some(id.clone()),
            kind: FrameKind::Request,
            action: action.into(),
            payload: Some(payload),
            error: None,
        };
        self.send_text(serde_json::to_string(&frame).unwrap()).await;
        id
    }

    /// The response to a request; what the holder asks in between is acknowledged and returned with it.
    pub(crate) async fn response(&mut self, id: &str) -> (Verdict, Vec<Frame>) {
        let mut others = Vec::new();
        loop {
            let frame = self.frame().await.expect("the holder is there");
            if frame.kind == FrameKind::Response {
                assert_eq!(frame.id.as_deref(), Some(id));
                return (Verdict::of(frame), others);
            }
            self.acknowledge(&frame).await;
            others.push(frame);
        }
    }

    /// Asks and waits for the response.
    pub(crate) async fn ask(&mut self, action: &str, payload: &impl Serialize) -> Verdict {
        let id = self.request(action, payload).await;
        self.response(&id).await.0
    }

    /// Cuts the connection without a word.
    pub(crate) fn cut(self) {
        drop(self);
    }

    pub(crate) async fn close(mut self) {
        let frame = CloseFrame { code: 1001, reason: "going away".into() };
        soon(self.socket.send(Message::Close(Some(frame)))).await.unwrap();
    }
}

/// A response as a test sees it.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) code: Option<ErrorCode>,
    pub(crate) message: String,
    pub(crate) details: Vec<String>,
    pub(crate) payload: Value,
}

impl Verdict {
    fn of(frame: Frame) -> Self {
        let payload = frame.payload.as_deref().map_or("null", RawValue::get);
        let payload = serde_json::from_str(payload).unwrap();
        let error = frame.error;
        Self {
            code: error.as_ref().map(|error| error.code),
            message: error.as_ref().map(|error| error.message.clone()).unwrap_or_default(),
            details: error.map(|e| e.details.into_iter().map(|d| d.rule).collect()).unwrap_or_default(),
            payload,
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.code.is_none() && self.payload == json!({"success": true})
    }

    /// The submission that won, by a `NOT_FOUND`.
    pub(crate) fn winner(&self) -> &str {
        assert_eq!(self.code, Some(ErrorCode::NotFound), "{self:?}");
        self.payload["ended"]["submission_id"].as_str().expect("a winner")
    }
}

/// An ask with one question: Red or Blue.
pub(crate) fn colour() -> NewAsk {
    let choice =
        |value: &str| Choice { value: value.into(), label: value.into(), description: None, preview: None };
    let question = Question {
        id: "question_0".into(),
        kind: Kind::Single,
        title: None,
        prompt: "Which colour?".into(),
        required: false,
        default: None,
        allows_text: false,
        companion: None,
        secret: false,
        choices: vec![choice("Red"), choice("Blue")],
        constraints: Constraints::default(),
    };
    NewAsk {
        source: Source::Elicitation,
        mode: Mode::Form,
        session_id: Some("session-1".into()),
        tool_call_id: None,
        message: "Pick a colour".into(),
        url: None,
        confirm: None,
        on_deadline: None,
        form: Form::from_questions(vec![question]).unwrap(),
        rules: AnswerRules::for_source(Source::Elicitation),
        single_use: vec![],
        client: None,
        server: None,
        timeout: Some(Duration::from_secs(3300)),
    }
}

pub(crate) fn pick(ask: &str, submission: &str, value: &str) -> Respond {
    Respond {
        pending_id: ask.into(),
        submission_id: submission.into(),
        answers: vec![Answer {
            question_id: "question_0".into(),
            selected_options: vec![value.into()],
            custom_text: String::new(),
        }],
        rejected: false,
        reject_reason: String::new(),
        by: "operator".into(),
        provenance: Provenance::Human,
    }
}

/// The asking side: what it was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asker(Arc<Mutex<Vec<Delivery>>>);

impl Asker {
    /// Takes a delivery over a live connection.
    pub(crate) fn takes(&self) -> impl FnOnce(Delivery) -> bool + Send + 'static {
        let asker = self.clone();
        move |delivery| {
            asker.0.lock().unwrap().push(delivery);
            true
        }
    }

    pub(crate) fn got(&self) -> Vec<Delivery> {
        self.0.lock().unwrap().clone()
    }
}

pub(crate) fn accepts(value: &str) -> Delivery {
    Delivery::Accept(json!({"question_0": value}).as_object().cloned().unwrap())
}
