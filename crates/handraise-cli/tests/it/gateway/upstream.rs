//! `handraise mcp --upstream`: what goes over HTTP, and how it starts and ends.

mod dropped;
mod faults;
mod ids;
mod notes;
mod sessions;
mod streams;

use std::{
    collections::BTreeSet,
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{
    asking::{SECOND, accept},
    frames::{FROM_CLIENT, FROM_SERVER},
};
use crate::support::{
    Asked, Gateway, Home, Pair, Rig, Setup, certificates,
    rig::{begin_events, respond, write},
    stderr, wait_for,
};

const JSON: &str = "Content-Type: application/json\r\n";

fn start(home: &Home, server: &[&str]) -> Gateway {
    Gateway::start_over(Pair::Http, home, &Setup { server, variables: &[], before: &[] })
}

fn in_front_of(home: &Home, url: &str) -> Gateway {
    Gateway::command(home, &["--upstream", url])
}

fn modern(id: u64, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Answers `initialize` and what follows it, as a server that opens sessions of that name.
fn opens_session(asked: &Asked, stream: &mut TcpStream, name: &str) -> bool {
    let frame = asked.json();
    match (asked.method.as_str(), frame["method"].as_str()) {
        ("POST", Some("initialize")) => {
            let version = &frame["params"]["protocolVersion"];
            let result =
                json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "rig"}});
            let body = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
            respond(stream, 200, &format!("{JSON}Mcp-Session-Id: {name}\r\n"), &body.to_string());
        }
        ("POST", Some("notifications/initialized")) => respond(stream, 202, "", ""),
        ("GET", _) => respond(stream, 405, "", ""),
        ("DELETE", _) => respond(stream, 200, "", ""),
        _ => return false,
    }
    true
}

#[test]
fn a_modern_request_is_mirrored_in_headers_and_needs_no_session() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.send(&modern(1, "tools/list", &json!({})));
    assert_eq!(gateway.receive()["id"], 1);
    gateway.send(&modern(2, "tools/call", &json!({"name": "tapOn", "arguments": {"text": "OK"}})));
    let state = gateway.receive()["result"]["requestState"].as_str().unwrap().to_owned();
    let answer = json!({"name": "tapOn", "arguments": {"text": "OK"}, "requestState": state,
        "inputResponses": {"deviceChoice": accept(SECOND)}});
    gateway.send(&modern(3, "tools/call", &answer));
    let tapped = gateway.receive();
    assert_eq!(tapped["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{tapped}");
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
    let requests = home.requests();
    assert_eq!(requests.len(), 3, "{requests:?}");
    for request in &requests {
        let headers = &request["headers"];
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert!(headers.get("mcp-session-id").is_none());
    }
    // The call that runs again names its device in the header as well: the server checks that, too.
    assert_eq!(requests[1]["headers"].get("mcp-param-device"), None);
    assert_eq!(requests[2]["headers"]["mcp-param-device"], SECOND);
    assert_eq!(requests[2]["headers"]["mcp-name"], "tapOn");
}

#[test]
fn a_tool_that_nobody_has_listed_gets_its_headers_all_the_same() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.send(&modern(
        1,
        "tools/call",
        &json!({"name": "tapOn", "arguments": {"deviceId": SECOND, "text": "OK"}}),
    ));
    assert_eq!(gateway.receive()["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4");
    let methods: Vec<Value> =
        home.requests().iter().map(|request| request["headers"]["mcp-method"].clone()).collect();
    assert_eq!(methods, ["tools/call", "tools/list", "tools/call"]);
    assert_eq!(gateway.count("tapOn"), 1, "what was refused for its headers has not run");
}

#[test]
fn a_legacy_session_is_opened_listened_to_and_ended() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.initialize("2025-06-18", &json!({}));
    gateway.answer(&json!(1), "echo", &json!({"text": "on"}));
    wait_for("the stream", || home.requests().iter().any(|request| request["method"] == "GET").then_some(()));
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
    let requests = home.requests();
    assert!(requests[0]["headers"].get("mcp-session-id").is_none());
    for request in &requests[1..] {
        assert_eq!(request["headers"]["mcp-session-id"], "session-1", "{request}");
        assert_eq!(request["headers"]["mcp-protocol-version"], "2025-06-18");
    }
    assert_eq!(requests.last().unwrap()["method"], "DELETE");
    assert_eq!(gateway.log.text(), "");
}

#[test]
fn a_modern_call_is_cancelled_by_leaving_its_stream() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.send(&modern(
        1,
        "tools/call",
        &json!({"name": "swipe", "arguments": {"steps": 400, "pauseMs": 20}}),
    ));
    wait_for("the call", || (gateway.count("swipe") == 1).then_some(()));
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    wait_for("its cancel", || gateway.calls().iter().any(|call| call["cancelled"] == "swipe").then_some(()));
    gateway.send(&modern(2, "tools/call", &json!({"name": "echo", "arguments": {"text": "on"}})));
    assert_eq!(gateway.receive()["id"], 2);
    let sent: Vec<String> = home.requests().iter().map(|request| request["body"].to_string()).collect();
    assert!(!sent.iter().any(|body| body.contains("notifications/cancelled")), "{sent:?}");
}

#[test]
fn calls_at_the_same_time_get_their_own_answers() {
    for answers in ["sse", "json"] {
        let home = Home::new();
        let mut gateway = start(&home, &["--answers", answers]);
        gateway.initialize("2025-11-25", &json!({}));
        for id in 0..300 {
            gateway.call(&json!(id), "echo", &json!({"text": format!("text {id}")}));
        }
        let mut seen = BTreeSet::new();
        for _ in 0..300 {
            let answer = gateway.receive();
            let id = answer["id"].as_u64().unwrap();
            assert_eq!(answer["result"]["content"][0]["text"], format!("text {id}"));
            assert!(seen.insert(id));
        }
    }
}

