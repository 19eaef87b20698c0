//! Who is let in, and as whom.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, modern, stderr, wait_for};

const ADA: (&str, &str) = ("Authorization", "Bearer token of ada");
const BOB: (&str, &str) = ("Authorization", "Bearer token of bob");

/// The SHA-256 of a token, by the program that the documentation names.
fn sha256(token: &str) -> String {
    let script = format!("printf %s '{token}' | sha256sum");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// The callers of the config file, with their tokens.
pub(super) fn callers(of: &[(&str, &str)]) -> String {
    let mut config = String::new();
    for (name, token) in of {
        write!(config, "[[caller]]\nname = '{name}'\ntoken_hash = 'sha256:{}'\n", sha256(token)).unwrap();
    }
    config
}

fn with_callers(home: &Home) -> Front {
    home.write_config(&callers(&[("ada", "token of ada"), ("bob", "token of bob")]));
    Front::start_with(
        home,
        &FrontSetup { variables: &[("HANDRAISE_ASK_MIN_HUMAN_MS", "0")], ..FrontSetup::default() },
    )
}

fn tap(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "tapOn", "arguments": {"text": "OK"}}})
}

fn modern_tap(front: &Front, caller: (&str, &str), more: &Value, session: Option<&str>) -> Value {
    let mut params = json!({"name": "tapOn", "arguments": {"text": "OK"}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (frame, headers) = modern(&json!(1), "tools/call", &params);
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(caller);
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    front.post(&headers, &frame).answer().1
}

#[test]
fn s10_without_a_good_token_nothing_is_served() {
    let home = Home::new();
    let front = with_callers(&home);
    let opening = crate::support::initialize("2025-11-25", &json!({}));
    for headers in [
        &[][..],
        &[("Authorization", "Bearer token of eve")],
        &[("Authorization", "Basic dG9rZW4=")],
        &[ADA, BOB],
    ] {
        let mut refused = front.post(headers, &opening);
        let head = refused.head();
        assert_eq!((head.status, head.header("www-authenticate")), (401, "Bearer"), "{headers:?}");
    }
    assert_eq!((front.metric("refused_total{reason=\"unauthorized\"}"), front.metric("children")), (4, 0));
    front.initialize("2025-11-25", &json!({}), &[ADA]);
    assert!(!front.log.text().contains("token of"), "{}", front.log.text());
}

#[test]
fn s10_a_session_is_its_principals_only() {
    let home = Home::new();
    let front = with_callers(&home);
    let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &[ADA]);
    let named = ("Mcp-Session-Id", session.as_str());
    let mut stream = front.post(&[ADA, named], &tap(1));
    stream.stream();
    let asked = stream.event().unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked.frame()["id"],
        "result": {"action": "accept", "content": {"deviceId": "A1B2-C3D4"}}});
    assert_eq!(front.post(&[BOB, named], &answer).head().status, 404);
    assert_eq!(front.post(&[BOB, named], &tap(2)).head().status, 404);
    assert_eq!(front.request("GET", &[BOB, named, ("Last-Event-ID", &asked.id)], b"").head().status, 404);
    assert_eq!(front.request("DELETE", &[BOB, named], b"").head().status, 404);
    assert_eq!(front.count("tapOn"), 1);
    assert_eq!(front.post(&[ADA, named], &answer).head().status, 202);
    assert_eq!(stream.event().unwrap().frame()["id"], 1);
    assert_eq!(front.count("tapOn"), 2);
}

