//! S37: too much of anything gets an error and a counter, and everybody else goes on.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Front, FrontSetup, Home, modern, wait_for, wait_within};

fn echo(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "a"}}})
}

#[track_caller]
fn assert_served(front: &Front, session: &str) {
    let (status, answer) = front.post(&[("Mcp-Session-Id", session)], &echo(1)).answer();
    assert_eq!((status, &answer["result"]["content"][0]["text"]), (200, &json!("a")), "{answer}");
}

fn memory(front: &Front) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", front.child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    peak.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn s37_sessions_and_servers_are_counted_and_one_more_is_told_to_come_back() {
    for (variable, metric) in
        [("HANDRAISE_MCP__SESSIONS", "sessions"), ("HANDRAISE_MCP__CHILDREN", "children")]
    {
        let home = Home::new();
        let front =
            Front::start_with(&home, &FrontSetup { variables: &[(variable, "3")], ..FrontSetup::default() });
        let sessions: Vec<_> = (0..3).map(|_| front.initialize("2025-11-25", &json!({}), &[])).collect();
        for _ in 0..50 {
            let mut refused = front.post(&[], &crate::support::initialize("2025-11-25", &json!({})));
            let head = refused.head();
            assert_eq!((head.status, head.header("retry-after")), (503, "5"));
        }
        assert_eq!(front.metric(&format!("refused_total{{reason=\"{metric}\"}}")), 50);
        for session in &sessions {
            assert_served(&front, session);
        }
        front.request("DELETE", &[("Mcp-Session-Id", &sessions[0])], b"").head();
        wait_for("its end", || (front.metric("children") == 2).then_some(()));
        front.initialize("2025-11-25", &json!({}), &[]);
    }
}

#[test]
fn s37_a_session_that_nobody_uses_ends() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__SESSION_IDLE", "1s")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let (idle, used) =
        (front.initialize("2025-11-25", &json!({}), &[]), front.initialize("2025-11-25", &json!({}), &[]));
    let mut stream = front.request("GET", &[("Mcp-Session-Id", &used)], b"");
    stream.stream();
    wait_for("the end of one", || (front.metric("children") == 1).then_some(()));
    assert_eq!(front.post(&[("Mcp-Session-Id", &idle)], &echo(1)).head().status, 404);
    assert_served(&front, &used);
    assert_eq!(front.metric("closed_total{reason=\"idle_session\"}"), 1);
}

#[test]
fn s37_bodies_that_are_too_long_are_not_taken_however_they_are_sent() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__MAX_FRAME_BYTES", "65536")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let announced = front.request("POST", &[named, ("Content-Length", "65537")], b"").head();
    assert_eq!(announced.status, 413);
    let mut chunked = front.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    assert!(chunked.write(head.as_bytes()));
    for _ in 0..100 {
        if !chunked.write(format!("2000\r\n{}\r\n", "x".repeat(0x2000)).as_bytes()) {
            break;
        }
    }
    // Whoever goes on sending may find the connection closed instead of the answer.
    if let Some(head) = chunked.try_head() {
        assert_eq!(head.status, 413);
    }
    wait_for("both", || (front.metric("refused_total{reason=\"large_body\"}") == 2).then_some(()));
    // An answer that is too long is an error of the call.
    let big = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call",
        "params": {"name": "big", "arguments": {"bytes": 100_000_000}}});
    let (_, error) = front.post(&[named], &big).answer();
    assert_eq!(error["id"], 9);
    assert!(error["error"]["message"].as_str().unwrap().contains("65536"), "{error}");
    assert_served(&front, &session);
    assert!(memory(&front) < 60_000, "{} kB", memory(&front));
    assert_eq!(front.metric("bytes_in_flight"), 0);
}

