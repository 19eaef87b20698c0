//! Every state of the modern era that is not taken: what its bearer is answered, that nothing runs, and what is written down.

use std::time::Duration;

use serde_json::{Value, json};

use super::walls::callers;
use crate::support::{Front, FrontSetup, Home, aged, modern};

const SECRET: &str = "secret-canary-of-thirty-two-characters";
const CANARY: &str = "device-canary-two";
const ADA: (&str, &str) = ("Authorization", "Bearer token-canary of ada");
const BOB: (&str, &str) = ("Authorization", "Bearer token-canary of bob");

/// Who retries what, and with which state.
struct Row {
    name: &'static str,
    beside: Vec<(&'static str, &'static str)>,
    method: &'static str,
    tool: &'static str,
    arguments: Value,
    state: String,
    /// The reason in its record.
    reason: &'static str,
}

fn arguments() -> Value {
    json!({"text": "argument-canary"})
}

/// Sends a request; its status and its answer.
fn send(front: &Front, beside: &[(&str, &str)], method: &str, params: &Value) -> (u16, Value) {
    let (frame, headers) = modern(&json!(1), method, params);
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    front.post(&headers.chain(beside.iter().copied()).collect::<Vec<_>>(), &frame).answer()
}

fn retry(front: &Front, row: &Row) -> (u16, Value) {
    let content = json!({"deviceId": CANARY, "x": "answer-canary"});
    let responses = json!({"deviceChoice": {"action": "accept", "content": content}});
    let params = json!({"name": row.tool, "arguments": row.arguments, "requestState": row.state, "inputResponses": responses});
    send(front, &row.beside, row.method, &params)
}

/// A state of a question that ada is asked, with these headers.
fn asked(front: &Front, beside: &[(&str, &str)]) -> String {
    let params = json!({"name": "tapOn", "arguments": arguments()});
    let (status, asked) = send(front, beside, "tools/call", &params);
    assert_eq!((status, &asked["result"]["resultType"]), (200, &json!("input_required")), "{asked}");
    asked["result"]["requestState"].as_str().unwrap().to_owned()
}

fn rows(front: &Front) -> Vec<Row> {
    let state = asked(front, &[ADA]);
    let of_session = asked(front, &[ADA, ("Mcp-Session-Id", "session-canary")]);
    let spent = asked(front, &[ADA]);
    let row = |name, reason, state: &str| Row {
        name,
        beside: vec![ADA],
        method: "tools/call",
        tool: "tapOn",
        arguments: arguments(),
        state: state.to_owned(),
        reason,
    };
    let accepted = retry(front, &row("accepted", "", &spent)).1;
    assert!(accepted["result"]["content"][0]["text"].as_str().unwrap().ends_with(CANARY), "{accepted}");
    let parts: Vec<&str> = state.split('.').collect();
    let another_key = state.replacen(parts[1], &parts[1].chars().rev().collect::<String>(), 1);
    let another_mac = format!("{}.{}", state.rsplit_once('.').unwrap().0, "A".repeat(parts[3].len()));
    vec![
        row("bits behind its end", "state-malformed", &format!("{}B", &state[..state.len() - 1])),
        row("longer than it was", "state-malformed", &format!("{state}canary")),
        row("another signature", "state-bad-mac", &another_mac),
        row("another key", "state-unknown-key", &another_key),
        row("expired", "state-expired", &aged(&state, SECRET, "ada", Duration::from_mins(10))),
        row("spent", "state-spent", &spent),
        Row { tool: "swipe", ..row("another tool", "other-call", &state) },
        Row { arguments: json!({"text": "another-canary"}), ..row("other arguments", "other-call", &state) },
        Row { beside: vec![BOB], ..row("another principal", "state-bad-mac", &state) },
        Row {
            beside: vec![BOB],
            tool: "swipe",
            ..row("another principal and tool", "state-bad-mac", &state)
        },
        Row {
            beside: vec![ADA, ("Mcp-Session-Id", "another-canary")],
            ..row("a session, where there was none", "state-bad-mac", &state)
        },
        Row {
            beside: vec![ADA, ("Mcp-Session-Id", "another-canary")],
            ..row("another session", "state-bad-mac", &of_session)
        },
        row("no session, where there was one", "state-bad-mac", &of_session),
        Row { method: "prompts/get", ..row("another method", "state-other-method", &state) },
    ]
}

#[test]
fn every_state_that_is_not_taken_runs_nothing_and_nothing_of_it_is_written_down() {
    let home = Home::new();
    home.write_config(&callers(&[("ada", "token-canary of ada"), ("bob", "token-canary of bob")]));
    let variables =
        [("HANDRAISE_ASK_MIN_HUMAN_MS", "0"), ("HANDRAISE_STATE_SECRET", SECRET), ("HANDRAISE_LOG", "info")];
    let devices = ["--devices", "device-canary-one,device-canary-two"];
    let at_a_url = || Front::in_front_of(&home, &home.server(&devices), &variables);
    let of_a_process = || {
        Front::start_with(
            &home,
            &FrontSetup { server: &devices, variables: &variables, ..FrontSetup::default() },
        )
    };
    let ways: [&dyn Fn() -> Front; 2] = [&of_a_process, &at_a_url];
    for way in ways {
        let front = way();
        let rows = rows(&front);
        let runs = front.calls().len();
        let mut records = front.outcomes(4).len();
        for row in &rows {
            let (status, answer) = retry(&front, row);
            let name = row.name;
            if row.reason == "other-call" {
                let text = answer["result"]["content"][0]["text"]
                    .as_str()
                    .unwrap_or_else(|| panic!("{name}: {answer}"));
                assert!(status == 200 && text.contains("ambiguous_device_target"), "{name}: {answer}");
            } else {
                assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32602)), "{name}: {answer}");
                assert_eq!(answer["error"]["message"], "Invalid or expired requestState", "{name}");
                assert_eq!(answer["error"]["data"], json!({"reason": "invalid_request_state"}), "{name}");
            }
            assert_eq!((&answer["id"], front.calls().len()), (&json!(1), runs), "{name}");
            records += 1;
            assert_eq!(front.outcomes(records).len(), records, "{name}");
            let mut record = front.records().pop().unwrap();
            assert_eq!(record["reason"], row.reason, "{name}: {record}");
            // Whole lines: nothing else stands there. How long it took is no secret.
            let is_genuine = ["state-spent", "other-call"].contains(&row.reason);
            let members = record.as_object_mut().unwrap();
            assert_eq!(members.remove("latencyMs").is_some(), is_genuine, "{name}");
            assert_eq!(members.remove("refusal").is_some(), is_genuine, "{name}");
            assert_eq!(
                record,
                json!({"declared": "form", "era": "mrtr", "rail": "form", "outcome": "invalid", "provenance": "client",
                    "tool": row.tool, "client": "modern tests", "protocolVersion": "2026-07-28", "reason": row.reason}),
                "{name}"
            );
        }
        let log = front.log.text();
        let is_said = rows.iter().find(|row| log.contains(&row.state[..row.state.len().min(64)]));
        assert!(is_said.is_none() && !log.contains("canary"), "{log}");
    }
}
