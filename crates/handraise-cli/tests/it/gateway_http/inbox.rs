//! What clients over HTTP cannot be asked goes to the inbox, in both eras, and comes back to the very client that called.

use serde_json::{Value, json};

use crate::support::{Connection, Events, Front, FrontSetup, Home, Up, modern, pick, wait_for};

fn beside(home: &Home) -> (Up, Events, Front) {
    let up = Up::start(home);
    let operator = up.events();
    let front = Front::start_with(home, &FrontSetup::default());
    wait_for("a gateway at its inbox", || front.log.text().contains("attached to the inbox").then_some(()));
    (up, operator, front)
}

fn tap(text: &str) -> Value {
    json!({"name": "tapOn", "arguments": {"text": text}})
}

/// A call of a client that describes itself, and declares nothing.
fn call(front: &Front, id: &Value, text: &str) -> Connection {
    let (mut frame, headers) = modern(id, "tools/call", &tap(text));
    frame["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    front.post(&headers, &frame)
}

#[test]
fn calls_of_both_eras_are_answered_from_the_inbox_each_its_own() {
    let home = Home::new();
    let (up, _operator, front) = beside(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let legacy = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": tap("legacy")});
    let mut legacy = front.post(&[("Mcp-Session-Id", &session)], &legacy);
    let first = up.wait_for_ask();
    let mut modern = call(&front, &json!("m"), "modern");
    let asks = up.wait_for_asks(2);
    let second = asks.iter().find(|ask| ask["id"] != first["id"]).unwrap();
    // The later one first: each goes back where it came from.
    assert_eq!(up.answer(second, &pick("deviceId", &["A1B2-C3D4"])).status, 200);
    let (status, answer) = modern.answer();
    assert_eq!((status, &answer["id"]), (200, &json!("m")));
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"modern\" on A1B2-C3D4", "{answer}");
    assert_eq!(up.answer(&first, &pick("deviceId", &["emulator-5554"])).status, 200);
    let answer = legacy.answer_in_time();
    assert_eq!(answer["id"], 7);
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"legacy\" on emulator-5554", "{answer}");
    assert_eq!(front.count("tapOn"), 4);
}

#[test]
fn a_client_that_leaves_takes_its_question_back() {
    let home = Home::new();
    let (up, _operator, mut front) = beside(&home);
    let leaving = call(&front, &json!(1), "OK");
    let ask = up.wait_for_ask();
    drop(leaving);
    assert_eq!(up.wait_for_settlement(&ask)["reason"], "request_cancelled");
    assert_eq!(up.answer(&ask, &pick("deviceId", &["A1B2-C3D4"])).status, 404);
    // So does the end of the gateway.
    let _waiting = call(&front, &json!(2), "OK");
    let ask = up.wait_for_ask();
    front.stop();
    assert_eq!(up.wait_for_settlement(&ask)["outcome"], "withdrawn");
    assert_eq!(front.count("tapOn"), 2);
}
