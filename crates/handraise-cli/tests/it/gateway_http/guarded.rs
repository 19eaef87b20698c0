//! Guarded calls over HTTP: what is not of this caller, session and call confirms nothing. The server's own count of calls
//! is the witness of what ran.

use serde_json::{Value, json};

use super::{
    confirming::{GUARDED, SECRET, said, tap},
    walls::callers,
};
use crate::support::{Connection, Front, FrontSetup, Home, modern};

const ADA: (&str, &str) = ("Authorization", "Bearer ada");
const BOB: (&str, &str) = ("Authorization", "Bearer bob");

/// Guarded, with two callers. No answer is too fast.
fn start(home: &Home) -> Front {
    home.write_config(&format!("{GUARDED}{}", callers(&[("ada", "ada"), ("bob", "bob")])));
    let variables = [SECRET, ("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];
    Front::start_with(home, &FrontSetup { variables: &variables, ..FrontSetup::default() })
}

fn confirmed() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

fn legacy(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "tapOn", "arguments": tap()}})
}

/// Posts a modern call of `tapOn`.
fn call(front: &Front, id: &Value, more: &Value, own: &[(&str, &str)]) -> Connection {
    let mut params = json!({"name": "tapOn", "arguments": tap()});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (frame, headers) = modern(id, "tools/call", &params);
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.extend(own);
    front.post(&headers, &frame)
}

#[test]
fn s6_a_form_is_on_the_stream_of_its_call_and_only_its_session_answers_it() {
    let home = Home::new();
    let front = start(&home);
    let capabilities = json!({"elicitation": {"form": {}}});
    let session = front.initialize("2025-11-25", &capabilities, &[ADA]);
    let second = front.initialize("2025-11-25", &capabilities, &[ADA]);
    let foreign = front.initialize("2025-11-25", &capabilities, &[BOB]);
    let of = |session| ("Mcp-Session-Id", session);
    let mut stream = front.post(&[ADA, of(&*session)], &legacy(&json!(1)));
    stream.stream();
    let question = stream.event().unwrap().frame();
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("ada (calls itself \"tests\") asks to: Tap\n"), "{message}");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": confirmed()});
    for (headers, status) in
        [([BOB, of(&*foreign)], 202), ([ADA, of(&*second)], 202), ([BOB, of(&*session)], 404)]
    {
        assert_eq!(front.post(&headers, &answer).head().status, status);
    }
    // Neither does a second call under its id.
    assert_ne!(front.post(&[ADA, of(&*session)], &legacy(&json!(1))).head().status, 200);
    assert_eq!(front.count("tapOn"), 0);
    // Twice is once.
    for _ in 0..2 {
        assert_eq!(front.post(&[ADA, of(&*session)], &answer).head().status, 202);
    }
    let end = stream.event().unwrap().frame();
    assert_eq!((&end["id"], said(&end)), (&json!(1), json!("tapped \"OK\" on emulator-5554")));
    assert_eq!((front.count("tapOn"), stream.event()), (1, None));
}

#[test]
fn s10_a_state_of_another_caller_or_session_confirms_nothing() {
    let home = Home::new();
    let front = start(&home);
    let (_, question) = call(&front, &json!(1), &json!({}), &[ADA]).answer();
    let retry = json!({
        "requestState": question["result"]["requestState"], "inputResponses": {"confirmation": confirmed()},
    });
    for headers in [&[BOB][..], &[ADA, ("Mcp-Session-Id", "made up")]] {
        let (_, refused) = call(&front, &json!(1), &retry, headers).answer();
        assert_eq!(refused["error"]["data"]["reason"], "invalid_request_state", "{refused}");
    }
    // Nor does it in a session of the other era.
    let session = front.initialize("2025-11-25", &json!({"elicitation": {}}), &[ADA]);
    let mut pushed = legacy(&json!(1));
    pushed["params"].as_object_mut().unwrap().extend(retry.as_object().unwrap().clone());
    let (_, refused) = front.post(&[ADA, ("Mcp-Session-Id", &session)], &pushed).answer();
    assert_eq!(refused["error"]["data"]["reason"], "invalid_request_state", "{refused}");
    assert_eq!(front.count("tapOn"), 0);
    // Two under one id at the same time: one of them runs.
    let mut both = [0, 1].map(|_| call(&front, &json!(1), &retry, &[ADA]));
    let mut ends: Vec<_> = both.iter_mut().map(|call| said(&call.answer().1)).collect();
    ends.sort_by_key(Value::is_object);
    assert_eq!(ends[0], "tapped \"OK\" on emulator-5554");
    assert_eq!((&ends[1]["error"], front.count("tapOn")), (&json!("TOKEN_REUSED"), 1));
}

