//! A refusal becomes a question, in both eras; the server's own count of calls is the witness. The module stands in
//! several places, once for each way in which the server, or the gateway, is reached.

// By its path, for the module that is found by one, too.
#[path = "asking/modern.rs"]
pub(super) mod modern;
#[path = "asking/table.rs"]
mod table;

use serde_json::{Value, json};

use super::{Gateway, PAIR, PRINCIPAL};
use crate::support::{Home, Setup, wait_for};

const FIRST: &str = "emulator-5554";
pub(super) const SECOND: &str = "A1B2-C3D4";

/// No answer here is too fast to be a human's.
pub(super) const UNHURRIED: [(&str, &str); 1] = [("HANDRAISE_ASK_MIN_HUMAN_MS", "0")];

fn start(home: &Home, server: &[&str], variables: &[(&str, &str)]) -> Gateway {
    let variables = [&UNHURRIED[..], variables].concat();
    Gateway::start_over(PAIR, home, &Setup { server, variables: &variables, before: &[] })
}

/// A session of a client that can be asked.
pub(super) fn session(home: &Home, server: &[&str], variables: &[(&str, &str)]) -> Gateway {
    let mut gateway = start(home, server, variables);
    gateway.initialize("2025-11-25", &json!({"elicitation": {"form": {}}}));
    gateway
}

/// The refusal as the server itself answers it, byte for byte, to a client that cannot be asked.
pub(super) fn refusal(server: &[&str], call: &Value) -> Vec<u8> {
    let home = Home::new();
    let mut gateway = start(&home, server, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    gateway.send(call);
    gateway.line()
}

pub(super) fn tap(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "tapOn", "arguments": {"text": "OK", "x": 1}}})
}

pub(super) fn respond(gateway: &mut Gateway, question: &Value, result: &Value) {
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
}

pub(super) fn accept(device: &str) -> Value {
    json!({"action": "accept", "content": {"deviceId": device}})
}

/// The question that a call becomes.
#[track_caller]
pub(super) fn ask(gateway: &mut Gateway, id: &Value) -> Value {
    gateway.send(&tap(id));
    let question = gateway.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

#[track_caller]
fn assert_ran_on(gateway: &Gateway, device: &str) {
    let taps: Vec<Value> = gateway.calls().into_iter().filter(|call| call["tool"] == "tapOn").collect();
    assert_eq!(taps.len(), 2, "{taps:?}");
    assert_eq!(taps[1]["arguments"]["deviceId"], device);
    assert_eq!((&taps[1]["arguments"]["text"], &taps[1]["arguments"]["x"]), (&json!("OK"), &json!(1)));
}

#[test]
fn an_accepted_question_runs_the_call_once_more() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    let schema = &question["params"]["requestedSchema"]["properties"]["deviceId"];
    assert_eq!(schema["oneOf"][1], json!({"const": SECOND, "title": "A1B2-C3D4 (ios)"}), "{question}");
    respond(&mut gateway, &question, &accept(SECOND));
    let answer = gateway.receive();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4");
    assert_ran_on(&gateway, SECOND);
    assert_eq!(gateway.outcomes(1), ["accept"]);
    let record = &gateway.records()[0];
    assert_eq!(
        (&record["declared"], &record["era"], &record["rail"], &record["tool"], &record["client"]),
        (&json!("form"), &json!("push"), &json!("form"), &json!("tapOn"), &json!("tests"))
    );
    gateway.close();
    assert_eq!(gateway.wait(), Some(0));
}

#[test]
fn everything_but_an_acceptance_gives_the_original_bytes_and_runs_nothing() {
    let expected = refusal(&[], &tap(&json!(1)));
    for (answer, outcome) in [
        (json!({"result": {"action": "decline"}}), "decline"),
        (json!({"result": {"action": "cancel"}}), "cancel"),
        (json!({"result": accept("not-offered")}), "invalid"),
        (json!({"result": {"action": "accept", "content": {}}}), "invalid"),
        (json!({"result": {"action": "accept", "content": {"deviceId": 1}}}), "invalid"),
        (json!({"result": null}), "invalid"),
        (json!({"error": {"code": -32603, "message": "no"}}), "error"),
    ] {
        let home = Home::new();
        let mut gateway = session(&home, &[], &[]);
        let question = ask(&mut gateway, &json!(1));
        let mut response = json!({"jsonrpc": "2.0", "id": question["id"]});
        response.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        gateway.send(&response);
        assert_eq!(gateway.line(), expected, "{response}");
        assert_eq!(gateway.count("tapOn"), 1, "{response}");
        assert_eq!(gateway.outcomes(1), [outcome], "{response}");
    }
}

