//! S6: two principals, each with several clients that use the same ids at the same time, and nothing crosses over.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde_json::{Value, json};

use super::walls::callers;
use crate::support::{Connection, Front, Home, modern, wait_for};

/// Pairs of calls of each of eight clients, so that there are ten thousand calls.
const PAIRS: u64 = 625;
/// In front of a URL there are fewer.
const PAIRS_AT_A_URL: u64 = 125;
/// One in so many is asked about, and one in so many is cancelled.
const ASKED: u64 = 125;
const CANCELLED: u64 = 25;
const DEVICE: &str = "A1B2-C3D4";

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
    /// What all clients know of each other's questions: their ids, and states.
    overheard: Arc<Mutex<Vec<Value>>>,
}

/// What a client accepts.
fn accepted() -> Value {
    json!({"action": "accept", "content": {"deviceId": DEVICE}})
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
        self.call_with(at, tool, arguments, &json!({}));
    }

    fn call_with(&mut self, at: usize, tool: &str, arguments: &Value, more: &Value) {
        // It is known to run once there is some progress.
        let meta = json!({"progressToken": self.tokens[at]});
        let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
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

    /// What the latest others were asked, and adds one's own.
    fn overhear(&self, own: &Value) -> Vec<Value> {
        let mut overheard = self.overheard.lock().unwrap_or_else(PoisonError::into_inner);
        let others = overheard.iter().rev().take(4).cloned().collect();
        overheard.push(own.clone());
        others
    }

    /// Accepts the questions of others, which nobody has asked here.
    fn accept_what_is_anothers(&self, own: &Value) {
        for id in self.overhear(own) {
            self.note(&json!({"jsonrpc": "2.0", "id": id, "result": accepted()}));
        }
    }

    /// Retries a call with the states of others, where nothing runs, and then with its own.
    fn retry(&mut self, at: usize, arguments: &Value, state: &str) {
        let retry =
            |state: &Value| json!({"requestState": state, "inputResponses": {"deviceChoice": accepted()}});
        for other in self.overhear(&json!(state)) {
            self.call_with(at, "tapOn", arguments, &retry(&other));
            let head = self.connections[at].head();
            let frame: Value = serde_json::from_str(&self.connections[at].body(&head)).unwrap();
            // Another's, or one's own principal's of another call: that one's refusal.
            let is_refused = frame["error"]["data"]["reason"] == "invalid_request_state"
                || frame["result"]["content"][0]["text"]
                    .as_str()
                    .is_some_and(|text| text.contains("ambiguous"));
            assert!(frame["id"] == self.ids[at] && is_refused, "{frame}");
        }
        self.call_with(at, "tapOn", arguments, &retry(&json!(state)));
        let text = arguments["text"].as_str().unwrap();
        assert_eq!(self.answer(at), format!("tapped \"{text}\" on {DEVICE}"));
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
            if self.session.is_some() {
                assert!(answer.contains("ambiguous"), "{answer}");
            } else {
                assert!(answer.starts_with("hr1."), "{answer}");
                self.retry(first, &json!({"text": of_first}), &answer);
            }
        } else if number % CANCELLED == CANCELLED - 1 {
            self.call(first, "swipe", &json!({"steps": 1000, "pauseMs": 5, "deviceId": DEVICE}));
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

/// Two principals, each with two sessions and two clients without, at the same time.
fn check(home: &Home, start: impl FnOnce(&Home) -> Front, pairs: u64) -> Front {
    home.write_config(&callers(&[("ada", "ada"), ("bob", "bob")]));
    let front = start(home);
    let overheard = [(); 2].map(|()| Arc::default());
    let names = ["ada", "bob"];
    let clients =
        names.into_iter().flat_map(|name| [true, true, false, false].map(|session| (name, session)));
    let running: Vec<_> = clients
        .enumerate()
        .map(|(number, (name, has_session))| {
            let token = format!("Bearer {name}");
            let authorization = [("Authorization", token.as_str())];
            let capabilities = json!({"elicitation": {}});
            let session = has_session.then(|| front.initialize("2025-11-25", &capabilities, &authorization));
            let mut client = Client {
                name: format!("{name} {number}"),
                address: front.address.clone(),
                token,
                session,
                connections: [front.connect(), front.connect()],
                ids: [json!(1), json!("1")],
                tokens: [json!(0), json!("0")],
                overheard: Arc::clone(&overheard[usize::from(has_session)]),
            };
            thread::spawn(move || (0..pairs).for_each(|number| client.pair(number)))
        })
        .collect();
    for client in running {
        client.join().unwrap();
    }
    // A tap that somebody else has accepted would have run again: those that were asked about without a session have run
    // once more, for their own.
    let asked = usize::try_from(pairs / ASKED).unwrap();
    assert_eq!(front.count("tapOn"), 8 * asked + 4 * asked);
    let cancelled = 8 * usize::try_from(pairs / CANCELLED - pairs / ASKED).unwrap();
    wait_for("every cancel", || (front.cancelled("swipe") == cancelled).then_some(()));
    assert_eq!(front.count("swipe"), cancelled);
    assert_eq!((front.metric("sessions"), front.metric("shared_servers")), (4, 2));
    wait_for("nothing in flight", || (front.metric("bytes_in_flight") == 0).then_some(()));
    front
}

#[test]
fn s6_nothing_crosses_between_principals_sessions_and_clients_in_ten_thousand_calls() {
    let home = Home::new();
    let front = check(&home, Front::start, PAIRS);
    // Each session has a server, and each principal one for its other requests.
    assert_eq!(front.metric("children"), 6);
}

#[test]
fn s6_nothing_crosses_between_principals_sessions_and_clients_in_front_of_a_url() {
    let home = Home::new();
    check(&home, |home| Front::in_front_of(home, &home.server(&[]), &[]), PAIRS_AT_A_URL);
}
