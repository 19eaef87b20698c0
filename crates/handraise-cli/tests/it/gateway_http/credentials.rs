//! Callers and the server at a URL have credentials of their own, and neither sees the other's.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::walls::callers;
use crate::support::{Connection, Front, Home, modern, wait_for};

/// What a caller sends with each request, beside its token.
const BESIDE: [(&str, &str); 4] = [
    ("Authorization", "Bearer canary of ada"),
    ("X-Key", "canary"),
    ("Cookie", "session=canary"),
    ("Proxy-Authorization", "Basic canary"),
];

const UPSTREAM: &str =
    "[upstream]\nheaders = { Authorization = 'Bearer of the upstream', X-Key = 'the key' }\n";

fn of_session(front: &Front, session: &str, frame: &Value) -> Connection {
    front.post(&[&BESIDE[..], &[("Mcp-Session-Id", session)]].concat(), frame)
}

fn described(front: &Front, method: &str, params: &Value) -> Connection {
    let (frame, headers) = modern(&json!(1), method, params);
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    front.post(&headers.chain(BESIDE).collect::<Vec<_>>(), &frame)
}

#[test]
fn s10_a_server_at_a_url_gets_the_configured_headers_and_none_of_a_callers_with_every_request() {
    let home = Home::new();
    home.write_config(&(callers(&[("ada", "canary of ada")]) + UPSTREAM));
    let variables = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0"), ("HANDRAISE_LOG", "debug")];
    let front = Front::in_front_of(&home, &home.server(&[]), &variables);
    // A session: its opening, its own stream, a call that is asked about and runs twice, a cancel, and its end.
    let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &BESIDE);
    let named = [&BESIDE[..], &[("Mcp-Session-Id", session.as_str())]].concat();
    front.request("GET", &named, b"").stream();
    let tap = json!({"name": "tapOn", "arguments": {"text": "OK"}});
    let accepted = json!({"action": "accept", "content": {"deviceId": "A1B2-C3D4"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tap});
    let mut stream = of_session(&front, &session, &call);
    stream.stream();
    let ask = stream.event().unwrap().frame();
    let answer = json!({"jsonrpc": "2.0", "id": ask["id"], "result": accepted});
    assert_eq!(of_session(&front, &session, &answer).head().status, 202);
    assert_eq!(stream.event().unwrap().frame()["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}});
    assert_eq!(of_session(&front, &session, &cancel).head().status, 202);
    assert_eq!(front.request("DELETE", &named, b"").head().status, 204);
    // Requests that describe themselves: among them what the gateway lists itself, and one whose stream is left.
    assert_eq!(described(&front, "server/discover", &json!({})).answer().0, 200);
    let asked = described(&front, "tools/call", &tap).answer_in_time();
    let mut retry = tap.clone();
    retry["requestState"] = asked["result"]["requestState"].clone();
    retry["inputResponses"] = json!({ "deviceChoice": accepted });
    let tapped = described(&front, "tools/call", &retry).answer_in_time();
    assert_eq!(tapped["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{tapped}");
    described(&front, "subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}})).stream();
    let kinds = || -> BTreeSet<String> {
        let kind = |request: &Value| {
            let body: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap_or_default();
            let era = if request["headers"].get("mcp-session-id").is_some() { "session" } else { "none" };
            format!(
                "{} {} {era}",
                request["method"].as_str().unwrap(),
                body["method"].as_str().unwrap_or("-")
            )
        };
        home.requests().iter().map(kind).collect()
    };
    let expected = [
        "POST initialize none",
        "POST notifications/initialized session",
        "GET - session",
        "POST tools/call session",
        "POST notifications/cancelled session",
        "DELETE - session",
        "POST server/discover none",
        "POST tools/call none",
        "POST tools/list none",
        "POST subscriptions/listen none",
    ];
    wait_for("every kind of request", || expected.iter().all(|kind| kinds().contains(*kind)).then_some(()));
    for request in home.requests() {
        let headers = &request["headers"];
        assert_eq!(headers["authorization"], "Bearer of the upstream", "{request}");
        assert_eq!(headers["x-key"], "the key", "{request}");
        assert!(!request.to_string().contains("canary"), "{request}");
    }
    let log = front.log.text();
    assert!(!log.contains("canary") && !log.contains("of the upstream") && !log.contains("the key"), "{log}");
}