#[test]
fn every_frame_comes_out_as_it_went_in() {
    const FIRST: u64 = 1_000_000;
    let arrived = AtomicUsize::new(0);
    let rig = Rig::start(move |asked, stream| {
        let frame = asked.json();
        if asked.method == "GET" {
            begin_events(stream, "");
            while arrived.load(Ordering::SeqCst) < FROM_CLIENT.len() {
                std::thread::yield_now();
            }
            for frame in FROM_SERVER {
                write(stream, format!("event: message\ndata: {frame}\n\n").as_bytes());
            }
            let _ = std::io::Read::read(stream, &mut [0]);
            return;
        }
        if frame["id"] != FIRST {
            arrived.fetch_add(1, Ordering::SeqCst);
        }
        if frame["method"] != "initialize" && frame["id"] != FIRST {
            return respond(stream, 202, "", "");
        }
        let result = json!({"protocolVersion": "2026-07-28", "serverInfo": {"name": "rig"}});
        let body = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
        respond(stream, 200, &format!("{JSON}Mcp-Session-Id: s\r\n"), &body.to_string());
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    // The server speaks both eras: states of its own go through.
    gateway.send(&modern(FIRST, "server/discover", &json!({})));
    assert!(gateway.receive()["result"].is_object());
    for frame in FROM_CLIENT {
        gateway.write(format!("{frame}\n").as_bytes());
    }
    let mut expected = FROM_SERVER.iter();
    let mut next = expected.next();
    while let Some(frame) = next {
        let line = String::from_utf8(gateway.line()).unwrap();
        // The stream is that of a session, which never sees such a question.
        let is_kept_away = frame.contains("input_required") && line.contains("(input_required)");
        if line.trim_end_matches('\n') == *frame || is_kept_away {
            next = expected.next();
        } else {
            let is_ours = line.contains("no JSON-RPC response to this request") || line.contains("\"rig\"");
            assert!(is_ours, "{line}\ninstead of\n{frame}");
        }
    }
    let mut came: Vec<String> = rig.seen().into_iter().map(|asked| asked.body).collect();
    came.remove(0);
    came.retain(|body| !body.is_empty());
    let mut sent = FROM_CLIENT.to_vec();
    came.sort();
    sent.sort_unstable();
    assert_eq!(came, sent);
}

#[test]
fn what_the_server_acknowledges_is_there_before_the_next_request() {
    let steps: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(0)));
    let rig = Rig::start(move |asked, stream| {
        let frame = asked.json();
        if opens_session(asked, stream, "s") {
            return;
        }
        if frame["method"] == "notifications/roots/list_changed" {
            std::thread::sleep(std::time::Duration::from_millis(100));
            steps.fetch_add(1, Ordering::SeqCst);
            return respond(stream, 202, "", "");
        }
        let result = json!({"content": [], "steps": steps.load(Ordering::SeqCst)});
        respond(
            stream,
            200,
            JSON,
            &json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string(),
        );
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    for id in 1..4 {
        gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
        gateway.call(&json!(id), "echo", &json!({}));
        assert_eq!(gateway.receive()["result"]["steps"], id);
    }
}

#[test]
fn s35_a_signal_ends_the_gateway_and_its_session() {
    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.call(&json!(1), "hang", &json!({}));
    wait_for("the call", || (gateway.count("hang") == 1).then_some(()));
    crate::support::terminate(gateway.child.id());
    let error = gateway.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32603)), "{error}");
    assert_eq!(gateway.wait(), Some(0));
    wait_for("the session's end", || {
        home.requests().iter().any(|request| request["method"] == "DELETE").then_some(())
    });
}

#[test]
fn a_url_that_cannot_be_used_refuses_the_start_and_shows_no_secret() {
    let home = Home::new();
    for (url, said) in [
        (
            "http://mcp.example/mcp?key=hunter2",
            "mcp.example is not this machine, and http:// is not encrypted: use https://",
        ),
        ("https://ada:hunter2@mcp.example/", "put an Authorization header into [upstream] headers"),
        ("mcp.example", "the upstream takes a URL such as https://mcp.example/mcp"),
    ] {
        let output = home.run(&["mcp", "--upstream", url]);
        assert_eq!(output.status.code(), Some(1), "{url}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert!(!stderr(&output).contains("hunter2"), "{}", stderr(&output));
    }
    let output = home.run(&["mcp", "--upstream", "http://localhost:1/", "--", "server"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn s10_a_server_over_tls_is_who_its_certificate_says() {
    let home = Home::new();
    let Some([authority, certificate, key]) = certificates(&home) else {
        println!("skipped: openssl is not installed");
        return;
    };
    let url = home.listener_with_tls(&certificate, &key);
    let (named, addressed) = (url.replace("127.0.0.1", "localhost"), url.as_str());
    for (url, trusted, said) in [
        (&*named, Some(&*authority), "on"),
        (addressed, Some(&*authority), "invalid peer certificate"),
        (&*named, None, "invalid peer certificate"),
    ] {
        // Without the authority, something that certifies nobody here.
        let roots = [("SSL_CERT_FILE", trusted.unwrap_or(&certificate))];
        let mut gateway = Gateway::command_with(&home, &["--upstream", url], &roots);
        gateway.send(&modern(1, "tools/call", &json!({"name": "echo", "arguments": {"text": "on"}})));
        let answer = gateway.receive();
        assert!(answer.to_string().contains(said), "{url}: {answer}");
    }
    assert_eq!(home.requests().len(), 1, "nothing was said to a server that was not trusted");
}
