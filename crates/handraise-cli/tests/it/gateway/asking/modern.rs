//! The same in the era of requests that describe themselves: the question is the answer, and a retry brings what was chosen.

use serde_json::{Value, json};

use super::{FIRST, Gateway, SECOND, accept, ask, assert_ran_on, respond, session, start};
use crate::support::Home;

/// A request of the modern era, which says for itself what its client can do.
pub(super) fn modern(id: u64, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

pub(super) fn modern_tap(id: u64, more: &Value) -> Value {
    let mut params = json!({"name": "tapOn", "arguments": {"text": "OK", "x": 1}});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    modern(id, &params)
}

/// The state of the question that a modern call is answered with.
#[track_caller]
pub(in super::super) fn modern_ask(gateway: &mut Gateway, id: u64) -> String {
    gateway.send(&modern_tap(id, &json!({})));
    let asked = gateway.receive();
    assert_eq!(
        (&asked["id"], &asked["result"]["resultType"]),
        (&json!(id), &json!("input_required")),
        "{asked}"
    );
    let question = &asked["result"]["inputRequests"]["deviceChoice"];
    let properties = &question["params"]["requestedSchema"]["properties"]["deviceId"];
    assert_eq!(properties["oneOf"][0]["const"], FIRST, "{asked}");
    asked["result"]["requestState"].as_str().unwrap().to_owned()
}

pub(in super::super) fn retry(id: u64, state: &str, answer: &Value) -> Value {
    modern_tap(id, &json!({"requestState": state, "inputResponses": {"deviceChoice": answer}}))
}

#[test]
fn a_modern_call_is_asked_about_in_its_answer_and_runs_once_with_its_retry() {
    let home = Home::new();
    let mut gateway = start(&home, &[], &[]);
    let state = modern_ask(&mut gateway, 1);
    assert!(state.starts_with("hr1."), "{state}");
    gateway.send(&retry(2, &state, &accept(SECOND)));
    let answer = gateway.receive();
    assert_eq!(answer["id"], 2);
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{answer}");
    assert_ran_on(&gateway, SECOND);
    // A second acceptance of that state runs nothing.
    gateway.send(&retry(3, &state, &accept(FIRST)));
    let error = gateway.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(3), &json!(-32602)));
    assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
    assert_ran_on(&gateway, SECOND);
    assert_eq!(gateway.outcomes(2)[..2], ["asked", "accept"]);
}

#[test]
fn a_modern_retry_that_accepts_nothing_gets_the_original_bytes_and_runs_nothing() {
    for answer in [
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
        accept("not-offered"),
        json!({"action": "accept", "content": {}}),
        Value::Null,
    ] {
        let home = Home::new();
        let mut gateway = start(&home, &[], &[("HANDRAISE_ELICITATION", "off")]);
        gateway.send(&modern_tap(2, &json!({})));
        let expected = gateway.line();
        drop(gateway);
        let home = Home::new();
        let mut gateway = start(&home, &[], &[]);
        let state = modern_ask(&mut gateway, 1);
        gateway.send(&retry(2, &state, &answer));
        assert_eq!(gateway.line(), expected, "{answer}");
        assert_eq!(gateway.count("tapOn"), 1, "{answer}");
    }
}