#[test]
fn s6_principals_never_share_a_server_and_s10_a_state_is_its_principals_and_sessions_only() {
    let home = Home::new();
    let front = with_callers(&home);
    let asked = modern_tap(&front, ADA, &json!({}), None);
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let retry = json!({"requestState": state, "inputResponses":
        {"deviceChoice": {"action": "accept", "content": {"deviceId": "A1B2-C3D4"}}}});
    for (caller, session) in [(BOB, None), (ADA, Some("another")), (BOB, Some("another"))] {
        let error = modern_tap(&front, caller, &retry, session);
        assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
    }
    assert_eq!((front.count("tapOn"), front.metric("children")), (1, 2));
    // A state that was tampered with is none, whoever brings it.
    let mut tampered = retry.clone();
    let flipped = if state.ends_with('A') { "B" } else { "A" };
    tampered["requestState"] = json!(format!("{}{flipped}", &state[..state.len() - 1]));
    let error = modern_tap(&front, ADA, &tampered, None);
    assert_eq!(error["error"]["code"], -32602, "{error}");
    let answer = modern_tap(&front, ADA, &retry, None);
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4");
    assert_eq!(front.count("tapOn"), 2);
    // With a session header it is bound to that.
    let asked = modern_tap(&front, ADA, &json!({}), Some("mine"));
    let retry = json!({"requestState": asked["result"]["requestState"], "inputResponses":
        {"deviceChoice": {"action": "accept", "content": {"deviceId": "A1B2-C3D4"}}}});
    let error = modern_tap(&front, ADA, &retry, None);
    assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
    assert!(modern_tap(&front, ADA, &retry, Some("mine"))["result"].is_object());
}

#[test]
fn s37_one_caller_cannot_take_the_places_of_another() {
    for variable in ["HANDRAISE_MCP__SESSIONS", "HANDRAISE_MCP__CHILDREN"] {
        let home = Home::new();
        home.write_config(&callers(&[("ada", "token of ada"), ("bob", "token of bob")]));
        let front =
            Front::start_with(&home, &FrontSetup { variables: &[(variable, "4")], ..FrontSetup::default() });
        let opening = crate::support::initialize("2025-11-25", &json!({}));
        let open = |caller| front.post(&[caller], &opening).head().status;
        // Half of the places are kept in equal shares: one of four for each of two.
        assert_eq!([ADA; 6].map(open), [200, 200, 200, 503, 503, 503], "{variable}");
        assert_eq!([BOB; 2].map(open), [200, 503], "{variable}");
    }
    // The other's share is there for requests without a session too.
    let home = Home::new();
    home.write_config(&callers(&[("ada", "token of ada"), ("bob", "token of bob")]));
    let variables = [("HANDRAISE_MCP__CHILDREN", "4")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let opening = crate::support::initialize("2025-11-25", &json!({}));
    for _ in 0..6 {
        front.post(&[ADA], &opening).head();
    }
    let answer = modern_tap(&front, BOB, &json!({}), None);
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn s37_one_caller_cannot_take_the_bytes_of_another() {
    let home = Home::new();
    home.write_config(&callers(&[("ada", "token of ada"), ("bob", "token of bob")]));
    let variables =
        [("HANDRAISE_MCP__IN_FLIGHT_BYTES", "4194304"), ("HANDRAISE_MCP__MAX_FRAME_BYTES", "1048576")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    // Bodies that are announced and do not come: a megabyte for each session of one caller.
    let hold = |caller: (&str, &str)| {
        let session = front.initialize("2025-11-25", &json!({}), &[caller]);
        let headers = [caller, ("Mcp-Session-Id", session.as_str()), ("Content-Length", "1000000")];
        front.request("POST", &headers, b"{")
    };
    let in_flight = |bytes: u64| (front.metric("bytes_in_flight") == bytes).then_some(());
    let refused =
        |count: u64| (front.metric("refused_total{reason=\"bytes_in_flight\"}") == count).then_some(());
    let mut held: Vec<_> = (0..3).map(|_| hold(ADA)).collect();
    wait_for("three", || in_flight(3_000_000));
    held.push(hold(ADA));
    wait_for("the refusal of the fourth", || refused(1));
    // The other's share is there all the same, and no more than that.
    held.push(hold(BOB));
    wait_for("the other's", || in_flight(4_000_000));
    held.push(hold(BOB));
    wait_for("the refusal of its second", || refused(2));
    drop(held);
    wait_for("room", || in_flight(0));
}

#[test]
fn s37_one_callers_open_calls_keep_no_other_caller_from_being_asked() {
    let home = Home::new();
    home.write_config(&callers(&[("ada", "token of ada"), ("bob", "token of bob")]));
    let variables =
        [("HANDRAISE_MCP__IN_FLIGHT_BYTES", "1048576"), ("HANDRAISE_MCP__MAX_FRAME_BYTES", "65536")];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let open = |caller| front.initialize("2025-11-25", &json!({"elicitation": {}}), &[caller]);
    let (ada, bob) = (open(ADA), open(BOB));
    // Calls that are never answered, until not even the smallest finds room.
    let sizes = [60_000; 18].into_iter().chain([3_000; 12]).chain([150; 25]);
    let _calls: Vec<Connection> = (0_u64..)
        .zip(sizes)
        .map(|(id, size)| {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "hang", "arguments": {"text": "x".repeat(size)}}});
            let open = front.post(&[ADA, ("Mcp-Session-Id", &ada)], &call);
            // Until then it counts among the bytes of bodies as well.
            wait_for("the call", || (front.count("hang") as u64 == id + 1).then_some(()));
            open
        })
        .collect();
    let refused = front.metric("envelope_refused_total{reason=\"kept_calls\"}");
    assert!(refused > 0, "there was room for all of them");
    let mut asked = front.post(&[BOB, ("Mcp-Session-Id", &bob)], &tap(1));
    asked.stream();
    assert_eq!(asked.event().unwrap().frame()["method"], "elicitation/create");
}

