//! Requests that describe themselves: no session, mirrored headers, and a closed response is a cancellation.

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::support::{Connection, Front, FrontSetup, Home, modern, wait_for};

fn post(front: &Front, id: &Value, method: &str, params: &Value) -> Connection {
    let (frame, headers) = modern(id, method, params);
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&headers, &frame)
}

fn call(front: &Front, id: &Value, tool: &str, arguments: &Value) -> Connection {
    post(front, id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

#[test]
fn a_request_needs_no_session_and_opens_none() {
    let home = Home::new();
    let front = Front::start(&home);
    let mut answered = call(&front, &json!("a"), "echo", &json!({"text": "x"}));
    let head = answered.head();
    assert_eq!((head.status, head.header("mcp-session-id")), (200, ""));
    assert_eq!(
        answered.body(&head),
        r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[{"type":"text","text":"x"}]}}"#
    );
    // A session header is no session here.
    let (frame, headers) = modern(&json!(1), "server/discover", &json!({}));
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("Mcp-Session-Id", "made up"));
    assert_eq!(front.post(&headers, &frame).answer().0, 200);
    assert_eq!((front.metric("sessions"), front.metric("children")), (0, 1));
    assert_eq!(front.request("GET", &[], b"").head().status, 405);
    assert_eq!(front.request("DELETE", &[], b"").head().status, 405);
}

#[test]
fn s3_headers_that_say_something_else_than_the_body_are_refused_before_anything_runs() {
    let home = Home::new();
    let front = Front::start(&home);
    let (frame, _) = modern(&json!(1), "tools/call", &json!({"name": "tapOn", "arguments": {}}));
    let good = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "tapOn")];
    for (index, wrong) in
        [(0, "2025-11-25"), (1, "tools/list"), (2, "echo"), (2, "=?base64?ZWNobw==?="), (2, "TapOn")]
    {
        for is_missing in [true, false] {
            let mut headers = good.to_vec();
            headers[index].1 = wrong;
            if is_missing {
                headers.remove(index);
            }
            let (status, error) = front.post(&headers, &frame).answer();
            assert_eq!((status, &error["error"]["code"]), (400, &json!(-32020)), "{headers:?}: {error}");
            assert_eq!(error["id"], 1);
        }
    }
    let twice = [&good[..], &[("Mcp-Name", "tapOn")]].concat();
    assert_eq!(front.post(&twice, &frame).answer().0, 400);
    assert_eq!((front.calls().len(), front.metric("refused_total{reason=\"header_mismatch\"}")), (0, 11));
    let encoded = [good[0], good[1], ("Mcp-Name", "=?base64?dGFwT24=?=")];
    assert_eq!(front.post(&encoded, &frame).answer().0, 200);
    assert_eq!(front.count("tapOn"), 1);
}

#[test]
fn errors_have_their_statuses() {
    let home = Home::new();
    let front = Front::start(&home);
    assert_eq!(post(&front, &json!(1), "no/such", &json!({})).answer().0, 404);
    let (status, error) = call(&front, &json!(1), "no-such-tool", &json!({})).answer();
    assert_eq!((status, &error["error"]["code"]), (200, &json!(-32602)), "a result of its own kind");
    for body in ["[]", "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2}", "no json", ""] {
        let (status, error) = front.request("POST", &[], body.as_bytes()).answer();
        assert_eq!((status, &error["error"]["code"]), (400, &json!(-32600)), "{body}");
    }
    // What a header promises and the body does not keep is missing there; without the header, a session is.
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    for (version, code) in [("2026-07-28", -32602), ("2025-11-25", -32600)] {
        let (status, error) = front.post(&[("MCP-Protocol-Version", version)], &bare).answer();
        assert_eq!((status, &error["error"]["code"]), (400, &json!(code)), "{version}");
    }
    for media in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let mut refused = front.request("POST", &[("Content-Type", media)], b"{}");
        assert_eq!(refused.head().status, 415, "{media}");
    }
    let mut elsewhere = front.connect();
    elsewhere.send("POST", "/", &[], b"{}");
    assert_eq!(elsewhere.head().status, 404);
}

