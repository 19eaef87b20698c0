//! What a server at a URL may do wrong, and what its client then hears.

use std::net::TcpStream;

use serde_json::{Value, json};

use super::{JSON, in_front_of, modern, opens_session, start};
use crate::support::{
    Gateway, Home, Pair, Rig, Setup,
    rig::{begin_events, respond, write},
    wait_for,
};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;

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
            begin_events(stream, "");
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
fn s33_an_answer_that_nobody_could_read_ends_the_call() {
    for broken in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"body-canary\":1}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"body-canary\":1}}{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"body-canary\":\"\xFF\"}}",
    ] {
        let length = format!("{JSON}Content-Length: {}\r\n", broken.len());
        let whole = error_of(move |stream| {
            write(stream, format!("HTTP/1.1 200 OK\r\n{length}\r\n").as_bytes());
            write(stream, broken);
        });
        let event = error_of(move |stream| {
            begin_events(stream, "");
            write(stream, &[b"data: ", broken, b"\n\n"].concat());
        });
        for (message, log) in [whole, event] {
            assert!(message.ends_with("no JSON-RPC response to this request"), "{message}");
            assert!(!message.contains("canary") && !log.contains("canary"), "{message}\n{log}");
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_named_as_such_and_may_come_later() {
    let home = Home::new();
    // A port that is taken, by a socket that does not listen: nobody else comes to listen on it meanwhile.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let closed = taken.local_addr().unwrap();
    let mut gateway = in_front_of(&home, &format!("http://{closed}/mcp"));
    gateway.write(format!("{CALL}\n").as_bytes());
    let error = gateway.receive();
    assert_eq!(error["error"]["message"], "cannot reach the MCP server: connection refused", "{error}");
    gateway.log.wait_for(&closed.to_string());
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
            begin_events(stream, "");
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
