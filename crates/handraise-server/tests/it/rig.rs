//! A running inbox in a throw-away directory, a client for its API, a reader of its events, and a scripted holder.

use std::{collections::VecDeque, path::Path, sync::Arc, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use handraise_api::{
    ask::{Answer, AskContent, Choice, Constraints, Question},
    error::{ErrorBody, ErrorCode},
    frame::{AnnouncedAsk, AskSettled, Frame, FrameKind, HolderSettlement, SessionUpdated, Welcome, action},
    session::SessionState,
    words::{Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, Who, WireAction},
};
use handraise_server::{InboxFile, Ready, ServeError, Settings, serve};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Bytes, body::Incoming};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};
use tempfile::TempDir;
use tokio::{
    net::{TcpStream, UnixStream},
    sync::oneshot,
    task::JoinHandle,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

/// Longer than anything here takes, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) ready: Ready,
    pub(crate) file: InboxFile,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), ServeError>>,
}

pub(crate) fn settings(dir: &Path) -> Settings {
    Settings::new(dir.join("data"), ([127, 0, 0, 1], 0).into())
}

pub(crate) async fn rig() -> Rig {
    rig_with(|_| {}).await
}

pub(crate) async fn rig_with(change: impl FnOnce(&mut Settings)) -> Rig {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    start(dir, change).await
}