#[test]
fn a_client_that_closes_the_response_has_cancelled() {
    let home = Home::new();
    let front = Front::start(&home);
    let swipe = json!({"steps": 1000, "pauseMs": 20, "deviceId": "A1B2-C3D4"});
    // Before anything was said, and in the middle of a stream.
    let waiting = call(&front, &json!(1), "swipe", &swipe);
    wait_for("the call", || (front.count("swipe") == 1).then_some(()));
    drop(waiting);
    wait_for("its cancellation", || (front.cancelled("swipe") == 1).then_some(()));
    let params = json!({"name": "swipe", "arguments": swipe, "_meta": {"progressToken": "mine"}});
    let mut streaming = post(&front, &json!(1), "tools/call", &params);
    streaming.stream();
    assert_eq!(streaming.event().unwrap().frame()["params"]["progressToken"], "mine");
    drop(streaming);
    wait_for("its cancellation", || (front.cancelled("swipe") == 2).then_some(()));
    // What it has said behind its request hides nothing.
    let mut more = call(&front, &json!(1), "swipe", &swipe);
    assert!(more.write(b"P"));
    wait_for("the call", || (front.count("swipe") == 3).then_some(()));
    drop(more);
    wait_for("its cancellation", || (front.cancelled("swipe") == 3).then_some(()));
    assert_eq!(front.metric("bytes_in_flight"), 0);
}

#[test]
fn a_call_that_is_left_asks_nothing_and_a_retry_that_is_left_has_run_once() {
    let ways: [fn(&Home) -> Front; 2] =
        [Front::start, |home| Front::in_front_of(home, &home.server(&[]), &[])];
    for way in ways {
        let home = Home::new();
        let front = way(&home);
        let arguments = json!({"steps": 20, "pauseMs": 20});
        let left = call(&front, &json!(1), "swipe", &arguments);
        wait_for("the call", || (front.count("swipe") == 1).then_some(()));
        drop(left);
        wait_for("its cancellation", || (front.cancelled("swipe") == 1).then_some(()));
        let asked = call(&front, &json!(1), "swipe", &arguments).answer_in_time();
        let choice = json!({"action": "accept", "content": {"deviceId": "A1B2-C3D4"}});
        let retry = json!({"name": "swipe", "arguments": arguments, "inputResponses": {"deviceChoice": choice},
            "requestState": asked["result"]["requestState"]});
        let left = post(&front, &json!(2), "tools/call", &retry);
        wait_for("the call that runs again", || (front.count("swipe") == 3).then_some(()));
        drop(left);
        wait_for("its cancellation", || (front.cancelled("swipe") == 2).then_some(()));
        // Its state is spent.
        let error = post(&front, &json!(2), "tools/call", &retry).answer_in_time();
        assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
        assert_eq!((front.count("swipe"), front.outcomes(3).len()), (3, 3), "asked once, accepted once");
    }
}

#[test]
fn s6_clients_that_share_a_server_and_their_numbers_get_their_own() {
    let home = Home::new();
    let front = Front::start(&home);
    let swipe = |text: &str, device: &str| {
        json!({"name": "swipe", "arguments": {"text": text, "steps": 20, "pauseMs": 10, "deviceId": device},
            "_meta": {"progressToken": 1}})
    };
    let mut one = post(&front, &json!(1), "tools/call", &swipe("a", "A1B2-C3D4"));
    let mut other = post(&front, &json!(1), "tools/call", &swipe("b", "emulator-5554"));
    // A cancellation by id would be somebody else's: it is no way to cancel here.
    let (cancel, _) = modern(&json!(null), "notifications/cancelled", &json!({"requestId": 1}));
    let mut cancel = cancel;
    cancel.as_object_mut().unwrap().remove("id");
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "notifications/cancelled")];
    assert_eq!(front.post(&headers, &cancel).head().status, 202);
    for (stream, device) in [(&mut one, "A1B2-C3D4"), (&mut other, "emulator-5554")] {
        stream.stream();
        let mut progress = 0;
        loop {
            let frame = stream.event().unwrap().frame();
            if frame["method"] == "notifications/progress" {
                progress += 1;
                assert_eq!(
                    (&frame["params"]["progressToken"], &frame["params"]["progress"]),
                    (&json!(1), &json!(progress))
                );
                continue;
            }
            assert_eq!(frame["id"], 1);
            assert_eq!(frame["result"]["content"][0]["text"], format!("swiped on {device}"));
            break;
        }
        assert_eq!((progress, stream.event()), (20, None));
    }
    assert_eq!((front.metric("children"), front.cancelled("swipe")), (1, 0));
}

#[test]
fn log_messages_reach_only_requests_that_want_them_and_requests_of_the_server_are_answered() {
    let home = Home::new();
    let front = Front::start(&home);
    assert_eq!(call(&front, &json!(1), "notify", &json!({})).answer().0, 200);
    let params =
        json!({"name": "notify", "arguments": {}, "_meta": {"io.modelcontextprotocol/logLevel": "info"}});
    let mut logged = post(&front, &json!(2), "tools/call", &params);
    logged.stream();
    assert_eq!(logged.event().unwrap().frame()["method"], "notifications/message");
    assert_eq!(logged.event().unwrap().frame()["id"], 2);
    // A server of the other era that asks back learns that nobody can be asked.
    let home = Home::new();
    let front =
        Front::start_with(&home, &FrontSetup { server: &["--era", "legacy"], ..FrontSetup::default() });
    let (status, answer) = call(&front, &json!(1), "ask", &json!({})).answer();
    assert_eq!(status, 200);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("-32601"), "{answer}");
}