#[test]
fn s37_bytes_in_flight_are_counted_and_what_does_not_fit_is_told_to_come_back() {
    let home = Home::new();
    let variables =
        [("HANDRAISE_MCP__IN_FLIGHT_BYTES", "4194304"), ("HANDRAISE_MCP__MAX_FRAME_BYTES", "2097152")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    // Three that announce a lot and send little: two of one holder fit at the most.
    let held: Vec<_> =
        (0..3).map(|_| front.request("POST", &[("Content-Length", "1500000")], b"{")).collect();
    wait_for("the first", || (front.metric("bytes_in_flight") == 1_500_000).then_some(()));
    wait_for("the others", || (front.metric("refused_total{reason=\"bytes_in_flight\"}") == 2).then_some(()));
    assert_served(&front, &session);
    drop(held);
    wait_for("room", || (front.metric("bytes_in_flight") == 0).then_some(()));
}

#[test]
fn s37_a_few_bytes_behind_a_large_request_hold_nothing_of_it() {
    let home = Home::new();
    let front = Front::start(&home);
    let large = "x".repeat(16_000_000);
    let connections: Vec<_> = (0..8)
        .map(|_| {
            let mut connection = front.connect();
            connection.send("POST", "/mcp", &[], large.as_bytes());
            assert!(connection.write(b"POST"));
            assert_eq!(connection.head().status, 400);
            connection
        })
        .collect();
    assert!(memory(&front) < 100_000, "{} kB", memory(&front));
    drop(connections);
}

#[test]
fn s37_half_open_connections_give_way_and_end_and_nobody_else_notices() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__CONNECTIONS", "64")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let mut stream = front.request("GET", &[("Mcp-Session-Id", &session)], b"");
    stream.stream();
    let mut silent: Vec<_> = (0..300).map(|_| front.connect()).collect();
    for (index, connection) in silent.iter_mut().enumerate() {
        if index % 2 == 0 {
            connection.write(b"POST /mcp HTTP/1.1\r\nHost: loc");
        }
    }
    assert_served(&front, &session);
    assert!(front.metric("closed_total{reason=\"stranger\"}") >= 200);
    assert!(front.metric("connections") <= 20, "{}", front.metric("connections"));
    // Those that are left are closed after a while.
    wait_within("their end", Duration::from_secs(30), || (front.metric("connections") <= 2).then_some(()));
    assert_served(&front, &session);
}

#[test]
fn s37_ten_thousand_half_open_connections_keep_nobody_out_and_take_little() {
    const HALF_OPEN: usize = 10_000;
    // As many at once as this machine lets one process have; the others in turn.
    let crowd = (raise_files() - 200).min(HALF_OPEN);
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let mut stream = front.request("GET", &[("Mcp-Session-Id", &session)], b"");
    stream.stream();
    assert_eq!(stream.event().unwrap().data, "", "a place to come back to");
    let before = memory(&front);
    let mut open = std::collections::VecDeque::new();
    for number in 0..HALF_OPEN {
        if open.len() >= crowd {
            open.pop_front();
        }
        let mut connection = front.connect();
        if number % 2 == 0 {
            connection.write(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100");
        }
        open.push_back(connection);
        if number % 1000 == 999 {
            assert_served(&front, &session);
        }
    }
    // A quarter of the places is for those who have not said anything yet, and who was there before stays.
    let quarter = 4096 / 4;
    let closed =
        ["stranger", "idle_connection"].map(|why| front.metric(&format!("closed_total{{reason=\"{why}\"}}")));
    assert!(closed[0] + closed[1] + quarter >= crowd as u64, "{closed:?}");
    assert!(front.metric("connections") <= quarter + 20, "{}", front.metric("connections"));
    assert!(memory(&front) < before + 100_000, "{} kB, and {before} kB before", memory(&front));
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "notify", "arguments": {}}});
    front.post(&[("Mcp-Session-Id", &session)], &call).answer_in_time();
    assert_eq!(stream.event().unwrap().frame()["method"], "notifications/tools/list_changed");
    // Those that are left are closed after a while.
    wait_within("their end", Duration::from_secs(40), || (front.metric("connections") <= 3).then_some(()));
}

/// Lets this process, and those that it starts, have as many files open as it may; how many that is.
fn raise_files() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap())
}

#[test]
fn s37_a_server_that_reads_nothing_and_a_client_that_reads_nothing_hold_up_nobody_else() {
    let home = Home::new();
    let front = Front::start(&home);
    let (slow, other) =
        (front.initialize("2025-11-25", &json!({}), &[]), front.initialize("2025-11-25", &json!({}), &[]));
    let big = |id: u64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "big", "arguments": {"bytes": 16_000_000}}})
    };
    // Forty answers of 16 MB that nobody reads.
    let held: Vec<_> = (0..40).map(|id| front.post(&[("Mcp-Session-Id", &slow)], &big(id))).collect();
    for _ in 0..20 {
        assert_served(&front, &other);
    }
    // Its own server waits once a quarter of what may be in flight is held for it.
    assert!(memory(&front) < 300_000, "{} kB", memory(&front));
    drop(held);
    wait_for("room", || (front.metric("bytes_in_flight") == 0).then_some(()));
    assert_served(&front, &other);
}