pub(crate) async fn start(dir: Arc<TempDir>, change: impl FnOnce(&mut Settings)) -> Rig {
    let mut settings = settings(dir.path());
    change(&mut settings);
    let data_dir = settings.data_dir.clone();
    let (tell, ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let running =
        tokio::spawn(serve(
            settings,
            move |ready| drop(tell.send(ready)),
            async move { drop(stopped.await) },
        ));
    let ready = within(ready).await.expect("the inbox is up");
    let file = InboxFile::read(&data_dir).unwrap();
    Rig { dir, ready, file, stop: Some(stop), running }
}

/// Fails the test when it takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or(Value::Null)
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Rig {
    pub(crate) async fn stop(mut self) -> Arc<TempDir> {
        drop(self.stop.take());
        within(self.running).await.unwrap().unwrap();
        self.dir
    }

    /// A request with every header that is given, over TCP.
    pub(crate) async fn raw(&self, request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        exchange(stream, request).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Response {
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        collect(exchange(stream, request(method, &self.host(), path, token, body)).await).await
    }

    pub(crate) async fn call_locally(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Response {
        let stream = UnixStream::connect(&self.ready.socket).await.unwrap();
        collect(exchange(stream, request(method, "localhost", path, token, body)).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.call(Method::GET, path, &self.file.admin_token, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.call(Method::POST, path, &self.file.admin_token, Some(body)).await
    }

    pub(crate) fn host(&self) -> String {
        self.ready.address.to_string()
    }

    /// A token of a scope.
    pub(crate) async fn token(&self, scope: &str, name: &str) -> String {
        let made = self.post("/tokens", json!({"scope": scope, "name": name})).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.json());
        made.json()["token"].as_str().unwrap().to_owned()
    }

    /// A signed-in page of an operator.
    pub(crate) async fn page(&self, name: &str) -> String {
        let secret = self.token("operator", name).await;
        let signed_in = self.call(Method::POST, "/login", "", Some(json!({"secret": secret}))).await;
        assert_eq!(signed_in.status, StatusCode::OK, "{}", signed_in.json());
        signed_in.json()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn answer(&self, token: &str, id: &str, option: &str) -> Response {
        self.call(Method::POST, &format!("/asks/{id}/answer"), token, Some(answer(option))).await
    }

    /// Asks again until it says what is wanted.
    pub(crate) async fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        within(async {
            loop {
                let got = self.get(path).await.json();
                if wanted(&got) {
                    return got;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }

    pub(crate) async fn events(&self, token: &str, last: Option<&str>) -> Events {
        let mut request = request(Method::GET, &self.host(), "/events", token, None);
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let response = self.raw(request).await;
        assert_eq!(response.status(), StatusCode::OK);
        Events { body: response.into_body(), text: String::new(), read: VecDeque::new() }
    }

    /// A holder that has said hello and sent an empty snapshot.
    pub(crate) async fn holder(&self) -> Holder {
        let mut holder = self.dial(&self.file.holder_token).await;
        holder.hello(None).await;
        holder.snapshot(&[], &[]).await;
        holder
    }

    pub(crate) async fn dial(&self, token: &str) -> Holder {
        let mut request = format!("ws://{}/api/v1/holder", self.host()).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let stream = TcpStream::connect(self.ready.address).await.unwrap();
        let (socket, _) = within(client_async(request, stream)).await.unwrap();
        Holder { socket, next: 1, backlog: VecDeque::new(), instance: String::new(), secret: String::new() }
    }
}

fn request(method: Method, host: &str, path: &str, token: &str, body: Option<Value>) -> Request<Full<Bytes>> {
    let path = path.strip_prefix("/!").map_or_else(|| format!("/api/v1{path}"), str::to_owned);
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    request.body(Full::new(body)).unwrap()
}

async fn exchange(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> http::Response<Incoming> {
    let (mut sender, connection) =
        within(hyper::client::conn::http1::handshake(TokioIo::new(stream))).await.unwrap();
    tokio::spawn(connection);
    within(sender.send_request(request)).await.unwrap()
}

pub(crate) async fn collect(response: http::Response<Incoming>) -> Response {
    let (parts, body) = response.into_parts();
    let bytes = within(body.collect()).await.unwrap().to_bytes();
    Response { status: parts.status, headers: parts.headers, bytes }
}

/// A live event stream.
pub(crate) struct Events {
    body: Incoming,
    text: String,
    read: VecDeque<Event>,
}

#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    /// The next event, or `None` when the stream ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Some(event);
            }
            let frame = within(self.body.frame()).await?.ok()?;
            self.text.push_str(str::from_utf8(&frame.into_data().unwrap_or_default()).unwrap());
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
                };
                if block.starts_with(':') {
                    continue;
                }
                self.read.push_back(Event {
                    id: field("id: ").parse().unwrap(),
                    name: field("event: "),
                    data: serde_json::from_str(&field("data: ")).unwrap(),
                });
            }
        }
    }

    /// Reads on until an event of that name.
    pub(crate) async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.name == name {
                return event;
            }
        }
    }
}

/// A scripted holder.
pub(crate) struct Holder {
    socket: WebSocketStream<TcpStream>,
    next: u64,
    backlog: VecDeque<Frame>,
    pub(crate) instance: String,
    pub(crate) secret: String,
}

impl Holder {
    pub(crate) async fn send(&mut self, kind: FrameKind, id: &str, action: &str, payload: &impl Serialize) {
        let frame = Frame {
            id: Some(id.to_owned()),
            kind,
            action: action.to_owned(),
            payload: Some(to_raw_value(payload).unwrap()),
            error: None,
        };
        self.send_text(&serde_json::to_string(&frame).unwrap()).await;
    }

    /// Sends something that the inbox may hang up on before it is through.
    pub(crate) async fn try_send(
        &mut self,
        kind: FrameKind,
        id: &str,
        action: &str,
        payload: &impl Serialize,
    ) {
        let payload = Some(to_raw_value(payload).unwrap());
        let frame = Frame { id: Some(id.to_owned()), kind, action: action.to_owned(), payload, error: None };
        let text = serde_json::to_string(&frame).unwrap();
        let _ = within(self.socket.send(Message::text(text))).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        within(self.socket.send(Message::text(text.to_owned()))).await.unwrap();
    }

    /// The next frame from the socket; `None` when it was closed.
    pub(crate) async fn receive(&mut self) -> Option<Frame> {
        loop {
            match within(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(
                    Ok(Message::Close(_))
                    | Err(
                        tungstenite::Error::Protocol(_)
                        | tungstenite::Error::ConnectionClosed
                        | tungstenite::Error::Io(_),
                    ),
                )
                | None => return None,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sends a request and returns its response; requests of the inbox wait meanwhile.
    pub(crate) async fn request(&mut self, action: &str, payload: &impl Serialize) -> Frame {
        let id = self.next.to_string();
        self.next += 1;
        self.send(FrameKind::Request, &id, action, payload).await;
        loop {
            let frame = self.receive().await.expect("a response");
            if frame.kind == FrameKind::Response && frame.id.as_deref() == Some(&id) {
                return frame;
            }
            self.backlog.push_back(frame);
        }
    }

    /// The next request of the inbox, of that action.
    pub(crate) async fn expect(&mut self, action: &str) -> (String, Value) {
        let frame = match self.backlog.pop_front() {
            Some(frame) => frame,
            None => self.receive().await.expect("a request"),
        };
        assert_eq!((frame.kind, frame.action.as_str()), (FrameKind::Request, action));
        let payload = serde_json::from_str(frame.payload.unwrap().get()).unwrap();
        (frame.id.unwrap(), payload)
    }

    /// Whether no request waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.backlog.is_empty()
    }

    pub(crate) async fn succeed(&mut self, id: &str, action: &str) {
        self.send(FrameKind::Response, id, action, &json!({"success": true})).await;
    }

    pub(crate) async fn refuse(
        &mut self,
        id: &str,
        action: &str,
        error: ErrorBody,
        ended: Option<&AskSettled>,
    ) {
        let frame = Frame {
            id: Some(id.to_owned()),
            kind: FrameKind::Response,
            action: action.to_owned(),
            payload: Some(to_raw_value(&json!({"ended": ended})).unwrap()),
            error: Some(error),
        };
        self.send_text(&serde_json::to_string(&frame).unwrap()).await;
    }

    pub(crate) async fn not_found(&mut self, id: &str, action: &str, ended: Option<&AskSettled>) {
        self.refuse(id, action, ErrorBody::new(ErrorCode::NotFound, "it had ended"), ended).await;
    }

    pub(crate) async fn try_hello(&mut self, resume: Option<(&str, &str)>) -> Frame {
        let hello = json!({
            "protocol": 1, "kind": "agent", "version": "0.1.0", "host": "laptop",
            "instance": resume.map(|(instance, _)| instance),
            "resume_secret": resume.map(|(_, secret)| secret),
        });
        self.request(action::HELLO, &hello).await
    }

    pub(crate) async fn hello(&mut self, resume: Option<(&str, &str)>) -> Welcome {
        let frame = self.try_hello(resume).await;
        assert!(frame.error.is_none(), "{:?}", frame.error);
        let welcome: Welcome = serde_json::from_str(frame.payload.unwrap().get()).unwrap();
        self.instance.clone_from(&welcome.instance);
        if let Some(secret) = &welcome.resume_secret {
            self.secret.clone_from(secret);
        } else if let Some((_, secret)) = resume {
            secret.clone_into(&mut self.secret);
        }
        welcome
    }

    /// One whole snapshot.
    pub(crate) async fn snapshot(&mut self, asks: &[AnnouncedAsk], settlements: &[AskSettled]) {
        let part = json!({"seq": 0, "last": true, "asks": asks, "settlements": settlements});
        let taken = self.request(action::SNAPSHOT, &part).await;
        assert!(taken.error.is_none(), "{:?}", taken.error);
    }

    pub(crate) async fn open(&mut self, ask: &AnnouncedAsk) -> Option<ErrorBody> {
        self.request(action::ASK_OPENED, &json!({"ask": ask})).await.error
    }

    pub(crate) async fn opens(&mut self, ask: &AnnouncedAsk) {
        assert_eq!(self.open(ask).await, None);
    }

    pub(crate) async fn settle(&mut self, ended: &AskSettled) -> Option<ErrorBody> {
        self.request(action::ASK_SETTLED, ended).await.error
    }

    pub(crate) async fn session(&mut self, id: &str, state: SessionState) {
        let said = SessionUpdated {
            session_id: id.into(),
            agent: "claude-acp".into(),
            title: None,
            cwd: None,
            state,
            stop_reason: None,
            background: false,
        };
        self.send(FrameKind::Event, "", action::SESSION_UPDATED, &said).await;
    }

    /// Leaves without a word, as a killed process does.
    pub(crate) fn die(self) -> (String, String) {
        (self.instance, self.secret)
    }
}

pub(crate) fn ask(id: &str) -> AnnouncedAsk {
    AnnouncedAsk {
        id: id.into(),
        deadline_ms: Some(600_000),
        parked_ms: None,
        client: None,
        server: None,
        content: AskContent {
            who: Who::Operator,
            source: Source::Elicitation,
            mode: Mode::Form,
            session_id: None,
            tool_call_id: None,
            message: "Which database?".into(),
            url: None,
            confirm: None,
            on_deadline: Some(OnDeadline::Decline),
            allows_text_with_selection: true,
            allows_partial: true,
            questions: vec![question("question_0")],
        },
    }
}

pub(crate) fn permission(id: &str) -> AnnouncedAsk {
    let mut ask = ask(id);
    ask.content.source = Source::Permission;
    ask.content.questions = vec![question("permission")];
    ask
}

pub(crate) fn question(id: &str) -> Question {
    Question {
        id: id.into(),
        kind: Kind::Single,
        title: None,
        prompt: "Which database?".into(),
        required: false,
        default: None,
        allows_text: true,
        companion: None,
        secret: false,
        choices: ["Postgres", "SQLite"]
            .map(|value| Choice {
                value: value.into(),
                label: value.into(),
                description: None,
                preview: None,
            })
            .into(),
        constraints: Constraints::default(),
    }
}

pub(crate) fn answer(option: &str) -> Value {
    json!({"answers": [Answer {
        question_id: "question_0".into(),
        selected_options: vec![option.into()],
        custom_text: String::new(),
    }]})
}

pub(crate) fn settled(id: &str, outcome: Outcome, submission: Option<&str>) -> AskSettled {
    AskSettled {
        pending_id: id.into(),
        settlement: HolderSettlement {
            outcome,
            provenance: Provenance::System,
            rail: Rail::Inbox,
            wire: Some(match outcome {
                Outcome::Accept => WireAction::Accept,
                Outcome::Cancel => WireAction::Cancel,
                _ => WireAction::Decline,
            }),
            reason: None,
            ago_ms: 0,
        },
        submission_id: submission.map(Into::into),
    }
}
