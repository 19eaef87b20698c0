//! What the agent sends, in the order it sends it.

use std::sync::{Arc, OnceLock};

use agent_client_protocol::{
    Agent, ConnectionTo, Dispatch, Error, ErrorCode, HandleDispatchFrom, Handled, Responder,
};
use handraise_acp::terminal::{self, TerminalRequest};
use handraise_transport::escape;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    asks::{Asks, Peer},
    files::{FileError, Files},
    link::Link,
    terminals::{TerminalError, Terminals},
    transcript::Transcript,
};

/// How many file methods run at once. Each may hold 16 MiB.
const FILES_AT_ONCE: usize = 4;

/// How many terminal methods are under way at once, waits for an exit included.
const TERMINAL_REQUESTS: usize = 64;
/// The longest command that the transcript shows, in characters.
const SHOWN_COMMAND: usize = 500;

/// JSON-RPC code of a file that is not there or not ours to show.
const RESOURCE_NOT_FOUND: i32 = -32002;
/// JSON-RPC's own codes.
const INVALID_PARAMS: i32 = -32602;
const INTERNAL_ERROR: i32 = -32603;

/// Handles every request and notification of the agent. It never waits for a human: the protocol crate hands out the
/// next message only when this one is done.
pub(crate) struct Dispatcher {
    pub(crate) link: Arc<Link>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) transcript: Arc<Transcript>,
    pub(crate) files: Arc<Files>,
    /// Set once the session is open.
    pub(crate) peer: Arc<OnceLock<Peer>>,
    pub(crate) slots: Arc<Semaphore>,
    /// Only where they are allowed.
    pub(crate) terminals: Option<Arc<Terminals>>,
    pub(crate) terminal_requests: Arc<Semaphore>,
}

impl Dispatcher {
    pub(crate) fn new(
        link: Arc<Link>,
        asks: Arc<Asks>,
        transcript: Arc<Transcript>,
        files: Arc<Files>,
        peer: Arc<OnceLock<Peer>>,
        terminals: Option<Arc<Terminals>>,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(FILES_AT_ONCE));
        let terminal_requests = Arc::new(Semaphore::new(TERMINAL_REQUESTS));
        Self { link, asks, transcript, files, peer, slots, terminals, terminal_requests }
    }

    fn request(
        &self,
        method: &str,
        params: &Value,
        responder: Responder<Value>,
        cx: &ConnectionTo<Agent>,
    ) -> Result<(), Error> {
        match method {
            "elicitation/create" => self.asks.elicitation(params, responder, self.peer.get(), cx),
            "session/request_permission" => self.asks.permission(params, responder, self.peer.get(), cx),
            "fs/read_text_file" | "fs/write_text_file" => self.file(method, params, responder, cx),
            _ => self.terminal_or_nothing(method, params, responder, cx),
        }
    }

    fn terminal_or_nothing(
        &self,
        method: &str,
        params: &Value,
        responder: Responder<Value>,
        cx: &ConnectionTo<Agent>,
    ) -> Result<(), Error> {
        let terminals = self.terminals.as_ref();
        if let Some((terminals, request)) = terminals.zip(terminal::read(method, params)) {
            let request = if self.is_our_session(params) { request } else { Err("there is no such session") };
            return self.terminal(terminals, request, responder, cx);
        }
        tracing::debug!(method = escape::shortened(method, 100), "refused a request");
        responder.respond_with_error(Error::method_not_found())
    }

    fn is_our_session(&self, params: &Value) -> bool {
        let session = params.get("sessionId").and_then(Value::as_str);
        self.peer.get().is_some_and(|peer| session == Some(&peer.session))
    }

    fn file(
        &self,
        method: &str,
        params: &Value,
        responder: Responder<Value>,
        cx: &ConnectionTo<Agent>,
    ) -> Result<(), Error> {
        let path = params.get("path").and_then(Value::as_str).map(str::to_owned);
        let (Some(path), true) = (path, self.is_our_session(params)) else {
            return responder.respond_with_error(Error::invalid_params());
        };
        let number = |key| params.get(key).and_then(Value::as_u64);
        let (first, limit) = (number("line"), number("limit"));
        let content = params.get("content").and_then(Value::as_str).map(str::to_owned);
        let is_write = method == "fs/write_text_file";
        if is_write && content.is_none() {
            return responder.respond_with_error(Error::invalid_params());
        }
        let (files, link, slots) = (Arc::clone(&self.files), Arc::clone(&self.link), Arc::clone(&self.slots));
        cx.spawn(async move {
            let _slot = slots.acquire_owned().await;
            // An agent that does not read our answers gets no more of them.
            link.room().await;
            let done = tokio::task::spawn_blocking(move || match content {
                Some(content) if is_write => files.write(&path, &content).map(|()| json!({})),
                _ => files.read(&path, first, limit).map(|content| json!({"content": content})),
            });
            match done.await {
                Ok(Ok(result)) => responder.respond(result),
                Ok(Err(error)) => responder.respond_with_error(file_error(&error)),
                Err(_) => responder.respond_with_error(Error::internal_error()),
            }
        })
    }

    fn terminal(
        &self,
        terminals: &Arc<Terminals>,
        request: Result<TerminalRequest, &'static str>,
        responder: Responder<Value>,
        cx: &ConnectionTo<Agent>,
    ) -> Result<(), Error> {
        let request = match request {
            Ok(request) => request,
            Err(problem) => {
                return responder.respond_with_error(Error::new(ErrorCode::from(INVALID_PARAMS), problem));
            }
        };
        let Ok(place) = Arc::clone(&self.terminal_requests).try_acquire_owned() else {
            return responder.respond_with_error(Error::new(
                ErrorCode::from(INTERNAL_ERROR),
                format!("{TERMINAL_REQUESTS} terminal requests are under way; wait for one first"),
            ));
        };
        let (terminals, link) = (Arc::clone(terminals), Arc::clone(&self.link));
        let transcript = Arc::clone(&self.transcript);
        let cancellation = responder.cancellation();
        cx.spawn(async move {
            let _place = place;
            let done = match request {
                TerminalRequest::Create(order) => {
                    let shown = escape::shortened(&order.line, SHOWN_COMMAND);
                    let created = terminals.create(order).await;
                    if created.is_ok() {
                        tracing::info!("the agent has a command run");
                        transcript.notice(&format!("The agent has a command run: {shown}")).await;
                    }
                    created
                }
                TerminalRequest::Output(id) => terminals.output(&id),
                TerminalRequest::WaitForExit(id) => tokio::select! {
                    ended = terminals.wait_for_exit(&id) => ended,
                    () = cancellation.cancelled() => {
                        return responder.respond_with_error(Error::request_cancelled());
                    }
                },
                TerminalRequest::Kill(id) => terminals.kill(&id).await,
                TerminalRequest::Release(id) => terminals.release(&id).await,
            };
            // The agent goes on from here, which may take it a while.
            link.sign_of_life();
            // An agent that does not read our answers gets no more of them.
            link.room().await;
            match done {
                Ok(result) => responder.respond(result),
                Err(error) => responder.respond_with_error(terminal_error(&error)),
            }
        })
    }
}

