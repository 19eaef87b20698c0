//! S3: what headers say is what the body says, in front of a server that sees the body alone.

use serde_json::{Value, json};

use crate::support::{Front, FrontSetup, Home, modern};

const ONE: &str = "A1B2-C3D4";
const OTHER: &str = "emulator-5554";
const UNHURRIED: [(&str, &str); 1] = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];

/// A tap on a device, with these headers for it. The status, and the answer.
fn tap(front: &Front, id: u64, device: &str, params: &[(&str, &str)]) -> (u16, Value) {
    let params_of = json!({"name": "tapOn", "arguments": {"text": "OK", "deviceId": device}});
    let (frame, headers) = modern(&json!(id), "tools/call", &params_of);
    let headers = headers.iter().filter(|(name, _)| *name != "Mcp-Param-Device");
    let headers: Vec<_> = headers.map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&[&headers[..], params].concat(), &frame).answer()
}

/// How often the server was asked for its tools.
fn lists(front: &Front) -> usize {
    String::from_utf8(front.received()).unwrap().matches("\"tools/list\"").count()
}

/// A server whose lines pass through this program of sed: those that it reads, or those that it writes.
fn with_sed<'a>(home: &Home, is_read: bool, program: &str, server: &'a [&'a str]) -> Front {
    let sed = format!("sed -u -E '{program}'");
    let script = if is_read { format!("{sed} | \"$@\"") } else { format!("\"$@\" | {sed}") };
    let before = ["sh", "-c", script.as_str(), "sh"];
    Front::start_with(
        home,
        &FrontSetup { before: &before, server, variables: &UNHURRIED, ..FrontSetup::default() },
    )
}

#[test]
fn s3_an_argument_that_a_header_says_otherwise_runs_nothing_whoever_has_listed_the_tools() {
    let home = Home::new();
    let front = Front::start(&home);
    for round in 1..=2 {
        for (id, params) in [
            (1, &[][..]),
            (2, &[("Mcp-Param-Device", OTHER)]),
            (3, &[("Mcp-Param-Device", ONE), ("mcp-param-device", ONE)]),
            (4, &[("Mcp-Param-Device", "=?base64?!?=")]),
        ] {
            let (status, error) = tap(&front, id, ONE, params);
            assert_eq!((status, &error["error"]["code"]), (400, &json!(-32020)), "{params:?}: {error}");
            assert_eq!(error["id"], id);
        }
        assert_eq!((front.count("tapOn"), lists(&front)), (round - 1, round), "asked for once");
        let (status, answer) = tap(&front, 5, ONE, &[("Mcp-Param-Device", ONE), ("Mcp-Param-Team", "blue")]);
        assert_eq!((status, front.count("tapOn"), lists(&front)), (200, round, round), "{answer}");
        // What another process of the server has said is not what the next one says.
        let params = json!({"name": "die", "arguments": {"status": 3}});
        let (frame, headers) = modern(&json!(6), "tools/call", &params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        front.post(&headers, &frame).answer();
    }
    assert_eq!(front.metric("refused_total{reason=\"header_mismatch\"}"), 8);
}

#[test]
fn s3_clients_that_come_while_the_tools_are_listed_are_judged_alike_and_they_are_listed_once() {
    let home = Home::new();
    let front = Front::start(&home);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let front = &front;
            scope.spawn(move || {
                let is_true = number % 2 == 0;
                let header = [("Mcp-Param-Device", if is_true { ONE } else { OTHER })];
                let (status, answer) = tap(front, number, ONE, &header);
                assert_eq!(
                    (status, &answer["id"]),
                    (if is_true { 200 } else { 400 }, &json!(number)),
                    "{answer}"
                );
            });
        }
    });
    assert_eq!((front.count("tapOn"), lists(&front)), (8, 1));
    // A client that has listed them itself has nothing listed again, until they change.
    let home = Home::new();
    let front = Front::start(&home);
    let ask = |method: &str, params: &Value| {
        let (frame, headers) = modern(&json!(1), method, params);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        front.post(&headers, &frame).answer()
    };
    assert_eq!(ask("tools/list", &json!({})).0, 200);
    assert_eq!((tap(&front, 2, ONE, &[]).0, lists(&front)), (400, 1));
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let (frame, headers) = modern(&json!(9), "subscriptions/listen", &wanted);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut subscription = front.post(&headers, &frame);
    subscription.stream();
    assert!(subscription.event().unwrap().data.contains("acknowledged"));
    assert_eq!(ask("tools/call", &json!({"name": "notify", "arguments": {}})).0, 200);
    assert_eq!((tap(&front, 3, ONE, &[]).0, lists(&front)), (400, 2));
}