#[test]
fn s10_rebound_names_and_foreign_pages_are_refused() {
    let home = Home::new();
    let variables = [
        ("HANDRAISE_MCP__ALLOWED_HOSTS", "mcp.example"),
        ("HANDRAISE_MCP__ALLOWED_ORIGINS", "http://localhost:6274"),
    ];
    let front = Front::start_with(&home, &FrontSetup { variables: &variables, ..FrontSetup::default() });
    let opening = crate::support::initialize("2025-11-25", &json!({}));
    for host in ["evil.example", "evil.example:7400", "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(front.post(&[("Host", host)], &opening).head().status, 403, "{host}");
    }
    for origin in ["https://evil.example", "http://127.0.0.1:3000", "null"] {
        assert_eq!(front.post(&[("Origin", origin)], &opening).head().status, 403, "{origin}");
    }
    let address = front.address.clone();
    let own = format!("http://{address}");
    for headers in [
        &[("Host", address.as_str()), ("Origin", own.as_str())][..],
        &[("Host", "mcp.example")],
        &[("Origin", "http://localhost:6274")],
        &[("Host", "localhost")],
    ] {
        assert_eq!(front.post(headers, &opening).head().status, 200, "{headers:?}");
    }
    assert_eq!(front.metric("refused_total{reason=\"host\"}"), 4);
    assert_eq!(front.metric("refused_total{reason=\"origin\"}"), 3);
    // The counters are for this machine, and not for what a proxy lets through.
    for headers in [&[("X-Forwarded-For", "1.2.3.4")][..], &[("Host", "mcp.example")]] {
        let mut connection = front.connect();
        connection.send("GET", "/metrics", headers, b"");
        assert_eq!(connection.head().status, 404, "{headers:?}");
    }
}

#[test]
fn s10_listening_beyond_loopback_needs_callers_and_tls() {
    let home = Home::new();
    let run = |arguments: &[&str]| {
        let all =
            [&["mcp", "--listen", "0.0.0.0:0"], arguments, &["--", crate::support::binary(), "fake-server"]];
        let output = home.run(&all.concat());
        (output.status.code(), stderr(&output))
    };
    let (status, error) = run(&["--insecure-behind-proxy"]);
    assert!(status == Some(1) && error.contains("add a [[caller]]"), "{error}");
    home.write_config(&callers(&[("ada", "x")]));
    let (status, error) = run(&[]);
    assert!(status == Some(1) && error.contains("--tls-cert"), "{error}");
    let (status, error) = run(&["--tls-cert", "/nowhere"]);
    assert!(status == Some(1) && error.contains("--tls-key"), "{error}");
    let (status, error) = run(&["--tls-cert", "/nowhere", "--tls-key", "/nowhere"]);
    assert!(status == Some(1) && error.contains("/nowhere"), "{error}");
    let output = home.run(&["mcp", "--listen", "127.0.0.1:0", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
}

#[test]
fn s10_a_callers_token_reaches_no_server() {
    let home = Home::new();
    let front = with_callers(&home);
    front.initialize("2025-11-25", &json!({}), &[ADA]);
    modern_tap(&front, ADA, &json!({}), None);
    let received = String::from_utf8(front.received()).unwrap();
    assert!(received.contains("initialize") && !received.contains("token of"), "{received}");
    drop(Connection::open(&front.address));
}
