//! What a client sends after `notifications/initialized` waits for the server's own stream, and not for long.

use std::time::Duration;

use handraise_http::upstream::{Arrivals, Link};
use handraise_transport::clock::{Clock as _, SystemClock};

use crate::rig::{Asked, Rig, frame};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
pub(crate) const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#;

/// Opens a session and sends a call right behind it; the request for the server's stream, which nobody has answered yet.
pub(crate) fn open(rig: &Rig) -> (Link, Arrivals, Asked) {
    let (link, arrivals) = rig.link();
    for text in [INITIALIZE, INITIALIZED, CALL] {
        link.send(frame(text));
    }
    let opening = rig.next();
    assert_eq!(opening.body, INITIALIZE);
    let json = "Content-Type: application/json\r\nMcp-Session-Id: s\r\n";
    opening.answer("200 OK", json, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
    let opened = rig.next();
    assert_eq!(opened.body, INITIALIZED);
    opened.answer("202 Accepted", "", "");
    let stream = rig.next();
    assert_eq!(stream.method, "GET");
    (link, arrivals, stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_sent_once_the_server_has_answered_for_its_stream() {
    for head in [
        "200 OK\r\nContent-Type: text/event-stream",
        "405 Method Not Allowed\r\nConnection: close\r\nContent-Length: 0",
    ] {
        loop {
            let begun = SystemClock.boot_millis();
            let rig = Rig::start();
            let (_link, _arrivals, mut stream) = open(&rig);
            let early = rig.next_within(Duration::from_millis(100));
            // It waits for half a second. A machine that was away for as long says nothing about that.
            if SystemClock.boot_millis() - begun < 450 {
                assert!(early.is_none(), "it came before the stream: {head}");
                stream.begin(head);
                assert_eq!(rig.next().body, CALL);
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_does_not_wait_for_a_stream_about_which_the_server_says_nothing() {
    let rig = Rig::start();
    let (_link, _arrivals, _stream) = open(&rig);
    assert_eq!(rig.next().body, CALL);
}