#[test]
fn s3_a_server_that_does_not_list_its_tools_is_called_by_those_whose_headers_say_nothing() {
    let home = Home::new();
    let front = with_sed(&home, true, "s,\"tools/list\",\"tools/none\",", &[]);
    assert_eq!(tap(&front, 1, ONE, &[]).0, 200);
    let (_, error) = tap(&front, 2, ONE, &[("Mcp-Param-Device", ONE)]);
    assert!(error["error"]["message"].as_str().unwrap().contains("does not list its tools"), "{error}");
    assert_eq!(front.count("tapOn"), 1);
    assert!(front.log.text().contains("does not say what its tools are"), "{}", front.log.text());
    // One that says nothing at all is not waited for for ever, and one that ends ends the call.
    let home = Home::new();
    let front = with_sed(&home, true, "/\"tools.list\"/d", &[]);
    assert_eq!(tap(&front, 1, ONE, &[]).0, 200);
    let home = Home::new();
    let front = with_sed(&home, true, "/\"tools.list\"/Q", &[]);
    let (_, error) = tap(&front, 1, ONE, &[]);
    assert!(error["error"]["message"].as_str().unwrap().contains("the MCP server ended"), "{error}");
    assert_eq!(front.count("tapOn"), 0);
}

#[test]
fn s3_headers_of_a_legacy_session_may_be_absent_and_must_be_true() {
    let home = Home::new();
    let front = Front::start_with(&home, &FrontSetup { variables: &UNHURRIED, ..FrontSetup::default() });
    let session = front.initialize("2025-06-18", &json!({"elicitation": {}}), &[]);
    let named = ("Mcp-Session-Id", session.as_str());
    let newer = ("MCP-Protocol-Version", "2026-07-28");
    let tap = |id: u64, headers: &[(&str, &str)]| {
        let frame = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "tapOn", "arguments": {"text": "OK", "deviceId": ONE}}});
        front.post(&[&[named, newer], headers].concat(), &frame).answer()
    };
    for (id, wrong) in [
        (1, &[("Mcp-Method", "tools/list")][..]),
        (2, &[("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")]),
        (3, &[("Mcp-Name", "tapOn"), ("mcp-name", "tapOn")]),
        (4, &[("Mcp-Param-Device", OTHER)]),
        (5, &[("Mcp-Method", "tools/call"), ("Mcp-Name", "tapOn"), ("Mcp-Param-Device", OTHER)]),
    ] {
        let (status, error) = tap(id, wrong);
        assert_eq!((status, &error["error"]["code"]), (400, &json!(-32020)), "{wrong:?}: {error}");
        assert_eq!(error["id"], id);
    }
    assert_eq!((front.count("tapOn"), lists(&front)), (0, 1));
    let whole = [("Mcp-Method", "tools/call"), ("Mcp-Name", "tapOn"), ("Mcp-Param-Device", ONE)];
    for (id, headers) in [(6, &[][..]), (7, &whole[..2]), (8, &whole), (9, &[("Mcp-Param-Team", "blue")])] {
        assert_eq!(tap(id, headers).0, 200, "{headers:?}");
    }
    assert_eq!((front.count("tapOn"), lists(&front)), (4, 1));
    // Also of what has no answer: nothing of it happens.
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(front.post(&[named, ("Mcp-Method", "notifications/x")], &note).head().status, 400);
    assert_eq!(front.post(&[named, ("Mcp-Method", "notifications/cancelled")], &note).head().status, 202);
    // A client that asks for nothing of this has nothing listed on its behalf.
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "tapOn", "arguments": {"text": "OK", "deviceId": ONE}}});
    assert_eq!(front.post(&[("Mcp-Session-Id", &session)], &frame).answer().0, 200);
    assert_eq!(lists(&front), 1);
}

