//! S37: requests that come in drops, or stop in the middle, whoever reads them.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    thread::{self, JoinHandle},
    time::Duration,
};

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::support::{Connection, Front, Home, modern, wait_for};

/// Makes a request one that hyper reads, and means nothing else.
const OTHERWISE: (&str, &str) = ("Connection", "keep-alive, x-nothing");
/// Between two drops.
const DROP: Duration = Duration::from_millis(300);
/// How long a head may take, and how long a body, in milliseconds; and how much longer on a machine that is busy.
const HEAD: u64 = 10_000;
const BODY: u64 = 30_000;
const BUSY: u64 = 12_000;

fn echo(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "a"}}})
}

/// What came back, and after how many milliseconds nothing more did.
struct End {
    text: String,
    took: u64,
}

/// Sends this, and then drop after drop without end; none: nothing more.
fn trickle(front: &Front, begun: &[u8], drops: &'static [u8]) -> JoinHandle<End> {
    let mut stream = TcpStream::connect(&front.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    stream.write_all(begun).unwrap();
    let mut reading = stream.try_clone().unwrap();
    thread::spawn(move || {
        while let Some((first, rest)) = drops.split_first()
            && stream.write_all(&[*first]).is_ok()
        {
            thread::sleep(DROP);
            if rest.iter().any(|drop| stream.write_all(&[*drop]).is_err()) {
                break;
            }
        }
    });
    let begun = SystemClock.boot_millis();
    thread::spawn(move || {
        let mut read = Vec::new();
        // Whoever goes on sending may hear of a reset behind the answer.
        let _ = reading.read_to_end(&mut read);
        let took = SystemClock.boot_millis() - begun;
        End { text: String::from_utf8(read).unwrap(), took }
    })
}

#[test]
fn s37_heads_and_bodies_that_trickle_or_stall_end_in_time_and_nobody_else_notices() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let head = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
    // A request before the head shows who it is, and gives no more time.
    let known = Connection::request("POST", "/mcp", &[named], echo(1_000_000).to_string().as_bytes());
    let heads = [
        (&head[..], &b"x"[..]),
        (head, b""),
        (b"P", b""),
        (b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"x"),
        (&[&known, &head[..]].concat(), b"x"),
    ];
    let heads = heads.map(|(begun, drops)| trickle(&front, begun, drops));
    let (_, mirrors) = modern(&json!(1), "tools/list", &json!({}));
    let mirrors: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let length = ("Content-Length", "5000");
    let chunked = [named, ("Transfer-Encoding", "chunked")];
    let bodies = [
        (&[named, length][..], &b" "[..]),
        (&[named, length], b""),
        (&[&mirrors[..], &[length]].concat(), b" "),
        (&[named, length, OTHERWISE], b" "),
        (&[named, length, OTHERWISE], b""),
        (&chunked, b"1\r\n \r\n"),
        (&chunked, b""),
    ];
    let bodies = bodies.map(|(headers, drops)| {
        let mut begun = Connection::request("POST", "/mcp", headers, b"");
        if headers == chunked {
            let text = String::from_utf8(begun).unwrap();
            begun = text.replace("Content-Length: 0\r\n", "").into_bytes();
            begun.extend_from_slice(b"1\r\n{\r\n");
        } else {
            begun.push(b'{');
        }
        trickle(&front, &begun, drops)
    });
    // Meanwhile.
    let (mut calls, mut longest) = (0, 0);
    while !bodies.iter().chain(&heads).all(JoinHandle::is_finished) {
        calls += 1;
        let begun = SystemClock.boot_millis();
        let (status, answer) = front.post(&[named], &echo(calls)).answer();
        assert_eq!((status, &answer["id"]), (200, &json!(calls)), "{answer}");
        longest = longest.max(SystemClock.boot_millis() - begun);
        thread::sleep(Duration::from_millis(10));
    }
    assert!(calls > 100 && longest < 5000, "{calls} calls, the longest of {longest} ms");
    for (number, head) in heads.into_iter().enumerate() {
        let End { text, took } = head.join().unwrap();
        // There is no request yet that could be answered.
        assert_eq!(text.matches("HTTP/1.1 ").count(), usize::from(number == 4), "{number}: {text}");
        assert!((HEAD / 2..HEAD + BUSY).contains(&took), "head {number} took {took} ms");
    }
    for (number, body) in bodies.into_iter().enumerate() {
        let End { text, took } = body.join().unwrap();
        assert!(text.starts_with("HTTP/1.1 408 "), "{number}: {text}");
        assert!(text.contains("the body did not come in time"), "{number}: {text}");
        assert!((BODY / 2..BODY + BUSY).contains(&took), "body {number} took {took} ms");
    }
    assert_eq!(front.metric("refused_total{reason=\"slow_body\"}"), 7);
    assert_eq!(front.metric("closed_total{reason=\"idle_connection\"}"), 5);
    wait_for("room", || (front.metric("bytes_in_flight") == 0).then_some(()));
    wait_for("their places", || (front.metric("connections") == 1).then_some(()));
}

#[test]
fn requests_that_come_byte_by_byte_are_served_whoever_reads_them() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    for (id, headers) in [(1, &[named][..]), (2, &[named, OTHERWISE])] {
        let body = echo(id).to_string();
        let whole = Connection::request("POST", "/mcp", headers, body.as_bytes());
        let begin = whole.len() - body.len();
        let chunked = body.chars().map(|byte| ["1\r\n", &byte.to_string(), "\r\n"].concat());
        let chunked = chunked.collect::<Vec<_>>().concat();
        let chunked = Connection::request(
            "POST",
            "/mcp",
            &[headers, &[("Transfer-Encoding", "chunked")]].concat(),
            (chunked + "0\r\n\r\n").as_bytes(),
        );
        let chunked = String::from_utf8(chunked).unwrap();
        let (before, behind) = chunked.split_once("Content-Length: ").unwrap();
        let chunked = [before, behind.split_once("\r\n").unwrap().1].concat().into_bytes();
        // From the first byte, from the body on, in chunks of a byte.
        for (what, request, at_once) in
            [("all", &whole, 0), ("its body", &whole, begin), ("chunks", &chunked, 0)]
        {
            let mut connection = front.connect();
            assert!(connection.write(&request[..at_once]));
            for byte in &request[at_once..] {
                assert!(connection.write(&[*byte]));
                thread::yield_now();
            }
            let (status, answer) = connection.answer();
            assert_eq!(
                (status, &answer["result"]["content"][0]["text"]),
                (200, &json!("a")),
                "{what}: {answer}"
            );
        }
    }
}
