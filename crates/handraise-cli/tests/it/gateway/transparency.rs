//! What goes in comes out, byte for byte.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use serde_json::{Value, json};

use super::frames::{FROM_CLIENT, FROM_SERVER};
use crate::support::{Gateway, Home, Setup, binary, wait_for};

/// Frames as one text, each line with this end.
fn joined(frames: &[&str], end: &str) -> String {
    frames.iter().fold(String::new(), |mut text, frame| {
        let _ = write!(text, "{frame}{end}");
        text
    })
}

/// Passes the frames of both sides through; the server's come when all of the client's have arrived.
#[track_caller]
fn check_differential(
    end: &str,
    before: &[&str],
    arguments: &[&str],
    write: impl FnMut(&mut Gateway, &[u8]),
) {
    check_differential_with(["", ""], end, before, arguments, write);
}

/// The same where this stands before every frame of the client, and of the server, and is none.
#[track_caller]
fn check_differential_with(
    [stray, noise]: [&str; 2],
    end: &str,
    before: &[&str],
    arguments: &[&str],
    mut write: impl FnMut(&mut Gateway, &[u8]),
) {
    assert!(
        FROM_CLIENT.len() >= 60 && FROM_SERVER.len() >= 60,
        "{} {}",
        FROM_CLIENT.len(),
        FROM_SERVER.len()
    );
    let home = Home::new();
    let frames = joined(FROM_CLIENT, end);
    let (question, answer) =
        (joined(FROM_CLIENT, &format!("{end}{stray}")), joined(FROM_SERVER, &format!("{end}{noise}")));
    let file = home.path().join("answer");
    std::fs::write(&file, format!("{noise}{answer}")).unwrap();
    let after = FROM_CLIENT.len().to_string();
    let raw = ["--raw", file.to_str().unwrap(), "--after", &after];
    let server = [&raw, arguments].concat();
    let mut gateway = Gateway::start_with(&home, &Setup { server: &server, variables: &[], before });
    write(&mut gateway, format!("{stray}{question}").as_bytes());
    for expected in FROM_SERVER {
        let line = String::from_utf8(gateway.line()).unwrap();
        assert_eq!(line, format!("{expected}{end}"));
    }
    assert_eq!(String::from_utf8(gateway.received()).unwrap(), frames);
    gateway.close();
    // What the server has not answered when it ends is answered for it, and that is all.
    let rest = String::from_utf8(gateway.rest()).unwrap();
    assert!(rest.lines().all(|line| line.contains("the MCP server ended: exit status 0")), "{rest}");
    assert_eq!(gateway.wait(), Some(0));
}

fn at_once(gateway: &mut Gateway, bytes: &[u8]) {
    gateway.write(bytes);
}

fn byte_by_byte(gateway: &mut Gateway, bytes: &[u8]) {
    for byte in bytes {
        gateway.write(&[*byte]);
    }
}

#[test]
fn every_frame_comes_out_as_it_went_in() {
    check_differential("\n", &[], &[], at_once);
}

#[test]
fn every_frame_comes_out_as_it_went_in_when_it_is_split_at_every_byte() {
    check_differential("\n", &[], &["--pieces", "1"], byte_by_byte);
}

#[test]
fn every_frame_comes_out_as_it_went_in_with_crlf() {
    check_differential("\r\n", &[], &["--pieces", "7"], at_once);
}

#[test]
fn every_frame_comes_out_as_it_went_in_among_marks_blank_lines_and_noise() {
    for (end, pieces) in [("\n", "1000000"), ("\r\n", "5")] {
        let noise = format!("Server listening…{end} {end}{end}\u{feff}");
        let stray = format!("{end} \t{end}\u{feff}");
        check_differential_with([&stray, &noise], end, &[], &["--pieces", pieces], at_once);
    }
}

#[test]
fn a_legacy_session_never_sees_input_required() {
    let said = [
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"input\u005frequired","inputRequests":{}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":3,"result":{"result\u0054ype":"\u0069nput_required"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","resultType":"input_required"}}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"a":"{0}","resultType":"input_required","b":"{0}"}}}}"#, "x".repeat(300_000)),
        r#"{"result":{"resultType":"input_required","inputRequests":{}},"jsonrpc":"2.0","id":6}"#.to_owned(),
    ];
    let home = Home::new();
    let file = home.path().join("answer");
    std::fs::write(&file, said.join("\n") + "\n").unwrap();
    let calls = said.len() - 1;
    let after = (calls + 2).to_string();
    let mut gateway = Gateway::start(&home, &["--raw", file.to_str().unwrap(), "--after", &after]);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"}});
    gateway.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for id in 1..=calls {
        gateway.call(&json!(id), "echo", &json!({}));
    }
    assert!(gateway.receive()["result"].is_object());
    for id in 1..=calls {
        let answer = gateway.receive();
        assert!(
            answer["id"] == id && answer["error"]["code"] == -32603 && answer["result"].is_null(),
            "{answer}"
        );
    }
}

