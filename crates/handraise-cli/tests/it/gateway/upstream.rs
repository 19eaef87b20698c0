//! `handraise mcp --upstream`: what goes over HTTP, and what a server may do wrong.

use std::{
    collections::BTreeSet,
    net::{TcpListener, TcpStream},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{
    asking::{SECOND, accept},
    frames::{FROM_CLIENT, FROM_SERVER},
};
use crate::support::{
    Asked, Gateway, Home, Pair, Rig, Setup,
    rig::{begin_events, respond, write},
    stderr, wait_for,
};

const JSON: &str = "Content-Type: application/json\r\n";
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;

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
    let arrived = AtomicUsize::new(0);
    let rig = Rig::start(move |asked, stream| {
        let frame = asked.json();
        if asked.method == "GET" {
            begin_events(stream);
            while arrived.load(Ordering::SeqCst) < FROM_CLIENT.len() {
                std::thread::yield_now();
            }
            for frame in FROM_SERVER {
                write(stream, format!("event: message\ndata: {frame}\n\n").as_bytes());
            }
            let _ = std::io::Read::read(stream, &mut [0]);
            return;
        }
        arrived.fetch_add(1, Ordering::SeqCst);
        if frame["method"] != "initialize" {
            return respond(stream, 202, "", "");
        }
        // A version of both eras: states of the server's own go through.
        let result = json!({"protocolVersion": "2026-07-28", "serverInfo": {"name": "rig"}});
        let body = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
        respond(stream, 200, &format!("{JSON}Mcp-Session-Id: s\r\n"), &body.to_string());
    });
    let home = Home::new();
    let mut gateway = in_front_of(&home, &rig.url);
    for frame in FROM_CLIENT {
        gateway.write(format!("{frame}\n").as_bytes());
    }
    let mut expected = FROM_SERVER.iter();
    let mut next = expected.next();
    while let Some(frame) = next {
        let line = String::from_utf8(gateway.line()).unwrap();
        if line.trim_end_matches('\n') == *frame {
            next = expected.next();
        } else {
            let is_ours = line.contains("no JSON-RPC response to this request") || line.contains("\"rig\"");
            assert!(is_ours, "{line}\ninstead of\n{frame}");
        }
    }
    let mut came: Vec<String> = rig.seen().into_iter().map(|asked| asked.body).collect();
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

/// What a call ends with when the server answers like this.
fn error_of(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (String, String) {
    let rig = Rig::start(move |_, stream| answer(stream));
    let home = Home::new();
    home.write_config("[upstream]\nheaders = { Authorization = 'Bearer header-canary' }\n");
    let mut gateway = Gateway::command(&home, &["--log", "debug", "--upstream", &rig.url]);
    gateway.write(format!("{CALL}\n").as_bytes());
    let error = gateway.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32603)), "{error}");
    assert_eq!(rig.seen()[0].headers["authorization"], "Bearer header-canary");
    (error["error"]["message"].as_str().unwrap().to_owned(), gateway.log.text())
}

#[test]
fn s33_whatever_a_server_answers_beside_the_protocol_ends_the_call_and_is_not_shown() {
    let status = |status: u16, headers: &'static str| {
        error_of(move |stream| respond(stream, status, headers, "{\"error\":\"body-canary\"}"))
    };
    let moved = "Location: http://127.0.0.1:1/?body-canary\r\n";
    for ((message, log), expected) in [
        (status(401, JSON), "HTTP status 401; check the credentials in [upstream] headers"),
        (status(403, JSON), "HTTP status 403; check the credentials in [upstream] headers"),
        (status(404, "Content-Type: text/html\r\n"), "HTTP status 404; check the URL"),
        (status(400, JSON), "HTTP status 400"),
        (status(500, JSON), "HTTP status 500"),
        (status(503, ""), "HTTP status 503; try again later"),
        (
            status(307, moved),
            "HTTP status 307, a redirect, which is not followed; give the URL that it leads to",
        ),
        (status(200, "Content-Type: text/html\r\n"), "no JSON-RPC response to this request"),
        (status(200, JSON), "no JSON-RPC response to this request"),
        (status(202, ""), "no JSON-RPC response to this request"),
    ] {
        assert!(message.ends_with(expected), "{message}, and not {expected}");
        assert!(!message.contains("canary") && !log.contains("canary"), "{message}\n{log}");
    }
}

#[test]
fn s33_a_stream_that_makes_no_sense_or_breaks_off_ends_the_call() {
    for stream_bytes in [
        &b"data: body-canary\n\n"[..],
        b"",
        b"\xFF\xFE\x00",
        b"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"body-canary\":1}",
        b"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n",
        b"event: other\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
    ] {
        let home = Home::new();
        let rig = Rig::start(move |_, stream| {
            begin_events(stream);
            write(stream, stream_bytes);
        });
        let mut gateway = in_front_of(&home, &rig.url);
        gateway.write(format!("{CALL}\n").as_bytes());
        let error = wait_for("the error", || {
            let frame = gateway.receive();
            frame.get("error").is_some().then_some(frame)
        });
        assert_eq!(error["error"]["message"], "the answer of the MCP server broke off", "{stream_bytes:?}");
        assert!(!gateway.log.text().contains("canary"), "{}", gateway.log.text());
    }
    let (message, _) = error_of(|_| {});
    assert_eq!(message, "the answer of the MCP server broke off");
    let (message, _) = error_of(|stream| write(stream, b"what is this?\r\n\r\n"));
    assert!(message.starts_with("cannot reach the MCP server: "), "{message}");
}

