//! Requests that are read the short way and requests that hyper reads: nobody can tell which from what comes back.

use serde_json::{Value, json};

use crate::support::{Connection, Front, Head, Home, modern};

/// Makes a request one that hyper reads, and means nothing else.
const OTHERWISE: (&str, &str) = ("Connection", "keep-alive, x-nothing");

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// What a client sees of an answer, but for the time and for what is drawn at random.
fn seen(head: &Head, body: String) -> (u16, Vec<String>, String) {
    let names = ["content-type", "content-length", "retry-after", "www-authenticate", "connection", "allow"];
    assert!(head.header("date").ends_with(" GMT"), "{}", head.header("date"));
    (head.status, names.map(|name| head.header(name).to_owned()).to_vec(), body)
}

/// What it is, its headers, its body, the status of its answer.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, u16);

#[test]
fn s10_a_request_is_answered_alike_whoever_reads_it() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let echo = call(1, "echo", &json!({"text": "x".repeat(30_000)})).to_string();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let (frame, mirrors) =
        modern(&json!("a"), "tools/call", &json!({"name": "echo", "arguments": {"text": "m"}}));
    let mirrors: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let frame = frame.to_string();
    let requests: [Row; 14] = [
        ("a call", &[named], &echo, 200),
        ("a large answer", &[named], &call(2, "big", &json!({"bytes": 300_000})).to_string(), 200),
        ("a notification", &[named], &note, 202),
        ("a request that describes itself", &mirrors, &frame, 200),
        ("headers that say something else", &mirrors[..2], &frame, 400),
        ("no frame", &[named], "{\"id\":", 400),
        ("a key twice", &[named], "{\"id\":1,\"id\":2,\"method\":\"ping\"}", 400),
        ("nothing", &[named], "", 400),
        ("no session", &[], &echo, 400),
        ("an unknown session", &[("Mcp-Session-Id", "0")], &echo, 404),
        ("two sessions", &[named, named], &echo, 404),
        ("another media type", &[named, ("Content-Type", "text/plain")], &echo, 415),
        ("another name", &[named, ("Host", "evil.example")], &echo, 403),
        ("another page", &[named, ("Origin", "https://evil.example")], &echo, 403),
    ];
    for (what, headers, body, status) in requests {
        let answer = |headers: &[(&str, &str)]| {
            let mut connection = front.request("POST", headers, body.as_bytes());
            let head = connection.head();
            let body = connection.body(&head);
            seen(&head, body)
        };
        let short = answer(headers);
        assert_eq!(short.0, status, "{what}: {short:?}");
        assert_eq!(short, answer(&[headers, &[OTHERWISE]].concat()), "{what}");
    }
}

#[test]
fn s10_a_stream_is_opened_alike_whoever_reads_the_request() {
    let home = Home::new();
    let front = Front::start(&home);
    let named = |session: &str| ("Mcp-Session-Id", session.to_owned());
    for (what, session, beside, status) in [
        ("no session", None, &[][..], 405),
        ("an unknown session", Some("0"), &[], 404),
        ("another name", Some(""), &[("Host", "evil.example")], 403),
        ("another page", Some(""), &[("Origin", "https://evil.example")], 403),
        ("its stream", Some(""), &[], 200),
        ("what is behind an event", Some(""), &[("Last-Event-ID", "0-1")], 200),
    ] {
        let answer = |otherwise: &[(&str, &str)]| {
            let own = front.initialize("2025-11-25", &json!({}), &[]);
            let session = session.map(|session| named(if session.is_empty() { &own } else { session }));
            let session: Vec<_> = session.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let bare = [("Content-Type", "text/plain"), ("Accept", "text/event-stream")];
            let headers = [&session[..], beside, otherwise, &bare].concat();
            let request = String::from_utf8(Connection::request("GET", "/mcp", &headers, b"")).unwrap();
            let mut connection = front.connect();
            assert!(connection.write(request.replace("Content-Length: 0\r\n", "").as_bytes()));
            let head = connection.head();
            let names = ["cache-control", "x-accel-buffering", "transfer-encoding"];
            let more = names.map(|name| head.header(name).to_owned());
            if head.status != 200 {
                let body = connection.body(&head);
                return (seen(&head, body), more, Value::Null);
            }
            // What the server says by itself comes on it, and the connection ends with its session.
            let tell = call(1, "notify", &json!({})).to_string();
            front.request("POST", &[("Mcp-Session-Id", &own)], tell.as_bytes()).answer_in_time();
            let told = std::iter::from_fn(|| connection.event()).find(|event| !event.data.is_empty());
            assert_eq!(front.request("DELETE", &[("Mcp-Session-Id", &own)], b"").head().status, 204);
            while connection.event().is_some() {}
            (seen(&head, String::new()), more, told.unwrap().frame())
        };
        let short = answer(&[]);
        assert_eq!(short.0.0, status, "{what}: {short:?}");
        assert_eq!(short, answer(&[OTHERWISE]), "{what}");
    }
}

