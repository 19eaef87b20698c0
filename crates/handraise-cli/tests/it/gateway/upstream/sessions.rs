//! Sessions of a server at a URL: each belongs to one client, ends, and is forgotten.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{JSON, in_front_of, modern, opens_session};
use crate::support::{
    Home, Rig,
    rig::{begin_events, respond, write},
    wait_for,
};

#[test]
fn a_session_that_the_server_forgets_ends_its_calls_and_can_be_opened_again() {
    let rig = Rig::start(|asked, stream| {
        let opened = asked.json()["params"]["protocolVersion"] == "2025-06-18";
        let name = if opened { "second" } else { "first" };
        if opens_session(asked, stream, name) {
            return;
        }
        let frame = asked.json();
        if frame["params"]["name"] == "hang" {
            begin_events(stream, "");
            let _ = std::io::Read::read(stream, &mut [0]);
        } else if asked.headers["mcp-session-id"] == "first" {
            respond(
                stream,
                404,
                JSON,
                r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
            );
        } else {
            respond(
                stream,
                200,
                JSON,
                &json!({"jsonrpc": "2.0", "id": frame["id"], "result": {}}).to_string(),
            );
        }
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.call(&json!(1), "hang", &json!({}));
    wait_for("the call", || rig.seen().iter().any(|asked| asked.body.contains("hang")).then_some(()));
    gateway.call(&json!(2), "echo", &json!({}));
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let error = gateway.receive();
        let message = "the MCP server no longer knows the session; initialize again";
        assert_eq!(error["error"]["message"], message, "{error}");
        ids.insert(error["id"].to_string());
    }
    assert_eq!(ids.len(), 2);
    gateway.initialize("2025-06-18", &json!({}));
    gateway.answer(&json!(3), "echo", &json!({}));
    assert_eq!(rig.seen().last().unwrap().headers["mcp-session-id"], "second");
}

#[test]
fn the_stream_of_a_session_goes_on_where_it_broke() {
    let rig = Rig::start(|asked, stream| {
        if asked.method != "GET" {
            opens_session(asked, stream, "s");
            return;
        }
        begin_events(stream, "");
        match asked.headers.get("last-event-id").map(String::as_str) {
            None => write(
                stream,
                b"retry: 10\nid: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\nid: 6\ndata: {",
            ),
            Some("5") => {
                write(stream, b"id: 6\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n\n");
                let _ = std::io::Read::read(stream, &mut [0]);
            }
            Some(_) => {}
        }
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    assert_eq!(gateway.receive()["method"], "one");
    assert_eq!(gateway.receive()["method"], "two");
}

#[test]
fn s6_each_session_of_a_caller_has_a_session_of_its_own_upstream() {
    let home = Home::new();
    let url = home.listener(&[]);
    let mut gateways = [in_front_of(&home, &url), in_front_of(&home, &url)];
    for gateway in &mut gateways {
        gateway.initialize("2025-11-25", &json!({}));
    }
    for (number, gateway) in gateways.iter_mut().enumerate() {
        let text = format!("of {number}");
        let answer = gateway.answer(&json!(1), "echo", &json!({ "text": text }));
        assert_eq!(answer["result"]["content"][0]["text"], text);
        // Requests of the modern era share nothing but the server.
        gateway.send(&modern(2, "tools/call", &json!({"name": "echo", "arguments": {"text": text}})));
        let answer = gateway.receive();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(2), &json!(text)));
    }
    for gateway in &mut gateways {
        gateway.close();
        assert_eq!(gateway.wait(), Some(0));
    }
    wait_for("the end of both sessions", || {
        let requests = home.requests();
        let ended = requests.iter().filter(|request| request["method"] == "DELETE");
        let sessions: BTreeSet<String> =
            ended.map(|request| request["headers"]["mcp-session-id"].to_string()).collect();
        (sessions.len() == 2).then_some(())
    });
    let calls = home.requests().into_iter().filter(|request| request["body"].to_string().contains("echo"));
    let sessions: Vec<Value> = calls.map(|call| call["headers"]["mcp-session-id"].clone()).collect();
    assert_eq!(sessions, [json!("session-1"), Value::Null, json!("session-2"), Value::Null]);
}

#[test]
fn a_session_that_the_server_forgets_is_forgotten_by_the_gateway_in_front_of_it() {
    let home = Home::new();
    let mut gateway = in_front_of(&home, &home.listener(&["--forget"]));
    for _ in 0..2 {
        gateway.initialize("2025-11-25", &json!({}));
        gateway.call(&json!(1), "echo", &json!({}));
        // The server's word on the call, or ours once the session's own stream has found it out.
        let error = gateway.receive();
        let message = error["error"]["message"].as_str().unwrap();
        let words = ["no longer knows the session", "there is no such session"];
        assert!(words.iter().any(|word| message.contains(word)), "{error}");
    }
    assert_eq!(gateway.count("echo"), 0);
}
