//! The client of the scenarios, over HTTP: what it sends is POSTed, and what comes on any stream is read.

use std::{
    cell::RefCell,
    ops::Deref,
    sync::mpsc::{Sender, channel},
};

use serde_json::{Value, json};

use super::{
    Connection, Front, FrontSetup, Home, Pair, Setup, Witness,
    client::{Client, Way},
    frames::mirrors,
    modern,
};

/// A gateway that listens, and its client.
pub(crate) type HttpGateway = Client<Posts>;

/// Frames as requests to a gateway that listens.
pub(crate) struct Posts {
    front: Front,
    session: Option<String>,
    /// Gone once nothing more is sent.
    sender: RefCell<Option<Sender<Vec<u8>>>>,
}

impl Client<Posts> {
    /// The scripted server, however it is reached, behind a gateway that listens.
    pub(crate) fn start_over(pair: Pair, home: &Home, setup: &Setup<'_>) -> Self {
        let Setup { server, variables, before } = *setup;
        let front = match pair {
            Pair::Stdio => {
                Front::start_with(home, &FrontSetup { server, variables, before, ..FrontSetup::default() })
            }
            Pair::Http => Front::in_front_of(home, &home.server(server), variables),
            Pair::HttpCut => {
                Front::in_front_of(home, &home.server(&[server, &["--cut", "1"]].concat()), variables)
            }
            Pair::HttpTwice => Front::in_front_of(home, &home.listener(server), variables),
        };
        Self::of(front)
    }

    /// In front of a server at a URL.
    pub(crate) fn in_front_of(home: &Home, url: &str, variables: &[(&str, &str)]) -> Self {
        Self::of(Front::in_front_of(home, url, variables))
    }

    fn of(front: Front) -> Self {
        let (sender, lines) = channel();
        Self::new(Posts { front, session: None, sender: RefCell::new(Some(sender)) }, lines)
    }
}

impl Posts {
    fn post(&mut self, line: &[u8]) {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let mirrors = mirrors(&frame);
        let mut headers: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.extend(self.session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        let mut exchange = self.front.request("POST", &headers, line);
        let sender = self.sender.borrow().clone().expect("it is not closed");
        if frame["method"] == "initialize" {
            let head = exchange.head();
            self.session = Some(head.header("mcp-session-id").to_owned());
            let _ = sender.send(exchange.body(&head).into_bytes());
        } else if frame["method"].is_string() && frame.get("id").is_some() {
            std::thread::spawn(move || read(exchange, &sender));
        } else if frame["method"].is_null() && frame.get("id").is_some() {
            // An answer: what HTTP says to it is no frame of the conversation.
            exchange.head();
        } else {
            read(exchange, &sender);
        }
    }

    /// Ends the session, and sends nothing more.
    pub(crate) fn close(&mut self) {
        if let Some(session) = self.session.take() {
            let mut ended = self.front.request("DELETE", &[("Mcp-Session-Id", &session)], b"");
            assert_eq!(ended.head().status, 204);
        }
        self.sender.take();
    }

    /// Ends the gateway, which does not end by itself; its exit status.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.front.stop()
    }
}

impl Way for Posts {
    fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.post(line);
        }
    }

    /// In the session, or, without one, in the modern era.
    fn call(&self, id: &Value, params: &Value) -> Value {
        if self.session.is_some() {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        } else {
            modern(id, "tools/call", params).0
        }
    }

    fn send_no_more(&self) {
        self.sender.take();
    }

    fn witness(&self) -> &Witness {
        &self.front
    }
}

impl Deref for Posts {
    type Target = Front;

    fn deref(&self) -> &Front {
        &self.front
    }
}

/// Reads a response to its end.
fn read(mut exchange: Connection, sender: &Sender<Vec<u8>>) {
    let Some(head) = exchange.try_head() else { return };
    let send = |text: String| drop(sender.send((text + "\n").into_bytes()));
    if head.header("content-type").starts_with("text/event-stream") {
        while let Some(event) = exchange.event() {
            if !event.data.is_empty() {
                send(event.data);
            }
        }
    } else {
        let body = exchange.body(&head);
        if !body.is_empty() {
            send(body);
        }
    }
}