#[test]
fn a_stream_is_the_same_whoever_writes_it_and_its_connection_serves_on() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let steps = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "swipe",
            "arguments": {"steps": 3, "pauseMs": 1, "deviceId": "A1B2-C3D4"}, "_meta": {"progressToken": id}}})
    };
    let mut read = Vec::new();
    for headers in [&[named][..], &[named, OTHERWISE]] {
        let mut connection = front.connect();
        connection.send("POST", "/mcp", headers, steps(7).to_string().as_bytes());
        let head = connection.stream();
        let control = ["cache-control", "x-accel-buffering"].map(|name| head.header(name).to_owned());
        let events: Vec<_> = std::iter::from_fn(|| connection.event()).map(|event| event.frame()).collect();
        assert!(events.len() > 3, "{events:?}");
        read.push((control, events));
        connection.send(
            "POST",
            "/mcp",
            headers,
            call(8, "echo", &json!({"text": "on"})).to_string().as_bytes(),
        );
        assert_eq!(connection.answer().1["result"]["content"][0]["text"], "on");
    }
    assert_eq!(read[0], read[1]);
}

#[test]
fn s3_where_the_pieces_of_requests_end_changes_nothing() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let request = |id: u64, text: &str| {
        let body = call(id, "echo", &json!({"text": text})).to_string();
        let length = body.len();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let texts = ["a".repeat(10), "b".repeat(50_000), "c".repeat(20)];
    let all: String = (1..).zip(&texts).map(|(id, text)| request(id, text)).collect();
    let expect = |mut connection: Connection, what: &str| {
        for text in &texts {
            assert_eq!(connection.answer().1["result"]["content"][0]["text"], *text, "{what}");
        }
        // Whoever reads it now, other requests are served too.
        connection.send("GET", "/metrics", &[], b"");
        assert_eq!(connection.head().status, 200, "{what}");
    };
    let first = request(1, &texts[0]).len();
    let body = first + request(2, &texts[1]).find("\r\n\r\n").unwrap() + 4;
    for (what, cuts) in [
        ("all at once", vec![]),
        ("one by one", vec![first]),
        ("in the middle of a head", vec![20]),
        ("in the middle of the next head", vec![first + 20]),
        ("behind the head", vec![body]),
        ("in the middle of a body", vec![body + 1, body + 30_000, body + 30_001]),
    ] {
        let mut connection = front.connect();
        let mut from = 0;
        for cut in cuts.into_iter().chain([all.len()]) {
            assert!(connection.write(&all.as_bytes()[from..cut]));
            // What came has been read, or the rest comes along: both are right.
            std::thread::yield_now();
            from = cut;
        }
        expect(connection, what);
    }
}

/// What it is, its headers, its body, its status, and whether it runs.
type Framed<'a> = (&'a str, String, &'a str, u16, bool);

#[test]
fn s3_where_two_readers_would_end_a_request_differently_nothing_behind_it_runs() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let request = |more: &str, body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n\
             {more}\r\n\r\n{body}"
        )
    };
    let whole = call(1, "first", &json!({})).to_string();
    let behind = call(2, "behind", &json!({})).to_string();
    let behind = request(&format!("Content-Length: {}", behind.len()), &behind);
    let length = whole.len();
    let chunked = format!("{length:x}\r\n{whole}\r\n0\r\n\r\n");
    let signed = format!("+{chunked}");
    let chunks = "Transfer-Encoding: chunked".to_owned();
    let rows: [Framed<'_>; 13] = [
        ("a length and chunks", format!("Content-Length: 5\r\n{chunks}"), &chunked, 200, true),
        (
            "chunks and a length",
            format!("{chunks}\r\nContent-Length: {}", chunked.len()),
            &chunked,
            200,
            true,
        ),
        ("two lengths", format!("Content-Length: {length}\r\nContent-Length: 0"), &whole, 400, false),
        ("a list of lengths", format!("Content-Length: {length}, {length}"), &whole, 400, false),
        ("a signed length", format!("Content-Length: +{length}"), &whole, 400, false),
        ("a length in another base", format!("Content-Length: 0x{length:x}"), &whole, 400, false),
        ("an unknown coding", "Transfer-Encoding: xchunked".to_owned(), &chunked, 400, false),
        ("chunks that are not last", format!("{chunks}, identity"), &chunked, 400, false),
        (
            "a name with a space",
            format!("Transfer-Encoding : chunked\r\nContent-Length: {length}"),
            &whole,
            400,
            false,
        ),
        ("a folded line", format!("X-A: a\r\n {chunks}\r\nContent-Length: {length}"), &whole, 400, false),
        ("a line within a line", format!("X-A: a\r{chunks}\r\nContent-Length: {length}"), &whole, 400, false),
        ("a NUL in a header", format!("X-A: \0\r\nContent-Length: {length}"), &whole, 400, false),
        ("a signed chunk", chunks.clone(), &signed, 400, false),
    ];
    let mut ran = 0;
    for (what, more, body, status, runs) in rows {
        let mut connection = front.connect();
        connection.write((request(&more, body) + &behind).as_bytes());
        let head = connection.head();
        assert_eq!(head.status, status, "{what}");
        connection.body(&head);
        assert!(connection.try_head().is_none(), "{what}: the connection ends");
        ran += usize::from(runs);
        assert_eq!((front.count("first"), front.count("behind")), (ran, 0), "{what}");
    }
    // Where there is no doubt, both run.
    let mut connection = front.connect();
    connection.write((request(&format!("Content-Length: {length}"), &whole) + &behind).as_bytes());
    assert_eq!((connection.answer().0, connection.answer().0), (200, 200));
    assert_eq!((front.count("first"), front.count("behind")), (ran + 1, 1));
}