#[test]
fn s33_a_server_that_dies_ends_its_requests_and_the_next_one_starts_another() {
    let home = Home::new();
    let front = Front::start(&home);
    let mut hanging = call(&front, &json!("h"), "hang", &json!({}));
    wait_for("the call", || (front.count("hang") == 1).then_some(()));
    for status in [3, 4] {
        let (_, error) = call(&front, &json!(1), "die", &json!({"status": status})).answer();
        let expected = format!("the MCP server ended: exit status {status}");
        assert_eq!((&error["id"], &error["error"]["message"]), (&json!(1), &json!(expected)), "{error}");
    }
    let (_, error) = hanging.answer();
    assert_eq!(error["id"], "h", "{error}");
}

#[test]
fn a_server_that_keeps_ending_is_started_less_and_less_often_and_nobody_waits_for_it() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (starts, works) = (file("starts"), file("works"));
    let script = format!("echo >> {starts}; [ -e {works} ] || exit 9; exec \"$@\"");
    let before = ["sh", "-c", script.as_str(), "sh"];
    let front = Front::start_with(&home, &FrontSetup { before: &before, ..FrontSetup::default() });
    let starts = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let refused = "refused_total{reason=\"restarting\"}";
    let begun = SystemClock.boot_millis();
    let mut after = String::new();
    while front.metric(refused) < 50 {
        let mut answered = call(&front, &json!(1), "echo", &json!({"text": "a"}));
        let head = answered.head();
        let error: Value = serde_json::from_str(&answered.body(&head)).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32603)), "{error}");
        if head.status == 503 {
            assert!(message.contains("keeps ending"), "{message}");
            after = head.header("retry-after").to_owned();
            assert!(after.parse::<u64>().is_ok_and(|seconds| (1..=60).contains(&seconds)), "{after}");
        } else {
            assert!(message.contains("ended"), "{message}");
        }
    }
    // Two at once, and one more for each of the waits of half a second, a second, two …
    let waited = (SystemClock.boot_millis() - begun) / 1000 + 1;
    assert!(starts() <= 4 + (2 * waited).ilog2() as usize, "{} starts in {waited} s", starts());
    assert!(front.log.text().contains("keeps ending"), "{}", front.log.text());
    // Sessions have nothing to do with it.
    std::fs::write(&works, "").unwrap();
    front.initialize("2025-11-25", &json!({}), &[]);
    std::thread::sleep(std::time::Duration::from_secs(after.parse().unwrap()));
    assert_eq!(call(&front, &json!(1), "echo", &json!({"text": "a"})).answer().0, 200);
}

#[test]
fn a_server_that_ends_before_it_opens_a_session_is_started_less_and_less_often() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (starts, works) = (file("starts"), file("works"));
    let script = format!("echo >> {starts}; [ -e {works} ] || exit 9; exec \"$@\"");
    let before = ["sh", "-c", script.as_str(), "sh"];
    let front = Front::start_with(&home, &FrontSetup { before: &before, ..FrontSetup::default() });
    let starts = || std::fs::read_to_string(&starts).unwrap().lines().count();
    let opening = crate::support::initialize("2025-11-25", &json!({}));
    let begun = SystemClock.boot_millis();
    let mut after = String::new();
    while front.metric("refused_total{reason=\"restarting\"}") < 50 {
        let mut refused = front.post(&[], &opening);
        let head = refused.head();
        if head.status == 503 {
            head.header("retry-after").clone_into(&mut after);
        } else {
            assert!(refused.body(&head).contains("exit status 9"));
        }
    }
    let waited = (SystemClock.boot_millis() - begun) / 1000 + 1;
    assert!(starts() <= 4 + (2 * waited).ilog2() as usize, "{} starts in {waited} s", starts());
    // Once one has opened, those before are forgotten; and one that ends later has opened.
    std::fs::write(&works, "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(after.parse().unwrap()));
    for _ in 0..4 {
        let session = front.initialize("2025-11-25", &json!({}), &[]);
        let die = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "die", "arguments": {"status": 3}}});
        front.post(&[("Mcp-Session-Id", &session)], &die).answer();
    }
}