fn terminal_error(error: &TerminalError) -> Error {
    let code = match error {
        TerminalError::Cwd(_) | TerminalError::Unknown => ErrorCode::from(RESOURCE_NOT_FOUND),
        TerminalError::TooMany
        | TerminalError::Closed
        | TerminalError::Start(_)
        | TerminalError::Interrupted => ErrorCode::from(INTERNAL_ERROR),
    };
    Error::new(code, error.to_string())
}

fn file_error(error: &FileError) -> Error {
    Error::new(ErrorCode::from(RESOURCE_NOT_FOUND), error.to_string())
}

impl HandleDispatchFrom<Agent> for Dispatcher {
    async fn handle_dispatch_from(
        &mut self,
        message: Dispatch,
        cx: ConnectionTo<Agent>,
    ) -> Result<Handled<Dispatch>, Error> {
        match message {
            Dispatch::Request(request, responder) => {
                let (method, params) = request.into_parts();
                // What the agent said before it asked stands before the question.
                self.transcript.flush().await;
                let done = self.request(&method, &params, responder, &cx);
                self.link.handled();
                done?;
                Ok(Handled::Yes)
            }
            Dispatch::Notification(notification) => {
                if notification.method() == "session/update" && self.is_our_session(notification.params()) {
                    self.transcript.update(notification.params()).await;
                }
                self.link.handled();
                Ok(Handled::Yes)
            }
            Dispatch::Response(result, router) => {
                // Here and not where the prompt is awaited: what follows this response on the wire is no longer part
                // of the turn.
                if router.method() == "session/prompt" {
                    self.asks.prompt_ended();
                }
                Ok(Handled::No { message: Dispatch::Response(result, router), retry: false })
            }
        }
    }

    fn describe_chain(&self) -> impl std::fmt::Debug {
        "agentctl"
    }
}
