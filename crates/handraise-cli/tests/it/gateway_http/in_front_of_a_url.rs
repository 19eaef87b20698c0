//! `--listen --upstream`: HTTP on both sides.

use std::{
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
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
                begin_events(stream, "");
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

#[test]
fn headers_of_a_call_go_with_every_run_of_it_and_follow_its_arguments_in_both_eras() {
    let home = Home::new();
    let url = home.server(&[]);
    let front = Front::in_front_of(&home, &url, &[("HANDRAISE_ASK_MIN_HUMAN_MS", "0")]);
    let taps = |from: usize| -> Vec<[Option<String>; 2]> {
        let is_tap = |request: &&Value| request["body"].as_str().unwrap().contains("\"tapOn\"");
        let requests = home.requests();
        let header = |request: &Value, name: &str| request["headers"][name].as_str().map(str::to_owned);
        let both = |request| ["mcp-param-device", "mcp-param-team"].map(|name| header(request, name));
        requests.iter().filter(is_tap).skip(from).map(both).collect()
    };
    let some = |value: &str| Some(value.to_owned());
    let tap = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "tapOn", "arguments": {"text": "OK"}}});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    // A session whose client writes headers of the newer era, and one whose client writes none.
    let newer =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Param-Team", "blue")];
    let mut seen = 0;
    for (beside, first, again) in [
        (&newer[..], [None, some("blue")], [some("A1B2-C3D4"), some("blue")]),
        (&[], [None, None], [None, None]),
    ] {
        let session = front.initialize("2025-06-18", &json!({"elicitation": {}}), &[]);
        let named = [("Mcp-Session-Id", session.as_str())];
        front.post(&named, &list).answer_in_time();
        let mut stream = front.post(&[&named[..], beside].concat(), &tap);
        stream.stream();
        let ask = stream.event().unwrap().frame();
        let result = json!({"action": "accept", "content": {"deviceId": "A1B2-C3D4"}});
        let accepted = json!({"jsonrpc": "2.0", "id": ask["id"], "result": result});
        assert_eq!(front.post(&named, &accepted).head().status, 202);
        assert_eq!(
            stream.event().unwrap().frame()["result"]["content"][0]["text"],
            "tapped \"OK\" on A1B2-C3D4"
        );
        assert_eq!(taps(seen), [first, again]);
        seen += 2;
    }
    // What is known to mirror an argument says what the argument says, or nothing runs.
    let session = front.initialize("2025-06-18", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    front.post(&[named], &list).answer_in_time();
    let mut chosen = tap.clone();
    chosen["params"]["arguments"]["deviceId"] = json!("A1B2-C3D4");
    let (status, error) = front.post(&[named, ("Mcp-Param-Device", "emulator-5554")], &chosen).answer();
    assert_eq!((status, &error["error"]["code"], taps(seen).len()), (400, &json!(-32020), 0), "{error}");
    front.post(&[named, ("Mcp-Param-Device", "A1B2-C3D4")], &chosen).answer_in_time();
    assert_eq!(taps(seen), [[some("A1B2-C3D4"), None]]);
    seen += 1;
    // And in the era of the headers.
    let asked = call(&front, "tapOn", &json!({"text": "OK"}), &newer[2..]).answer_in_time();
    let state = &asked["result"]["requestState"];
    let choice = json!({"action": "accept", "content": {"deviceId": "A1B2-C3D4"}});
    let params = json!({"name": "tapOn", "arguments": {"text": "OK"}, "requestState": state,
        "inputResponses": {"deviceChoice": choice}});
    let (frame, headers) = modern(&json!(8), "tools/call", &params);
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(newer[2]);
    let tapped = front.post(&headers, &frame).answer_in_time();
    assert_eq!(tapped["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{tapped}");
    let runs = taps(seen);
    assert_eq!(runs.last(), Some(&[some("A1B2-C3D4"), some("blue")]), "{runs:?}");
    assert!(runs.iter().all(|[_, team]| *team == some("blue")), "{runs:?}");
}

/// A server that asks on the stream of a call, and fails to take so many answers in this way.
fn asking(failures: usize, fail: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> (Rig, Arc<AtomicUsize>) {
    let answers = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answers);
    let rig = Rig::start(move |asked, stream| {
        let frame = asked.json();
        match frame["method"].as_str() {
            Some("initialize") => {
                let json = "Content-Type: application/json\r\nMcp-Session-Id: s\r\n";
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
                respond(
                    stream,
                    200,
                    json,
                    &json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string(),
                );
            }
            Some("tools/call") => {
                begin_events(stream, "");
                write(stream, b"data: {\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n");
                for _ in 0..1500 {
                    if count.load(Ordering::Relaxed) > failures {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                let answer = json!({"jsonrpc": "2.0", "id": frame["id"], "result": {"content": [{"type": "text", "text": "answered"}]}});
                write(stream, format!("data: {answer}\n\n").as_bytes());
            }
            None if asked.method == "POST" => {
                if count.fetch_add(1, Ordering::Relaxed) < failures {
                    return fail(stream);
                }
                respond(stream, 202, "", "");
            }
            Some(_) => respond(stream, 202, "", ""),
            None => respond(stream, 405, "", ""),
        }
    });
    (rig, answers)
}

/// Calls a tool, and answers its question; the answer to the call.
fn answered(url: &str) -> Value {
    let home = Home::new();
    let front = Front::in_front_of(&home, url, &[]);
    let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &[]);
    let named = [("Mcp-Session-Id", session.as_str())];
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x", "arguments": {}}});
    let mut stream = front.post(&named, &call);
    stream.stream();
    let id = stream.event().unwrap().frame()["id"].clone();
    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
    assert_eq!(front.post(&named, &answer).head().status, 202);
    let end = stream.event().unwrap().frame();
    assert_eq!(end["id"], 1, "{end}");
    end
}

#[test]
fn an_answer_that_the_server_did_not_get_is_sent_again_and_one_that_it_never_gets_ends_the_call() {
    for (failures, status) in [(1, None), (1, Some(503)), (2, None)] {
        let (rig, answers) = asking(failures, move |stream| {
            if let Some(status) = status {
                respond(stream, status, "", "");
            }
        });
        let end = answered(&rig.url);
        assert_eq!(end["result"]["content"][0]["text"], "answered", "{end}");
        assert_eq!(answers.load(Ordering::Relaxed), failures + 1);
    }
    let (rig, answers) = asking(usize::MAX, |_| ());
    let end = answered(&rig.url);
    let message = end["error"]["message"].as_str().unwrap();
    assert!(message.contains("the answer to a question of the MCP server does not reach it"), "{end}");
    assert_eq!(answers.load(Ordering::Relaxed), 5);
}