#[test]
fn s3_an_answer_that_cannot_be_read_is_invalid_at_once() {
    let expected = refusal(&[], &tap(&json!(1)));
    let long = format!(r#"{{"jsonrpc":"2.0","id":ASK,"result":{{"action":"{}"}}}}"#, "x".repeat(70_000));
    for answer in [
        r#"{"jsonrpc":"2.0","id":ASK,"result":{"action":"decline"},"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"result":{},"result":{"action":"decline"}}"#,
        r#"{"jsonrpc":"2.0","id":ASK,"result":{"action":"#,
        r#"{"jsonrpc":"2.0","id":ASK}"#,
        &long,
    ] {
        let home = Home::new();
        // Longer than this test may take.
        let patient = [("HANDRAISE_ASK_TIMEOUT_MS", "3600000"), ("HANDRAISE_MCP__MAX_FRAME_BYTES", "65536")];
        let mut gateway = session(&home, &[], &patient);
        let question = ask(&mut gateway, &json!(1));
        gateway.write(answer.replace("ASK", &question["id"].to_string()).as_bytes());
        gateway.write(b"\n");
        assert_eq!(gateway.line(), expected, "{answer}");
        assert_eq!(gateway.outcomes(1), ["invalid"], "{answer}");
        // Nobody answers an answer.
        assert_eq!(gateway.answer(&json!(2), "echo", &json!({}))["id"], 2);
        assert_eq!(gateway.count("tapOn"), 1, "{answer}");
        assert!(!String::from_utf8_lossy(&gateway.received()).contains("hr-ask"), "{answer}");
    }
}

#[test]
fn a_question_that_nobody_answers_is_withdrawn_and_the_refusal_goes_through() {
    let expected = refusal(&[], &tap(&json!(1)));
    let home = Home::new();
    let mut gateway = session(&home, &[], &[("HANDRAISE_ASK_TIMEOUT_MS", "300")]);
    let question = ask(&mut gateway, &json!(1));
    let cancelled = gateway.receive();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(gateway.line(), expected);
    // Late.
    respond(&mut gateway, &question, &accept(SECOND));
    assert_eq!(
        gateway.answer(&json!(2), "echo", &json!({"text": "on"}))["result"]["content"][0]["text"],
        "on"
    );
    assert_eq!(gateway.count("tapOn"), 1);
    assert_eq!(gateway.outcomes(1), ["timeout"]);
}

#[test]
fn every_shape_of_a_refusal_is_asked_about_and_what_offers_no_choice_is_not() {
    for shape in ["flat", "nested", "failure", "devices", "structured", "meta", "escaped", "wide"] {
        let home = Home::new();
        let mut gateway = session(&home, &["--shape", shape], &[]);
        let question = ask(&mut gateway, &json!(1));
        respond(&mut gateway, &question, &accept(FIRST));
        assert_eq!(
            gateway.receive()["result"]["content"][0]["text"],
            "tapped \"OK\" on emulator-5554",
            "{shape}"
        );
        assert_ran_on(&gateway, FIRST);
    }
    for shape in ["single", "duplicate", "none", "broken"] {
        let home = Home::new();
        let mut gateway = session(&home, &["--shape", shape], &[]);
        gateway.send(&tap(&json!(1)));
        assert_eq!(gateway.line(), refusal(&["--shape", shape], &tap(&json!(1))), "{shape}");
        assert_eq!(gateway.count("tapOn"), 1);
    }
}

#[test]
fn a_client_of_2025_06_18_gets_the_shape_that_it_knows() {
    let home = Home::new();
    let mut gateway = start(&home, &[], &[]);
    gateway.initialize("2025-06-18", &json!({"elicitation": {}}));
    let question = ask(&mut gateway, &json!(1));
    assert!(question["params"].get("mode").is_none(), "{question}");
    let device = &question["params"]["requestedSchema"]["properties"]["deviceId"];
    assert_eq!(device["enum"], json!([FIRST, SECOND]));
    assert_eq!(device["enumNames"], json!(["emulator-5554 (android)", "A1B2-C3D4 (ios)"]));
}

#[test]
fn a_client_that_cannot_be_asked_gets_the_refusal_and_is_recorded() {
    for (capabilities, declared) in [
        (json!({}), "none"),
        (json!({"elicitation": null}), "none"),
        (json!({"elicitation": {"url": {}}}), "url"),
    ] {
        let home = Home::new();
        let mut gateway = start(&home, &[], &[]);
        gateway.initialize("2025-11-25", &capabilities);
        gateway.send(&tap(&json!(1)));
        assert_eq!(gateway.line(), refusal(&[], &tap(&json!(1))));
        assert_eq!(gateway.outcomes(1), ["not_offered"]);
        assert_eq!(gateway.records()[0]["declared"], declared);
    }
}

#[test]
fn what_was_declined_is_not_asked_again_on_this_connection() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    respond(&mut gateway, &question, &json!({"action": "decline"}));
    gateway.line();
    gateway.send(&tap(&json!(2)));
    assert_eq!(gateway.line(), refusal(&[], &tap(&json!(2))));
    assert_eq!(gateway.outcomes(2), ["decline", "remembered"]);
    // Too fast for a human: shown to nobody, and so not remembered.
    let home = Home::new();
    let hurried = [("HANDRAISE_ASK_MIN_HUMAN_MS", "60000")];
    let mut gateway = session(&home, &[], &hurried);
    for id in 1..=2 {
        let question = ask(&mut gateway, &json!(id));
        respond(&mut gateway, &question, &json!({"action": "decline"}));
        gateway.line();
    }
    gateway.outcomes(2);
    assert!(gateway.records().iter().all(|record| record["provenance"] == "not_shown"));
}

