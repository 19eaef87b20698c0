//! S6: two principals, each with several clients that use the same ids at the same time, and nothing crosses over.

use std::{fmt::Write as _, thread};

use serde_json::{Value, json};

use super::walls::sha256;
use crate::support::{Connection, Front, FrontSetup, Home, modern};

/// Calls of each of four clients.
const CALLS: u64 = 2500;

/// A client of one era, with one connection that it keeps.
struct Client {
    connection: Connection,
    token: String,
    session: Option<String>,
}

impl Client {
    fn send(&mut self, id: &Value, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        let (frame, mut headers) = match &self.session {
            Some(session) => (
                json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
                vec![("Mcp-Session-Id", session.clone())],
            ),
            None => modern(id, "tools/call", &params),
        };
        headers.push(("Authorization", self.token.clone()));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.connection.send("POST", "/mcp", &headers, frame.to_string().as_bytes());
    }

    /// What the call is answered with, whose question is declined.
    fn answer(&mut self, front_address: &str, id: &Value) -> String {
        let head = self.connection.head();
        assert_eq!(head.status, 200);
        let frame = if head.header("content-type") == "text/event-stream" {
            let ask = self.connection.event().unwrap().frame();
            assert_eq!(ask["method"], "elicitation/create", "{ask}");
            let decline = json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"action": "decline"}});
            let session = self.session.clone().unwrap();
            let headers = [("Mcp-Session-Id", session.as_str()), ("Authorization", self.token.as_str())];
            let mut answering = Connection::open(front_address);
            answering.send("POST", "/mcp", &headers, decline.to_string().as_bytes());
            assert_eq!(answering.head().status, 202);
            let frame = self.connection.event().unwrap().frame();
            assert_eq!(self.connection.event(), None);
            frame
        } else {
            serde_json::from_str(&self.connection.body(&head)).unwrap()
        };
        assert_eq!(frame["id"], *id, "{frame}");
        match &frame["result"]["requestState"] {
            Value::String(state) => state.clone(),
            _ => frame["result"]["content"][0]["text"].as_str().unwrap().to_owned(),
        }
    }
}

#[test]
fn s6_nothing_crosses_between_principals_sessions_and_clients_in_ten_thousand_calls() {
    let home = Home::new();
    let mut config = String::new();
    for name in ["ada", "bob"] {
        write!(config, "[[caller]]\nname = '{name}'\ntoken_hash = 'sha256:{}'\n", sha256(name)).unwrap();
    }
    home.write_config(&config);
    let front = Front::start_with(&home, &FrontSetup::default());
    let clients = ["ada", "bob"].into_iter().flat_map(|name| [(name, true), (name, false)]);
    let running: Vec<_> = clients
        .map(|(name, has_session)| {
            let token = format!("Bearer {name}");
            let authorization = [("Authorization", token.as_str())];
            let capabilities = json!({"elicitation": {}});
            let session = has_session.then(|| front.initialize("2025-11-25", &capabilities, &authorization));
            let mut client = Client { connection: front.connect(), token, session };
            let address = front.address.clone();
            thread::spawn(move || {
                for number in 0..CALLS {
                    let id = if number % 2 == 0 { json!(1) } else { json!("1") };
                    if number % 500 == 250 {
                        // Refused, asked about or handed back, and declined.
                        client.send(&id, "tapOn", &json!({"text": "OK"}));
                        let answer = client.answer(&address, &id);
                        assert!(answer.starts_with("hr1.") || answer.contains("ambiguous"), "{answer}");
                    } else if number % 100 == 50 {
                        // Left before it is answered; the next call uses the same id.
                        // A session does not take it for a cancellation, so that its id is not free.
                        let id = if has_session { json!(format!("left {number}")) } else { id };
                        client.send(
                            &id,
                            "swipe",
                            &json!({"steps": 3, "pauseMs": 5, "deviceId": "A1B2-C3D4"}),
                        );
                        client.connection = Connection::open(&address);
                    } else {
                        let text = format!("{name} {has_session} {number}");
                        client.send(&id, "echo", &json!({"text": text}));
                        assert_eq!(client.answer(&address, &id), text);
                    }
                }
            })
        })
        .collect();
    for client in running {
        client.join().unwrap();
    }
    // Each session has a server, and each principal one for its other requests.
    assert_eq!(front.metric("children"), 4);
    assert_eq!(front.metric("sessions"), 2);
}
