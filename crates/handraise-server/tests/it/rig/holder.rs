//! A scripted holder.

use std::collections::VecDeque;

use futures_util::{SinkExt as _, StreamExt as _};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{AnnouncedAsk, AskSettled, Frame, FrameKind, SessionUpdated, Welcome, action},
    session::SessionState,
};
use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{self, Message},
};

use super::within;

/// A scripted holder.
pub(crate) struct Holder {
    socket: WebSocketStream<TcpStream>,
    next: u64,
    backlog: VecDeque<Frame>,
    news: VecDeque<Frame>,
    pub(crate) instance: String,
    pub(crate) secret: String,
}

impl Holder {
    pub(super) fn new(socket: WebSocketStream<TcpStream>) -> Self {
        let (backlog, news) = (VecDeque::new(), VecDeque::new());
        Self { socket, next: 1, backlog, news, instance: String::new(), secret: String::new() }
    }

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

    /// Lets a frame wait for [`flush`](Self::flush).
    pub(crate) async fn feed(&mut self, text: &str) {
        within(self.socket.feed(Message::text(text.to_owned()))).await.unwrap();
    }

    pub(crate) async fn flush(&mut self) {
        within(self.socket.flush()).await.unwrap();
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
            self.keep(frame);
        }
    }

    /// Waits until the inbox has closed the connection; until then it says nothing but what there is to know.
    pub(crate) async fn is_over(&mut self) {
        while let Some(frame) = self.receive().await {
            assert_eq!(frame.kind, FrameKind::Event, "{frame:?}");
        }
    }

    fn keep(&mut self, frame: Frame) {
        let kept = if frame.kind == FrameKind::Event { &mut self.news } else { &mut self.backlog };
        kept.push_back(frame);
    }

    /// The next event of the inbox, which must be of that action; requests wait meanwhile.
    pub(crate) async fn hears(&mut self, action: &str) -> Value {
        while self.news.is_empty() {
            let frame = self.receive().await.expect("an event");
            self.keep(frame);
        }
        let frame = self.news.pop_front().unwrap();
        assert_eq!((frame.id, frame.action.as_str()), (None, action));
        serde_json::from_str(frame.payload.unwrap().get()).unwrap()
    }

    /// The next request of the inbox, of that action; events wait meanwhile.
    pub(crate) async fn expect(&mut self, action: &str) -> (String, Value) {
        while self.backlog.is_empty() {
            let frame = self.receive().await.expect("a request");
            self.keep(frame);
        }
        let frame = self.backlog.pop_front().unwrap();
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