#[test]
fn s37_a_client_that_takes_nothing_of_what_it_is_sent_is_let_go_and_nobody_else_notices() {
    const BYTES: u64 = 16_000_000;
    let home = Home::new();
    let text = "x".repeat(usize::try_from(BYTES).unwrap());
    let said = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"text":"{text}"}}}}"#);
    let opening = r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}"#;
    let file = home.path().join("said");
    // A line for each that comes: for what opens the session, for what follows it, and for the third.
    std::fs::write(&file, format!("{opening}\n\n{said}\n")).unwrap();
    let raw = ["--raw", file.to_str().unwrap(), "--each"];
    // A stream with one large event, and two large answers.
    let streaming = Front::start_with(&home, &FrontSetup { server: &raw, ..FrontSetup::default() });
    let session = streaming.initialize("2025-11-25", &json!({}), &[]);
    let mut stream = streaming.request("GET", &[("Mcp-Session-Id", &session)], b"");
    stream.stream();
    let hint = json!({"jsonrpc": "2.0", "method": "notifications/go"});
    assert_eq!(streaming.post(&[("Mcp-Session-Id", &session)], &hint).head().status, 202);
    let answering = Front::start(&home);
    let (slow, other) = (
        answering.initialize("2025-11-25", &json!({}), &[]),
        answering.initialize("2025-11-25", &json!({}), &[]),
    );
    let params = json!({"name": "big", "arguments": {"bytes": BYTES}});
    let big = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let mut legacy = answering.post(&[("Mcp-Session-Id", &slow)], &big);
    let (frame, headers) = modern(&json!(7), "tools/call", &params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut modern = answering.post(&headers, &frame);
    wait_for("the answers", || (answering.metric("bytes_in_flight") > 2 * BYTES).then_some(()));
    wait_for("the event", || (streaming.metric("bytes_in_flight") > BYTES).then_some(()));
    assert_served(&answering, &other);
    for (front, clients) in [(&answering, 2), (&streaming, 1)] {
        wait_within("the end of patience", Duration::from_secs(45), || {
            (front.metric("closed_total{reason=\"slow_client\"}") == clients).then_some(())
        });
        assert_eq!(front.metric("bytes_in_flight"), 0);
    }
    // Nothing more comes than was on its way.
    for cut in [&mut legacy, &mut modern] {
        assert_eq!(cut.head().status, 200);
        assert!(cut.rest() < BYTES);
    }
    assert!(stream.rest() < BYTES);
    assert_served(&answering, &other);
    assert_served(&answering, &slow);
}

#[test]
fn s37_only_so_many_events_are_kept_for_a_client_that_comes_back() {
    let home = Home::new();
    let variables = [("HANDRAISE_MCP__REPLAY_EVENTS", "10")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let swipe = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "swipe",
        "arguments": {"steps": 50, "pauseMs": 1, "deviceId": "A1B2-C3D4"}, "_meta": {"progressToken": 1}}});
    let mut stream = front.post(&[("Mcp-Session-Id", &session)], &swipe);
    stream.stream();
    let first = stream.event().unwrap();
    while stream.event().is_some() {}
    // They are counted when they go, and not when somebody misses them.
    assert_eq!(front.metric("replay_dropped_total"), 41);
    let mut again = front.request("GET", &[("Mcp-Session-Id", &session), ("Last-Event-ID", &first.id)], b"");
    again.stream();
    let mut events = 0;
    while again.event().is_some() {
        events += 1;
    }
    assert_eq!((events, front.metric("replay_dropped_total")), (10, 41));
}

#[test]
fn s37_a_body_that_does_not_come_is_not_waited_for_for_ever() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let mut slow: Vec<_> = ["", "{"]
        .into_iter()
        .map(|begun| front.request("POST", &[named, ("Content-Length", "100")], begun.as_bytes()))
        .collect();
    assert_served(&front, &session);
    wait_within("the end of patience", Duration::from_secs(45), || {
        (front.metric("refused_total{reason=\"slow_body\"}") == 2).then_some(())
    });
    for connection in &mut slow {
        assert_eq!(connection.head().status, 408);
    }
    assert_eq!(front.metric("bytes_in_flight"), 0);
}
