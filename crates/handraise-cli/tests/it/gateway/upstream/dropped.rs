//! A call's stream that drops before its answer: where it is come back to, how often, and what its client hears. The server's
//! own count of what it was sent is the witness that a call is sent once.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::json;

use super::{JSON, modern, opens_session};
use crate::support::{
    Asked, Home, HttpGateway, Rig,
    client::{Client, Way},
    rig::{begin_events, read, respond, write},
};

/// What the server does on a connection: nothing at all, an answer with this status, or a stream that drops after this.
#[derive(Debug, Clone, Copy)]
enum Does {
    Nothing,
    Status(u16),
    Stream(&'static str),
}
use Does::{Nothing, Status, Stream};

/// A stream that says where it is, and no more.
const PRIMED: Does = Stream("retry: 10\nid: 7-0\ndata:\n\n");
const DROPPED: Does = Stream("");
const NOTED: Does =
    Stream("id: 7-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"n\":1.0}\n\n");
const ANSWERED: Does =
    Stream("id: 7-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"n\":1.0}}\n\n");

const NOTE: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"n\":1.0}";
const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"n\":1.0}}";
const BROKE_OFF: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the answer of the MCP server broke off"}}"#;
const FORGOTTEN: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the MCP server no longer knows the session; initialize again"}}"#;

/// What a call meets.
struct Row {
    name: &'static str,
    post: Does,
    /// What whoever comes back meets, the last one ever after.
    back: &'static [Does],
    /// What the client gets.
    gets: &'static [&'static str],
    /// Where it is come back to, each time.
    places: &'static [&'static str],
}

const ROWS: &[Row] = &[
    Row {
        name: "dropped twice before any event, and then the answer",
        post: PRIMED,
        back: &[DROPPED, DROPPED, ANSWERED],
        gets: &[ANSWER],
        places: &["7-0", "7-0", "7-0"],
    },
    Row {
        name: "a place without any event",
        post: Stream("retry: 10\nid: 7-0\n\n"),
        back: &[DROPPED, ANSWERED],
        gets: &[ANSWER],
        places: &["7-0", "7-0"],
    },
    Row {
        name: "an event that did not come whole is none",
        post: Stream("retry: 10\nid: 7-0\ndata:\n\nid: 7-9\ndata: {\"jsonrpc\":"),
        back: &[Stream("id: 7-9\ndata: {\"jsonrpc\""), ANSWERED],
        gets: &[ANSWER],
        places: &["7-0", "7-0"],
    },
    Row {
        name: "dropped without a place",
        post: DROPPED,
        back: &[ANSWERED],
        gets: &[BROKE_OFF],
        places: &[],
    },
    Row {
        name: "an event without a place",
        post: Stream("retry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"n\":1.0}\n\n"),
        back: &[ANSWERED],
        gets: &[NOTE, BROKE_OFF],
        places: &[],
    },
    Row {
        name: "no answer at all, not even the beginning of one",
        post: Nothing,
        back: &[ANSWERED],
        gets: &[BROKE_OFF],
        places: &[],
    },
    Row {
        name: "dropped for ever",
        post: PRIMED,
        back: &[DROPPED],
        gets: &[BROKE_OFF],
        places: &["7-0", "7-0", "7-0", "7-0", "7-0"],
    },
    Row {
        name: "something new begins the count again",
        post: PRIMED,
        back: &[DROPPED, DROPPED, DROPPED, DROPPED, NOTED, DROPPED, DROPPED, DROPPED, DROPPED, ANSWERED],
        gets: &[NOTE, ANSWER],
        places: &["7-0", "7-0", "7-0", "7-0", "7-0", "7-1", "7-1", "7-1", "7-1", "7-1"],
    },
    Row {
        name: "a server that is away for a moment",
        post: PRIMED,
        back: &[Nothing, Status(503), Status(502), ANSWERED],
        gets: &[ANSWER],
        places: &["7-0", "7-0", "7-0", "7-0"],
    },
    Row {
        name: "a server that is away for ever",
        post: PRIMED,
        back: &[Status(503)],
        gets: &[BROKE_OFF],
        places: &["7-0", "7-0", "7-0", "7-0", "7-0"],
    },
    Row {
        name: "a server that takes nobody back",
        post: PRIMED,
        back: &[Status(405)],
        gets: &[BROKE_OFF],
        places: &["7-0"],
    },
    Row {
        name: "a server that has forgotten the session",
        post: PRIMED,
        back: &[Status(404)],
        gets: &[FORGOTTEN],
        places: &["7-0"],
    },
];