#[test]
fn a_call_that_is_cancelled_while_it_asks_gets_no_answer_and_runs_nothing() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let cancelled = gateway.receive();
    assert_eq!(cancelled["params"]["requestId"], question["id"], "{cancelled}");
    respond(&mut gateway, &question, &accept(SECOND));
    gateway.answer(&json!(2), "echo", &json!({}));
    assert_eq!(gateway.count("tapOn"), 1);
    // Too late for what is over: a client sends one after every success.
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}));
    gateway.answer(&json!(3), "echo", &json!({}));
}

#[test]
fn a_cancel_reaches_the_call_and_the_call_that_runs_again() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let cancel =
        |id: u64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    let cancelled =
        |gateway: &Gateway| gateway.calls().iter().filter(|call| call["cancelled"] == "swipe").count();
    gateway.call(&json!(1), "swipe", &json!({"steps": 100, "pauseMs": 20}));
    wait_for("the call", || (gateway.count("swipe") == 1).then_some(()));
    gateway.send(&cancel(1));
    wait_for("its cancel", || (cancelled(&gateway) == 1).then_some(()));
    // The second time: refused, asked, answered, and cancelled while it runs again.
    gateway.call(&json!(2), "swipe", &json!({"steps": 8, "pauseMs": 20}));
    let question = gateway.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    respond(&mut gateway, &question, &accept(SECOND));
    wait_for("the call that runs again", || (gateway.count("swipe") == 3).then_some(()));
    gateway.send(&cancel(2));
    wait_for("its cancel", || (cancelled(&gateway) == 2).then_some(()));
    assert_eq!(
        gateway.answer(&json!(3), "echo", &json!({"text": "on"}))["result"]["content"][0]["text"],
        "on"
    );
}

#[test]
fn progress_goes_on_under_the_clients_token_and_never_back() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    gateway.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "swipe", "arguments": {"steps": 4, "pauseMs": 5}, "_meta": {"progressToken": "mine"}}}));
    let mut last = 0.0;
    loop {
        let frame = gateway.receive();
        if frame["method"] == "elicitation/create" {
            respond(&mut gateway, &frame, &accept(FIRST));
        } else if frame["method"] == "notifications/progress" {
            assert_eq!(frame["params"]["progressToken"], "mine");
            let progress = frame["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{progress} after {last}");
            last = progress;
        } else {
            assert_eq!(frame["result"]["content"][0]["text"], "swiped on emulator-5554", "{frame}");
            break;
        }
    }
}

#[test]
fn the_end_of_the_clients_input_withdraws_the_question() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    gateway.close();
    let rest = String::from_utf8(gateway.rest()).unwrap();
    assert!(
        rest.contains("notifications/cancelled") && rest.contains(question["id"].as_str().unwrap()),
        "{rest}"
    );
    assert_eq!(gateway.wait(), Some(0));
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn s27_a_servers_question_under_an_id_of_ours_is_refused() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    gateway.call(&json!(2), "ask", &json!({"askId": question["id"]}));
    let answer = gateway.receive();
    assert_eq!(answer["id"], 2, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("-32600"), "{answer}");
    respond(&mut gateway, &question, &accept(FIRST));
    assert_eq!(gateway.receive()["id"], 1);
    assert_ran_on(&gateway, FIRST);
}

