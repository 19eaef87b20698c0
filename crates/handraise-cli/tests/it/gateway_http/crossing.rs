//! S6: two principals, each with several clients that use the same ids at the same time, and nothing crosses over.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};

use super::walls::callers;
use crate::support::{Connection, Front, FrontSetup, Home, modern, wait_for};

/// Pairs of calls of each of four clients, so that there are ten thousand calls.
const PAIRS: u64 = 1250;
/// One in so many is asked about, and one in so many is cancelled.
const ASKED: u64 = 125;
const CANCELLED: u64 = 25;

/// A client of one era. It has two calls open at a time, under ids that only a careless reader takes for the same.
struct Client {
    name: String,
    address: String,
    token: String,
    session: Option<String>,
    connections: [Connection; 2],
    ids: [Value; 2],
    /// A session's progress tokens are never used again: what is late belongs to nobody.
    tokens: [Value; 2],
    /// What all clients know of each other's questions.
    overheard: Arc<Mutex<Vec<Value>>>,
}

impl Client {
    /// What every request of the client carries beside `mirrors`.
    fn headers<'a>(&'a self, mirrors: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
        let own = self.session.as_deref().map(|session| ("Mcp-Session-Id", session));
        let mirrors = mirrors.iter().map(|(name, value)| (*name, value.as_str()));
        mirrors.chain(own).chain([("Authorization", self.token.as_str())]).collect()
    }

    /// Sends what nothing but a status comes back for, on a connection of its own.
    fn note(&self, frame: &Value) {
        let mut connection = Connection::open(&self.address);
        connection.send("POST", "/mcp", &self.headers(&[]), frame.to_string().as_bytes());
        assert_eq!(connection.head().status, 202);
    }

    fn call(&mut self, at: usize, tool: &str, arguments: &Value) {
        // It is known to run once there is some progress.
        let meta = json!({"progressToken": self.tokens[at]});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let (frame, mirrors) = if self.session.is_some() {
            let method = "tools/call";
            (json!({"jsonrpc": "2.0", "id": self.ids[at], "method": method, "params": params}), Vec::new())
        } else {
            modern(&self.ids[at], "tools/call", &params)
        };
        let request =
            Connection::request("POST", "/mcp", &self.headers(&mirrors), frame.to_string().as_bytes());
        self.connections[at].write(&request);
    }

    /// What a call is answered with, whose question is declined.
    fn answer(&mut self, at: usize) -> String {
        let head = self.connections[at].head();
        assert_eq!(head.status, 200);
        let frame = if head.header("content-type") == "text/event-stream" {
            let ask = self.connections[at].event().unwrap().frame();
            assert_eq!(ask["method"], "elicitation/create", "{ask}");
            self.accept_what_is_anothers(&ask["id"]);
            self.note(&json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"action": "decline"}}));
            let frame = self.connections[at].event().unwrap().frame();
            assert_eq!(self.connections[at].event(), None);
            frame
        } else {
            serde_json::from_str(&self.connections[at].body(&head)).unwrap()
        };
        assert_eq!(frame["id"], self.ids[at], "{frame}");
        match &frame["result"]["requestState"] {
            Value::String(state) => state.clone(),
            _ => {
                frame["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{frame}")).to_owned()
            }
        }
    }

    /// Accepts the questions of others, which nobody has asked here.
    fn accept_what_is_anothers(&self, own: &Value) {
        let others = {
            let mut overheard = self.overheard.lock().unwrap_or_else(PoisonError::into_inner);
            let others = overheard.iter().rev().take(4).cloned().collect::<Vec<_>>();
            overheard.push(own.clone());
            others
        };
        for id in others {
            let result = json!({"action": "accept", "content": {"deviceId": "A1B2-C3D4"}});
            self.note(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
    }

    /// Two calls that are open at the same time; whether one of them was asked about.
    fn pair(&mut self, number: u64) {
        let first = usize::from(number % 2 == 1);
        let second = 1 - first;
        self.tokens = [json!(number), json!(number.to_string())];
        let text = |at: usize| format!("{} {number} {at}", self.name);
        let (of_first, of_second) = (text(first), text(second));
        if number % ASKED == ASKED - 1 {
            self.call(first, "tapOn", &json!({"text": of_first}));
            self.call(second, "echo", &json!({"text": of_second}));
            assert_eq!(self.answer(second), of_second);
            let answer = self.answer(first);
            assert!(answer.starts_with("hr1.") || answer.contains("ambiguous"), "{answer}");
        } else if number % CANCELLED == CANCELLED - 1 {
            self.call(first, "swipe", &json!({"steps": 1000, "pauseMs": 5, "deviceId": "A1B2-C3D4"}));
            self.call(second, "echo", &json!({"text": of_second}));
            self.cancel(first);
            assert_eq!(self.answer(second), of_second);
        } else {
            self.call(first, "echo", &json!({"text": of_first}));
            self.call(second, "echo", &json!({"text": of_second}));
            assert_eq!(self.answer(second), of_second);
            assert_eq!(self.answer(first), of_first);
        }
    }

    /// Cancels a call as its era does, once it runs: with a notification, or by closing the response.
    fn cancel(&mut self, at: usize) {
        self.connections[at].stream();
        self.progress(at).expect("it runs");
        if self.session.is_some() {
            let params = json!({"requestId": self.ids[at]});
            self.note(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
            // A cancelled call has no response.
            while self.progress(at).is_some() {}
        } else {
            self.connections[at] = Connection::open(&self.address);
        }
    }

    /// What comes next on the stream of a call is its own progress.
    fn progress(&mut self, at: usize) -> Option<()> {
        let frame = self.connections[at].event()?.frame();
        assert_eq!(frame["method"], "notifications/progress", "{frame}");
        assert_eq!(frame["params"]["progressToken"], self.tokens[at], "{frame}");
        Some(())
    }
}

#[test]
fn s6_nothing_crosses_between_principals_sessions_and_clients_in_ten_thousand_calls() {
    let home = Home::new();
    home.write_config(&callers(&[("ada", "ada"), ("bob", "bob")]));
    let front = Front::start_with(&home, &FrontSetup::default());
    let overheard = Arc::default();
    let clients = ["ada", "bob"].into_iter().flat_map(|name| [(name, true), (name, false)]);
    let running: Vec<_> = clients
        .map(|(name, has_session)| {
            let token = format!("Bearer {name}");
            let authorization = [("Authorization", token.as_str())];
            let capabilities = json!({"elicitation": {}});
            let session = has_session.then(|| front.initialize("2025-11-25", &capabilities, &authorization));
            let mut client = Client {
                name: format!("{name} {has_session}"),
                address: front.address.clone(),
                token,
                session,
                connections: [front.connect(), front.connect()],
                ids: [json!(1), json!("1")],
                tokens: [json!(0), json!("0")],
                overheard: Arc::clone(&overheard),
            };
            thread::spawn(move || (0..PAIRS).for_each(|number| client.pair(number)))
        })
        .collect();
    for client in running {
        client.join().unwrap();
    }
    // A tap that somebody else has accepted would have run again.
    let asked = usize::try_from(4 * (PAIRS / ASKED)).unwrap();
    assert_eq!(front.count("tapOn"), asked);
    let cancelled = usize::try_from(4 * (PAIRS / CANCELLED - PAIRS / ASKED)).unwrap();
    wait_for("every cancel", || (front.cancelled("swipe") == cancelled).then_some(()));
    assert_eq!(front.count("swipe"), cancelled);
    // Each session has a server, and each principal one for its other requests.
    assert_eq!((front.metric("children"), front.metric("sessions")), (4, 2));
    assert_eq!(front.metric("bytes_in_flight"), 0);
}