#[test]
fn calls_that_nobody_can_answer_do_not_slip_through() {
    let home = Home::new();
    let front = start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[ADA]);
    let in_session = [ADA, ("Mcp-Session-Id", &*session)];
    let mut without = legacy(&json!(null));
    assert_eq!(front.post(&in_session, &without).head().status, 400);
    without.as_object_mut().unwrap().remove("id");
    assert_eq!(front.post(&in_session, &without).head().status, 202);
    assert_eq!(front.post(&in_session, &json!([legacy(&json!(1))])).head().status, 400);
    let mut nameless = legacy(&json!(2));
    nameless["params"]["name"] = json!(["tapOn"]);
    assert_eq!(front.post(&in_session, &nameless).answer().1["error"]["code"], -32602);
    let (mut frame, headers) =
        modern(&json!(null), "tools/call", &json!({"name": "TAPon", "arguments": tap()}));
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(ADA);
    assert_eq!(front.post(&headers, &frame).head().status, 400);
    frame.as_object_mut().unwrap().remove("id");
    assert_eq!(front.post(&headers, &frame).head().status, 202);
    // One after the other: what was sent before has been dealt with.
    let echo = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}}});
    assert_eq!(said(&front.post(&in_session, &echo).answer().1), "x");
    let (frame, headers) = modern(&json!(3), "tools/call", &echo["params"]);
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(ADA);
    assert_eq!(said(&front.post(&headers, &frame).answer().1), "x");
    let received = String::from_utf8(front.received()).unwrap();
    assert!(!received.to_lowercase().contains("tapon"), "{received}");
}

#[test]
fn a_token_runs_what_it_was_given_for_and_only_where_no_form_can_be_shown() {
    let home = Home::new();
    let front = start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[ADA]);
    let in_session = [ADA, ("Mcp-Session-Id", &*session)];
    let first = said(&front.post(&in_session, &legacy(&json!(1))).answer().1);
    let token = first["confirmToken"].as_str().unwrap();
    assert_eq!(first["preview"]["caller"], "ada (calls itself \"tests\")");
    let mut nested = legacy(&json!(2));
    nested["params"]["arguments"]["more"] = json!({"confirmToken": token});
    assert_eq!(said(&front.post(&in_session, &nested).answer().1)["status"], "confirmation-required");
    let mut odd = legacy(&json!(3));
    odd["params"]["arguments"]["confirmToken"] = json!([token]);
    assert_eq!(said(&front.post(&in_session, &odd).answer().1)["error"], "TOKEN_INVALID");
    // A client that shows forms is asked, whatever it brings.
    let arguments = json!({"text": "OK", "deviceId": "emulator-5554", "confirmToken": token});
    let (_, asked) = call(&front, &json!(4), &json!({"arguments": arguments}), &[ADA]).answer();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(front.count("tapOn"), 0);
    let mut good = legacy(&json!(5));
    good["params"]["arguments"] = arguments;
    assert_eq!(said(&front.post(&in_session, &good).answer().1), "tapped \"OK\" on emulator-5554");
    assert_eq!(front.count("tapOn"), 1);
}