#[test]
fn the_switch_is_read_for_each_call_and_moved_by_sighup() {
    for name in ["HANDRAISE_ELICITATION", "AUTOMOBILE_ELICITATION"] {
        let home = Home::new();
        let mut gateway = session(&home, &[], &[(name, "off")]);
        gateway.send(&tap(&json!(1)));
        assert_eq!(gateway.line(), refusal(&[], &tap(&json!(1))), "{name}");
        assert_eq!(gateway.outcomes(1), ["disabled"]);
    }
    let home = Home::new();
    home.write_config("elicitation = 'off'\n");
    let mut gateway = session(&home, &[], &[]);
    gateway.send(&tap(&json!(1)));
    gateway.line();
    home.write_config("elicitation = 'on'\n");
    crate::support::send(gateway.child.id(), rustix::process::Signal::HUP);
    wait_for("the new setting", || gateway.log.text().contains("elicitation=\"on\"").then_some(()));
    let question = ask(&mut gateway, &json!(2));
    respond(&mut gateway, &question, &accept(FIRST));
    assert_eq!(gateway.receive()["id"], 2);
    assert_eq!(gateway.outcomes(2), ["disabled", "accept"]);
}

#[test]
fn a_refusal_of_the_config_file_becomes_a_question_and_the_built_in_one_can_be_off() {
    let home = Home::new();
    home.write_config(
        "[[refusal]]\nname = 'ambiguous_device_target'\nenabled = false\n\
         [[refusal]]\nname = 'mine'\ncode = 'ambiguous_device_target'\ncode_at = ['/code']\n\
         candidates_at = ['/candidates']\nvalue = '/deviceId'\ntitle = 'on {deviceId}'\nargument = 'deviceId'\n\
         message = 'Where should {tool} run?'\n",
    );
    let mut gateway = session(&home, &[], &[]);
    let question = ask(&mut gateway, &json!(1));
    assert_eq!(question["params"]["message"], "Where should tapOn run?");
    respond(&mut gateway, &question, &accept(FIRST));
    gateway.receive();
    gateway.outcomes(1);
    assert_eq!(gateway.records()[0]["refusal"], "mine");
}

#[test]
fn a_refusal_with_more_candidates_than_a_question_holds_goes_through_and_is_recorded() {
    let devices = |count: usize| (0..count).map(|at| format!("d{at}")).collect::<Vec<_>>().join(",");
    let home = Home::new();
    let mut gateway = session(&home, &["--devices", &devices(1_000)], &[]);
    let question = ask(&mut gateway, &json!(1));
    let offered = &question["params"]["requestedSchema"]["properties"]["deviceId"]["oneOf"];
    assert_eq!(offered.as_array().map(Vec::len), Some(1_000));
    let home = Home::new();
    let too_many = devices(1_001);
    let server = ["--devices", &too_many];
    let mut gateway = session(&home, &server, &[]);
    gateway.send(&tap(&json!(1)));
    assert_eq!(gateway.line(), refusal(&server, &tap(&json!(1))));
    assert_eq!(gateway.outcomes(1), ["not_offered"]);
    assert_eq!(gateway.records()[0]["reason"], "too-many-candidates");
}

#[test]
fn nothing_of_arguments_and_answers_is_in_the_log() {
    let home = Home::new();
    let info = [("HANDRAISE_LOG", "info")];
    let devices = "device-canary-one,device-canary-two";
    let mut gateway = session(&home, &["--devices", devices, "--lines", "noise"], &info);
    for action in ["accept", "decline"] {
        gateway.call(&json!(action), "tapOn", &json!({"text": "argument-canary"}));
        let question = gateway.receive();
        let content = json!({"deviceId": "device-canary-two", "x": "answer-canary"});
        respond(&mut gateway, &question, &json!({"action": action, "content": content}));
        gateway.receive();
    }
    gateway.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"argument-canary\",\"name\":1}}\n");
    gateway.receive();
    gateway.write(b"argument-canary, and no frame\n");
    gateway.receive();
    gateway.outcomes(2);
    let log = gateway.log.text();
    assert!(!log.contains("canary"), "{log}");
}