fn server(post: Does, back: &'static [Does]) -> Rig {
    let came = Arc::new(AtomicUsize::new(0));
    Rig::start(move |asked, stream| {
        let does = if asked.headers.contains_key("last-event-id") {
            let at = came.fetch_add(1, Ordering::SeqCst);
            *back.get(at).or(back.last()).unwrap()
        } else if asked.body.contains("\"drops\"") {
            post
        } else {
            if !opens_session(asked, stream, "s") {
                let id = &asked.json()["id"];
                respond(stream, 200, JSON, &json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string());
            }
            return;
        };
        match does {
            Nothing => {}
            Status(status) => respond(stream, status, "", ""),
            Stream(text) => {
                begin_events(stream, "");
                write(stream, text.as_bytes());
            }
        }
    })
}

/// Every row, in a session of a client.
#[track_caller]
fn check<W: Way>(start: impl Fn(&Home, &str) -> Client<W>) {
    for Row { name, post, back, gets, places } in ROWS {
        let (home, rig) = (Home::new(), server(*post, back));
        let mut gateway = start(&home, &rig.url);
        gateway.initialize("2025-11-25", &json!({}));
        let begun = SystemClock.boot_millis();
        gateway.call(&json!(1), "drops", &json!({}));
        for expected in *gets {
            let line = String::from_utf8(gateway.line()).unwrap();
            assert_eq!(line.trim_end_matches('\n'), *expected, "{name}");
        }
        // Five waits of ten milliseconds, and longer every time, are a third of a second.
        let took = SystemClock.boot_millis() - begun;
        assert!(took < 10_000, "{name}: {took} ms");
        let seen = rig.seen();
        let is_call = |asked: &&Asked| asked.body.contains("\"drops\"");
        assert_eq!(seen.iter().filter(is_call).count(), 1, "{name}: a call is sent once");
        let came: Vec<_> = seen.iter().filter_map(|asked| asked.headers.get("last-event-id")).collect();
        assert_eq!(came, *places, "{name}");
        if gets.last() != Some(&FORGOTTEN) {
            assert_eq!(gateway.answer(&json!(2), "echo", &json!({}))["id"], 2, "{name}");
        }
    }
}

#[test]
fn a_stream_that_drops_is_come_back_to_where_it_was_and_its_call_is_sent_once() {
    check(super::in_front_of);
}

#[test]
fn a_stream_that_drops_is_come_back_to_and_its_call_is_sent_once_behind_a_gateway_that_listens() {
    check(|home, url| HttpGateway::in_front_of(home, url, &[]));
}

#[test]
fn a_call_is_sent_once_also_on_a_connection_that_was_good_for_others_and_closes_on_it() {
    let all: Arc<Mutex<Vec<Asked>>> = Arc::default();
    let list = Arc::clone(&all);
    let rig = Rig::start(move |asked, stream| {
        let mut next = Some(asked.clone());
        while let Some(asked) = next {
            list.lock().unwrap().push(asked.clone());
            if asked.body.contains("\"drops\"") {
                return;
            }
            let frame = asked.json();
            let result = json!({"protocolVersion": frame["params"]["protocolVersion"]});
            let body = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}).to_string();
            let (status, body) = match (asked.method.as_str(), frame.get("id")) {
                ("POST", Some(_)) => (200, body.as_str()),
                ("POST", None) => (202, ""),
                _ => (405, ""),
            };
            let head =
                format!("HTTP/1.1 {status} X\r\n{JSON}Mcp-Session-Id: s\r\nContent-Length: {}", body.len());
            write(stream, format!("{head}\r\n\r\n{body}").as_bytes());
            next = read(stream);
        }
    });
    let home = Home::new();
    let mut gateway = super::in_front_of(&home, &rig.url);
    gateway.initialize("2025-11-25", &json!({}));
    for id in 1..4 {
        gateway.call(&json!(id), "drops", &json!({}));
        let line = String::from_utf8(gateway.line()).unwrap();
        assert_eq!(line.trim_end_matches('\n'), BROKE_OFF.replace("\"id\":1", &format!("\"id\":{id}")));
        gateway.answer(&json!("on"), "echo", &json!({}));
    }
    let is_call = |asked: &&Asked| asked.body.contains("\"drops\"");
    assert_eq!(all.lock().unwrap().iter().filter(is_call).count(), 3);
    assert_eq!(rig.seen().iter().filter(is_call).count(), 0, "each came where others had been");
}

/// What describes itself belongs to nothing that could be come back to.
#[test]
fn the_stream_of_a_modern_request_is_not_come_back_to() {
    fn check<W: Way>(start: impl Fn(&Home, &str) -> Client<W>) {
        let (home, rig) = (Home::new(), server(PRIMED, &[ANSWERED]));
        let mut gateway = start(&home, &rig.url);
        gateway.send(&modern(1, "tools/call", &json!({"name": "drops", "arguments": {}})));
        let line = String::from_utf8(gateway.line()).unwrap();
        assert_eq!(line.trim_end_matches('\n'), BROKE_OFF);
        assert_eq!(rig.seen().len(), 1);
    }
    check(super::in_front_of);
    check(|home, url| HttpGateway::in_front_of(home, url, &[]));
}