#[test]
fn a_server_that_is_not_there_is_named_as_such_and_may_come_later() {
    let home = Home::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = in_front_of(&home, &format!("http://{closed}/mcp"));
    gateway.write(format!("{CALL}\n").as_bytes());
    let error = gateway.receive();
    assert_eq!(error["error"]["message"], "cannot reach the MCP server: connection refused", "{error}");
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));

    let home = Home::new();
    let mut gateway = start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.call(&json!(1), "hang", &json!({}));
    gateway.send(&modern(2, "tools/call", &json!({"name": "hang", "arguments": {}})));
    wait_for("both calls", || (gateway.count("hang") == 2).then_some(()));
    home.kill_servers();
    let mut ids: Vec<Value> = (0..2)
        .map(|_| {
            let error = gateway.receive();
            assert!(error["error"]["message"].is_string(), "{error}");
            error["id"].clone()
        })
        .collect();
    ids.sort_by_key(ToString::to_string);
    assert_eq!(ids, [json!(1), json!(2)]);
}

#[test]
fn an_error_of_the_protocol_comes_through_whatever_its_status() {
    for (status, body, expected) in [
        (
            404,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}"#,
        ),
        (
            400,
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"not now"},"id":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not now"}}"#,
        ),
        (
            200,
            "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {}\n}",
            "{   \"jsonrpc\": \"2.0\",    \"id\": 1,   \"result\": {} }",
        ),
    ] {
        let rig = Rig::start(move |_, stream| respond(stream, status, JSON, body));
        let home = Home::new();
        let mut gateway = in_front_of(&home, &rig.url);
        gateway.write(format!("{CALL}\n").as_bytes());
        assert_eq!(String::from_utf8(gateway.line()).unwrap(), format!("{expected}\n"));
    }
}

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
            begin_events(stream);
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
        begin_events(stream);
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
fn s37_an_answer_that_is_too_long_ends_its_call_and_no_other() {
    for answers in ["sse", "json"] {
        let home = Home::new();
        let variables = [("HANDRAISE_MCP__MAX_FRAME_BYTES", "65536")];
        let setup = Setup { server: &["--answers", answers], variables: &variables, before: &[] };
        let mut gateway = Gateway::start_over(Pair::Http, &home, &setup);
        gateway.initialize("2025-11-25", &json!({}));
        for (id, bytes, is_taken) in [(1, 60_000, true), (2, 5_000_000, false), (3, 60_000, true)] {
            let answer = gateway.answer(&json!(id), "big", &json!({ "bytes": bytes }));
            assert_eq!(answer["result"].is_object(), is_taken, "{id}");
            if !is_taken {
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains("longer than 65536 bytes"), "{message}");
            }
        }
    }
}

#[test]
fn s37_an_answer_that_is_too_long_ends_its_call_when_its_id_stands_at_the_end() {
    let rig = Rig::start(|asked, stream| {
        if !opens_session(asked, stream, "s") {
            let long = "x".repeat(200_000);
            begin_events(stream);
            let answer = format!(r#"{{"result":{{"text":"{long}"}},"jsonrpc":"2.0","id":1}}"#);
            write(stream, format!("data: {answer}\n\n").as_bytes());
        }
    });
    let home = Home::new();
    home.write_config("[mcp]\nmax_frame_bytes = 65536\n");
    let mut gateway = in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    let error = gateway.answer(&json!(1), "echo", &json!({}));
    assert!(error["error"]["message"].as_str().unwrap().contains("longer than 65536 bytes"), "{error}");
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

/// A certificate for `localhost` by an authority that nobody but the test trusts: both PEM, and the key.
fn certificates(home: &Home) -> Option<[String; 3]> {
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let [authority, authority_key, certificate, key] = ["ca.pem", "ca.key", "cert.pem", "cert.key"].map(file);
    let openssl = |arguments: &[&str]| Command::new("openssl").args(arguments).output();
    let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    let own = ["-keyout", &authority_key, "-out", &authority, "-subj", "/CN=the tests"];
    let output = openssl(&[&new[..], &own].concat()).ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    let signed = ["-CA", &authority, "-CAkey", &authority_key, "-keyout", &key, "-out", &certificate];
    let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    let output =
        openssl(&[&new[..], &signed, &names, &["-addext", "basicConstraints=critical,CA:FALSE"]].concat())
            .ok()?;
    assert!(output.status.success(), "{}", stderr(&output));
    Some([authority, certificate, key])
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