#[test]
fn s10_a_session_header_that_nothing_can_be_bound_to_is_not_the_same_as_none() {
    let home = Home::new();
    let front = Front::start(&home);
    let (frame, headers) =
        modern(&json!(1), "tools/call", &json!({"name": "tapOn", "arguments": {"text": "OK"}}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (longest, longer) = ("x".repeat(256), "x".repeat(257));
    let name = "Mcp-Session-Id";
    for (sessions, status) in [
        (&[][..], 200),
        (&[(name, "a")], 200),
        (&[(name, longest.as_str())], 200),
        (&[(name, longer.as_str())], 400),
        (&[(name, "a"), (name, "b")], 400),
        (&[(name, "a"), ("mcp-session-id", "a")], 400),
        (&[(name, "é")], 400),
    ] {
        let (found, answer) = front.post(&[&headers[..], sessions].concat(), &frame).answer();
        assert_eq!(found, status, "{sessions:?}: {answer}");
        if status == 400 {
            assert_eq!(answer["error"]["code"], -32600, "{answer}");
        }
    }
    assert_eq!(front.count("tapOn"), 3);
}

#[test]
fn a_discovery_without_a_session_fails_so_that_its_client_goes_on_to_initialize() {
    let home = Home::new();
    let front = Front::start(&home);
    for (version, has_meta, code) in [
        (Some("2026-07-28"), false, -32602),
        (Some("2026-07-28"), true, -32602),
        (Some("2025-06-18"), false, -32601),
        (Some("2025-06-18"), true, -32601),
        (None, false, -32601),
        (None, true, -32601),
    ] {
        let mut frame = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
        if has_meta {
            frame["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2025-06-18"});
        }
        let mut headers = vec![("Mcp-Method", "server/discover")];
        headers.extend(version.map(|version| ("MCP-Protocol-Version", version)));
        let (status, error) = front.post(&headers, &frame).answer();
        assert_eq!((status, &error["error"]["code"]), (400, &json!(code)), "{version:?} {has_meta}: {error}");
        assert_eq!(error["id"], 0);
    }
    assert_eq!(front.metric("children"), 0);
}

#[test]
fn a_version_that_the_server_does_not_speak_is_refused_with_those_that_it_does() {
    let home = Home::new();
    let front = Front::start(&home);
    let list = |front: &Front, version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version});
        let (frame, headers) = modern(&json!(1), "tools/list", &json!({"_meta": meta}));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        front.post(&headers, &frame).answer()
    };
    assert_eq!(list(&front, "2026-07-28").0, 200);
    let discoveries = || String::from_utf8(front.received()).unwrap().matches("server/discover").count();
    assert_eq!(discoveries(), 0);
    for version in ["2027-01-01", "2026-07-29", "2027-01-01"] {
        let (status, error) = list(&front, version);
        assert_eq!(
            (status, &error["error"]["code"], &error["id"]),
            (400, &json!(-32022), &json!(1)),
            "{error}"
        );
        let data = json!({"supported": ["2026-07-28", "2025-11-25"], "requested": version});
        assert_eq!(error["error"]["data"], data);
        assert_eq!(discoveries(), 1);
    }
    assert_eq!(list(&front, "2026-07-28").0, 200);
    // One that does not say is not second-guessed.
    let home = Home::new();
    let setup = FrontSetup { server: &["--era", "legacy"], ..FrontSetup::default() };
    assert_eq!(list(&Front::start_with(&home, &setup), "2027-01-01").0, 200);
    // Nor is one that speaks it.
    let home = Home::new();
    let front = with_sed(&home, false, "s,\"2026-07-28\",\"2027-01-01\"\\,&,", &[]);
    assert_eq!(list(&front, "2027-01-01").0, 200);
}

#[test]
fn a_server_that_respells_an_id_is_understood_in_both_eras_and_one_that_answers_nobody_is_logged() {
    for (id, in_session) in [("\\1.0", true), ("\\1e0", true), ("\"\\1\"", false)] {
        let home = Home::new();
        let front = with_sed(&home, false, &format!("s,\"id\":([0-9]+)\\,,\"id\":{id}\\,,"), &[]);
        for number in 1..=2 {
            let params = json!({"name": "echo", "arguments": {"text": "a"}});
            let (frame, headers) = modern(&json!(number), "tools/call", &params);
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = front.post(&headers, &frame).answer_in_time();
            assert_eq!(
                (&answer["id"], &answer["result"]["content"][0]["text"]),
                (&json!(number), &json!("a"))
            );
        }
        // A tool's refusal is one under such an id too.
        let (frame, headers) =
            modern(&json!(3), "tools/call", &json!({"name": "tapOn", "arguments": {"text": "x"}}));
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let asked = front.post(&headers, &frame).answer_in_time();
        assert!(asked["result"]["requestState"].is_string(), "{asked}");
        let mut opening = crate::support::initialize("2025-11-25", &json!({}));
        opening["id"] = json!(7);
        let mut opened = front.post(&[], &opening);
        if in_session {
            assert_eq!(opened.answer_in_time()["result"]["protocolVersion"], "2025-11-25");
            continue;
        }
        // In a session ids are the client's own: a text is another one, and the log says who waits for what.
        crate::support::wait_for("the log", || {
            front.log.text().contains("under an id that no open request has").then_some(())
        });
    }
}