#[test]
fn a_state_that_is_changed_anywhere_is_refused_and_runs_nothing() {
    let home = Home::new();
    let mut gateway = start(&home, &[], &[]);
    let state = modern_ask(&mut gateway, 1);
    let changes = (0..state.len()).step_by(7).chain([state.len() - 1]).filter(|at| *at >= "hr1.".len());
    let mut refused = 0;
    for (id, at) in (2..).zip(changes) {
        let mut changed = state.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        gateway.send(&retry(id, std::str::from_utf8(&changed).unwrap(), &accept(SECOND)));
        let error = gateway.receive();
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(id), &json!(-32602)), "{at}: {error}");
        assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{at}: {error}");
        refused += 1;
    }
    assert!(refused > 50, "{refused}");
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn nothing_of_arguments_answers_and_states_is_in_the_log() {
    let home = Home::new();
    let devices = ["--devices", "device-canary-one,device-canary-two"];
    let mut gateway = start(&home, &devices, &[("HANDRAISE_LOG", "info")]);
    let tap = |id: u64, more: &Value| {
        let mut params = json!({"name": "tapOn", "arguments": {"text": "argument-canary"}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        modern(id, &params)
    };
    gateway.send(&tap(1, &json!({})));
    let state = gateway.receive()["result"]["requestState"].as_str().unwrap().to_owned();
    let content = json!({"deviceId": "device-canary-two", "x": "answer-canary"});
    let retry = |state: &str| {
        let answer = json!({"action": "accept", "content": content});
        json!({"requestState": state, "inputResponses": {"deviceChoice": answer}})
    };
    // Tampered with, good, and spent.
    for (id, state) in [(2, format!("{state}canary")), (3, state.clone()), (4, state.clone())] {
        gateway.send(&tap(id, &retry(&state)));
        assert_eq!(gateway.receive()["error"].is_object(), id != 3);
    }
    gateway.outcomes(4);
    let log = gateway.log.text();
    assert!(!log.contains("canary") && !log.contains(&state), "{log}");
}

#[test]
fn s22_a_state_about_another_upstream_is_refused_although_the_key_is_the_same() {
    let secret = [("HANDRAISE_STATE_SECRET", "0123456789abcdef0123456789abcdef")];
    let home = Home::new();
    let state = modern_ask(&mut start(&home, &[], &secret), 1);
    let mut other = start(&home, &["--era", "dual"], &secret);
    other.send(&retry(2, &state, &accept(SECOND)));
    let answer = other.receive();
    assert_eq!(answer["error"]["data"]["reason"], "invalid_request_state", "{answer}");
    assert_eq!(other.count("tapOn"), 1);
}

#[test]
fn a_state_survives_a_restart_with_the_same_secret_and_a_rotated_one() {
    let secret = "0123456789abcdef0123456789abcdef";
    let rotated = format!("fedcba9876543210fedcba9876543210,{secret}");
    let home = Home::new();
    let mut gateway = start(&home, &[], &[("HANDRAISE_STATE_SECRET", secret)]);
    let state = modern_ask(&mut gateway, 1);
    drop(gateway);
    let mut gateway = start(&home, &[], &[("HANDRAISE_STATE_SECRET", &rotated)]);
    gateway.send(&retry(2, &state, &accept(SECOND)));
    let answer = gateway.receive();
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{answer}");
    drop(gateway);
    let mut gateway = start(&home, &[], &[]);
    gateway.send(&retry(3, &state, &accept(SECOND)));
    let error = gateway.receive();
    assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
    assert_ran_on(&gateway, SECOND);
}

#[test]
fn a_state_of_the_servers_own_goes_through_untouched() {
    let home = Home::new();
    let mut gateway = start(&home, &[], &[]);
    gateway.send(&modern(1, &json!({"name": "ask", "arguments": {}})));
    let asked = gateway.receive();
    assert_eq!(asked["result"]["requestState"], "fake-server state", "{asked}");
    gateway.send(&modern(
        2,
        &json!({"name": "ask", "arguments": {}, "requestState": "fake-server state",
        "inputResponses": {"colour": {"action": "accept", "content": {"colour": "blue"}}}}),
    ));
    let answer = gateway.receive();
    assert_eq!(
        answer["result"]["content"][0]["text"], "{\"action\":\"accept\",\"content\":{\"colour\":\"blue\"}}",
        "{answer}"
    );
}

/// It would run the call and not look at the state.
#[test]
fn a_foreign_state_runs_nothing_before_a_server_that_knows_no_discovery() {
    let home = Home::new();
    let mut gateway = start(&home, &["--era", "legacy"], &[]);
    let mut discover = modern(1, &json!({}));
    discover["method"] = json!("server/discover");
    gateway.send(&discover);
    assert_eq!(gateway.receive()["error"]["code"], -32601);
    gateway.send(&retry(2, "theirs", &accept(SECOND)));
    let error = gateway.receive();
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(-32602)), "{error}");
    assert_eq!(error["error"]["data"]["reason"], "invalid_request_state", "{error}");
    assert_eq!(gateway.outcomes(1), ["invalid"]);
    assert_eq!(gateway.count("tapOn"), 0);
}

#[test]
fn the_chosen_device_has_vanished_and_one_remains_nothing_runs_on_it() {
    for is_modern in [false, true] {
        let home = Home::new();
        let mut gateway = if is_modern { start(&home, &[], &[]) } else { session(&home, &[], &[]) };
        let asked = if is_modern { json!(modern_ask(&mut gateway, 1)) } else { ask(&mut gateway, &json!(1)) };
        if is_modern {
            gateway.send(&modern(9, &json!({"name": "unplug", "arguments": {"deviceId": SECOND}})));
            assert_eq!(gateway.receive()["id"], 9);
            gateway.send(&retry(2, asked.as_str().unwrap(), &accept(SECOND)));
        } else {
            gateway.answer(&json!("unplug"), "unplug", &json!({"deviceId": SECOND}));
            respond(&mut gateway, &asked, &accept(SECOND));
        }
        let answer = gateway.receive();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("device_not_found"), "{answer}");
        assert_ran_on(&gateway, SECOND);
    }
}