#[test]
fn every_frame_comes_out_as_it_went_in_through_two_gateways() {
    check_differential("\n", &[binary(), "mcp", "--"], &[], at_once);
}

#[test]
fn byte_order_marks_blank_lines_and_noise_are_no_frames() {
    let home = Home::new();
    for style in ["bom", "noise", "crlf"] {
        let mut gateway = Gateway::start(&home, &["--lines", style]);
        gateway.write(b"\n\r\n");
        gateway.write("\u{feff}".as_bytes());
        gateway.initialize("2025-11-25", &json!({}));
        assert_eq!(
            gateway.answer(&json!(1), "echo", &json!({"text": "ü"}))["result"]["content"][0]["text"],
            "ü"
        );
        if style == "noise" {
            wait_for("word of the noise", || gateway.log.text().contains("is no frame").then_some(()));
            assert!(!gateway.log.text().contains("Server listening"), "{}", gateway.log.text());
        }
    }
}

#[test]
fn a_result_of_16_mib_comes_out_as_it_went_in() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    let bytes = 16 << 20;
    gateway.call(&json!(1), "big", &json!({ "bytes": bytes }));
    let line = gateway.line();
    let expected = "abcdefghijklmnop".repeat(bytes / 16);
    let frame = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{expected}\"}}]}}}}\n"
    );
    assert!(line == frame.as_bytes(), "{} bytes", line.len());
    // And the other way.
    gateway.call(&json!(2), "echo", &json!({ "text": expected }));
    let line = gateway.line();
    let frame = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{expected}\"}}]}}}}\n"
    );
    assert!(line == frame.as_bytes(), "{} bytes", line.len());
}

#[test]
fn a_client_that_gives_us_a_socket_is_served_as_over_pipes() {
    // Node gives its children sockets.
    let home = Home::new();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut command = home.handraise(&["mcp", "--", binary(), "fake-server"]);
    command.stdin(OwnedFd::from(theirs.try_clone().unwrap())).stdout(OwnedFd::from(theirs));
    let mut child = command.spawn().unwrap();
    drop(command);
    // More than the socket holds, while nobody reads.
    let frame = |id: usize| {
        let text = "x".repeat(200_000);
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}}}}}\n"
        )
    };
    let mut lines = BufReader::new(ours.try_clone().unwrap()).lines();
    let writer = std::thread::spawn(move || {
        for id in 0..20 {
            ours.write_all(frame(id).as_bytes()).unwrap();
        }
        ours.shutdown(Shutdown::Write).unwrap();
    });
    for id in 0..20 {
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], answer["result"]["content"][0]["text"].as_str().unwrap().len()),
            (&json!(id), 200_000)
        );
    }
    writer.join().unwrap();
    assert!(lines.next().is_none());
    assert_eq!(wait_for("the end", || child.try_wait().unwrap()).code(), Some(0));
}

#[test]
fn questions_of_the_server_reach_the_client_under_their_own_id() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
    gateway.call(&json!(0), "ask", &json!({"askId": 0}));
    let question = gateway.receive();
    assert_eq!(
        (&question["id"], &question["method"]),
        (&json!(0), &json!("elicitation/create")),
        "{question}"
    );
    gateway.send(
        &json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"colour": "red"}}}),
    );
    let answer = gateway.receive();
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "{\"action\":\"accept\",\"content\":{\"colour\":\"red\"}}"
    );
}

#[test]
fn calls_at_the_same_time_get_their_own_answers() {
    let home = Home::new();
    let mut gateway = Gateway::start(&home, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    for id in 0..500 {
        let tool = if id % 5 == 0 { "swipe" } else { "echo" };
        let arguments =
            json!({"text": format!("text {id}"), "deviceId": "A1B2-C3D4", "steps": 1, "pauseMs": id % 7});
        gateway.call(&json!(id), tool, &arguments);
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let answer = gateway.receive();
        let id = answer["id"].as_u64().unwrap();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let expected =
            if id.is_multiple_of(5) { "swiped on A1B2-C3D4".to_owned() } else { format!("text {id}") };
        assert_eq!(text, expected);
        assert!(seen.insert(id));
    }
}
