//! `--listen --upstream`: HTTP on both sides.

use std::{
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Asked, Connection, Front, Home, Rig, modern,
    rig::{begin_events, respond, write},
    wait_for,
};

const JSON: &str = "Content-Type: application/json\r\n";

/// Calls a tool, with headers beside those that mirror the call.
fn call(front: &Front, tool: &str, arguments: &Value, beside: &[(&str, &str)]) -> Connection {
    let (frame, headers) = modern(&json!(7), "tools/call", &json!({"name": tool, "arguments": arguments}));
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let headers: Vec<_> = headers.chain(beside.iter().copied()).collect();
    front.post(&headers, &frame)
}

fn answer(asked: &Asked, stream: &mut TcpStream, result: &Value) {
    let body = json!({"jsonrpc": "2.0", "id": asked.json()["id"], "result": result});
    respond(stream, 200, JSON, &body.to_string());
}

#[test]
fn s37_what_is_read_of_answers_is_counted_and_what_finds_no_room_is_refused_alone() {
    let may_end = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&may_end);
    // A server that begins long answers, one way or the other, and keeps them open.
    let rig = Rig::start(move |asked, stream| {
        let tool = asked.json()["params"]["name"].as_str().unwrap_or_default().to_owned();
        match tool.as_str() {
            "stream" => {
                begin_events(stream);
                write(stream, b"data: {");
            }
            "body" => {
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n{";
                write(stream, head.as_bytes());
            }
            "held" => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n{JSON}\r\n");
                write(stream, head.as_bytes());
                write(stream, " ".repeat(2_299_999).as_bytes());
            }
            _ => return answer(asked, stream, &json!({"content": []})),
        }
        write(stream, " ".repeat(700_000).as_bytes());
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let home = Home::new();
    let variables =
        [("HANDRAISE_MCP__IN_FLIGHT_BYTES", "4194304"), ("HANDRAISE_MCP__MAX_FRAME_BYTES", "3100000")];
    let front = Front::in_front_of(&home, &rig.url, &variables);
    let mut held = call(&front, "held", &json!({}), &[]);
    wait_for("all but the last byte", || (front.metric("answer_bytes") == 3_000_000).then_some(()));
    for tool in ["stream", "body"].into_iter().cycle().take(40) {
        let (status, error) = call(&front, tool, &json!({}), &[]).answer();
        assert_eq!((status, &error["id"], &error["error"]["code"]), (200, &json!(7), &json!(-32603)));
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("4194304 bytes") && message.contains("mcp.in_flight_bytes"), "{message}");
    }
    assert_eq!(front.metric("answers_refused_total{reason=\"bytes_in_flight\"}"), 40);
    assert!(front.metric("answer_bytes") <= 4_194_304);
    assert_eq!(front.log.text().matches("no room for the answer").count(), 40);
    // Who wants less is served.
    let (_, short) = call(&front, "echo", &json!({}), &[]).answer();
    assert_eq!(short["result"]["content"], json!([]), "{short}");
    // What was held is free again once it has ended, as an answer or not.
    may_end.store(true, Ordering::Relaxed);
    let (_, error) = held.answer();
    assert!(error["error"]["message"].as_str().unwrap().contains("broke off"), "{error}");
    wait_for("room", || (front.metric("answer_bytes") == 0).then_some(()));
    let (_, error) = call(&front, "stream", &json!({}), &[]).answer();
    assert!(error["error"]["message"].as_str().unwrap().contains("broke off"), "{error}");
}

#[test]
fn s3_headers_of_arguments_that_nobody_has_listed_go_on_and_those_that_are_known_are_computed() {
    let rig = Rig::start(|asked, stream| {
        let result = if asked.json()["method"] == "tools/list" {
            let region = json!({"type": "string", "x-mcp-header": "Region"});
            let schema = json!({"type": "object", "properties": {"region": region}});
            json!({"tools": [{"name": "deploy", "inputSchema": schema}]})
        } else {
            json!({"content": []})
        };
        answer(asked, stream, &result);
    });
    let home = Home::new();
    let front = Front::in_front_of(&home, &rig.url, &[]);
    let given = [
        ("Mcp-Param-Region", "eu"),
        ("Mcp-Param-Team", "=?base64?w6k=?="),
        ("Mcp-Param-Twice", "a"),
        ("Mcp-Param-Twice", "b"),
        ("X-Other", "mine"),
        ("Authorization", "Bearer hunter2"),
    ];
    let deploy = |region: &str, beside: &[(&str, &str)]| {
        let (status, answer) = call(&front, "deploy", &json!({ "region": region }), beside).answer();
        let last = rig.seen().pop().unwrap();
        let names = ["mcp-param-region", "mcp-param-team", "mcp-param-twice", "x-other", "authorization"];
        (status, answer, names.map(|name| last.headers.get(name).cloned()))
    };
    let some = |value: &str| Some(value.to_owned());
    // Nobody has listed the tool: what the client wrote is the server's to compare.
    let (status, _, seen) = deploy("eu", &given);
    assert_eq!((status, seen), (200, [some("eu"), some("=?base64?w6k=?="), None, None, None]));
    let (frame, headers) = modern(&json!(1), "tools/list", &json!({}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(front.post(&headers, &frame).answer().0, 200);
    // Now the argument is known: it is compared, and computed.
    let calls = rig.seen().len();
    let (status, error, _) = deploy("us", &given);
    assert_eq!((status, &error["error"]["code"], rig.seen().len()), (400, &json!(-32020), calls));
    let (status, _, seen) = deploy("eu", &given);
    assert_eq!((status, seen), (200, [some("eu"), some("=?base64?w6k=?="), None, None, None]));
}
