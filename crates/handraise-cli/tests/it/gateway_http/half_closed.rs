//! Clients that send no more and still wait, and clients that have left (RFC 9112 §9.6).

use std::time::Duration;

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::support::{Connection, Front, Home, initialize, modern, wait_for, wait_within};

/// Makes a request one that hyper reads, and means nothing else.
const OTHERWISE: (&str, &str) = ("Connection", "keep-alive, x-nothing");

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn swipe(id: u64) -> Value {
    call(id, "swipe", &json!({"steps": 10, "pauseMs": 20, "deviceId": "A1B2-C3D4"}))
}

/// What comes of a request after which nothing more is sent.
fn ask(front: &Front, headers: &[(&str, &str)], frame: &Value) -> Connection {
    let connection = front.post(headers, frame);
    connection.send_no_more();
    connection
}

/// Nothing more comes, and the connection is not kept.
#[track_caller]
fn assert_over(mut connection: Connection) {
    let begun = SystemClock.boot_millis();
    assert_eq!(connection.rest(), 0);
    let took = SystemClock.boot_millis() - begun;
    assert!(took < 10_000, "{took} ms");
}

#[test]
fn who_sends_no_more_gets_the_answer_of_its_session_whoever_reads_the_request() {
    let home = Home::new();
    let front = Front::start(&home);
    for otherwise in [&[][..], &[OTHERWISE]] {
        let mut opened = ask(&front, otherwise, &initialize("2025-11-25", &json!({})));
        let head = opened.head();
        let session = head.header("mcp-session-id").to_owned();
        let answer: Value = serde_json::from_str(&opened.body(&head)).unwrap();
        assert_eq!((head.status, &answer["id"]), (200, &json!("init")), "{answer}");
        assert_over(opened);
        let headers = [otherwise, &[("Mcp-Session-Id", session.as_str())]].concat();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let mut noted = ask(&front, &headers, &note);
        assert_eq!(noted.head().status, 202);
        assert_over(noted);
        for (id, frame) in [(1, call(1, "echo", &json!({"text": "a"}))), (2, swipe(2))] {
            let mut asked = ask(&front, &headers, &frame);
            let (status, answer) = asked.answer();
            assert_eq!((status, &answer["id"]), (200, &json!(id)), "{answer}");
            assert!(answer["result"]["content"].is_array(), "{answer}");
            assert_over(asked);
        }
        // Two in a row: the second is answered as well.
        let mut both = front.post(&headers, &swipe(3));
        both.send("POST", "/mcp", &headers, swipe(4).to_string().as_bytes());
        both.send_no_more();
        assert_eq!([both.answer().1["id"].clone(), both.answer().1["id"].clone()], [3, 4]);
        assert_over(both);
        // And a stream comes whole.
        let mut steps = swipe(5);
        steps["params"]["_meta"] = json!({"progressToken": 5});
        let mut stream = ask(&front, &headers, &steps);
        stream.stream();
        let events: Vec<_> = std::iter::from_fn(|| stream.event()).map(|event| event.frame()).collect();
        assert!(events.len() > 3 && events.last().unwrap()["id"] == 5, "{events:?}");
        assert_over(stream);
    }
    // The one that asks.
    wait_for("their places", || (front.metric("connections") == 1).then_some(()));
}

#[test]
fn who_sends_no_more_has_cancelled_a_request_that_describes_itself() {
    let home = Home::new();
    let front = Front::start(&home);
    for (number, otherwise) in [(1, &[][..]), (2, &[OTHERWISE])] {
        let (frame, headers) = modern(
            &json!(1),
            "tools/call",
            &json!({"name": "swipe", "arguments": {"steps": 1000, "pauseMs": 20, "deviceId": "A1B2-C3D4"}}),
        );
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let connection = front.post(&[&headers, otherwise].concat(), &frame);
        wait_for("the call", || (front.count("swipe") == number).then_some(()));
        connection.send_no_more();
        wait_for("the cancel", || (front.cancelled("swipe") == number).then_some(()));
        assert_over(connection);
    }
}

#[test]
fn s37_who_has_left_is_not_held_for_as_long_as_its_call_takes() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let hanging: Vec<_> = [&[named][..], &[named, OTHERWISE]]
        .into_iter()
        .zip(1..)
        .map(|(headers, id)| front.post(headers, &call(id, "hang", &json!({}))))
        .collect();
    wait_for("both calls", || (front.count("hang") == 2).then_some(()));
    drop(hanging);
    // It is noticed when its answer becomes a stream.
    wait_within("their ends", Duration::from_secs(15), || (front.metric("connections") == 1).then_some(()));
    assert_eq!(front.cancelled("hang"), 0, "nobody has cancelled");
    let (_, answer) = front.post(&[named], &call(9, "echo", &json!({"text": "a"}))).answer();
    assert_eq!(answer["result"]["content"][0]["text"], "a");
}
