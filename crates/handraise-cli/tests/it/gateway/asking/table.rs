//! Seed 000, row by row, with real processes on every way, and what follows from it beside the rows: nothing is asked twice.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Gateway, PRINCIPAL, accept, ask,
    modern::{modern, modern_ask, modern_tap, retry},
    refusal, respond, session, start, tap,
};
use crate::support::{
    Home, aged,
    scenarios::{self, Reply, Scenario, scenarios},
    send, wait_for,
};

/// The devices of the table.
const SERVER: [&str; 2] = ["--devices", "emulator-5554,A1B2"];
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The latest record, of so many: its outcome and the words beside it.
#[track_caller]
fn recorded(gateway: &Gateway, count: usize) -> String {
    assert_eq!(gateway.outcomes(count).len(), count);
    let record = gateway.records().pop().unwrap();
    let words = ["outcome", "provenance", "reason"].map(|word| record[word].as_str());
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What a call is answered that ran with a device.
#[track_caller]
fn assert_tapped(answer: &Value, id: &Value, device: &str) {
    let text = &answer["result"]["content"][0]["text"];
    assert_eq!((&answer["id"], text), (id, &json!(format!("tapped \"OK\" on {device}"))), "{answer}");
}

/// The refusal as a modern call is answered that is not asked about, byte for byte.
fn modern_refusal(id: u64) -> Vec<u8> {
    let home = Home::new();
    let mut gateway = start(&home, &SERVER, &[("HANDRAISE_ELICITATION", "off")]);
    gateway.send(&modern_tap(id, &json!({})));
    gateway.line()
}

#[test]
fn seed_000_every_row_in_a_session() {
    let refusal = refusal(&SERVER, &tap(&json!(1)));
    for Scenario { name, reply, runs_with, record, .. } in scenarios() {
        let home = Home::new();
        let is_late = matches!(reply, Reply::Late);
        let timeout = if is_late { "300" } else { "3600000" };
        let mut gateway = session(&home, &SERVER, &[("HANDRAISE_ASK_TIMEOUT_MS", timeout)]);
        let question = ask(&mut gateway, &json!(1));
        let id = &question["id"];
        match &reply {
            Reply::Result(result) => {
                gateway
                    .write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes());
            }
            Reply::Failed => {
                let error = json!({"code": -1, "message": "no"});
                gateway.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            Reply::Late => {}
            Reply::Cancelled => {
                let params = json!({"requestId": 1});
                gateway
                    .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
            }
        }
        if matches!(reply, Reply::Late | Reply::Cancelled) {
            let withdrawn = gateway.receive();
            assert_eq!(withdrawn["method"], "notifications/cancelled", "{name}: {withdrawn}");
            assert_eq!(&withdrawn["params"]["requestId"], id, "{name}");
        }
        match runs_with {
            Some(device) => assert_tapped(&gateway.receive(), &json!(1), device),
            None if matches!(reply, Reply::Cancelled) => {}
            None => assert_eq!(gateway.line(), refusal, "{name}: byte for byte"),
        }
        // Whatever comes for it now comes too late, and a call that was cancelled has no answer before this one's.
        respond(&mut gateway, &question, &accept("A1B2"));
        gateway.answer(&json!(2), "echo", &json!({}));
        assert_eq!(gateway.count("tapOn"), 1 + usize::from(runs_with.is_some()), "{name}");
        assert_eq!(recorded(&gateway, 1), record, "{name}");
    }
}

#[test]
fn seed_000_every_row_in_the_modern_era() {
    let refusal = modern_refusal(2);
    let secret = [("HANDRAISE_STATE_SECRET", SECRET)];
    for Scenario { name, reply, runs_with, record, modern_record, .. } in scenarios() {
        let home = Home::new();
        let mut gateway = start(&home, &SERVER, &secret);
        let mut state = modern_ask(&mut gateway, 1);
        let answer = match reply {
            Reply::Result(result) => result,
            Reply::Failed => "{}".to_owned(),
            Reply::Late => {
                state = aged(&state, SECRET, PRINCIPAL, Duration::from_mins(10));
                scenarios::accept("A1B2")
            }
            // The call is over, and what is over is not cancelled.
            Reply::Cancelled => continue,
        };
        let is_failed = answer == "{}" && modern_record.is_some();
        let with_answer = retry(2, &state, &json!("ANSWER")).to_string().replace("\"ANSWER\"", &answer);
        let without = modern_tap(2, &json!({ "requestState": state })).to_string();
        gateway.write((if is_failed { without } else { with_answer } + "\n").as_bytes());
        let record = modern_record.unwrap_or(record);
        if record.ends_with("state-expired") {
            let error = gateway.receive();
            assert_eq!((&error["id"], &error["error"]["code"]), (&json!(2), &json!(-32602)), "{error}");
            assert_eq!(error["error"]["message"], "Invalid or expired requestState");
            assert_eq!(error["error"]["data"], json!({"reason": "invalid_request_state"}));
        } else if let Some(device) = runs_with {
            assert_tapped(&gateway.receive(), &json!(2), device);
        } else {
            assert_eq!(gateway.line(), refusal, "{name}: byte for byte");
        }
        assert_eq!(gateway.count("tapOn"), 1 + usize::from(runs_with.is_some()), "{name}");
        assert_eq!(recorded(&gateway, 2), record, "{name}");
    }
}

#[test]
fn a_state_is_good_for_as_long_as_it_says() {
    let home = Home::new();
    let mut gateway = start(&home, &SERVER, &[("HANDRAISE_STATE_SECRET", SECRET)]);
    let state = modern_ask(&mut gateway, 1);
    let younger = aged(&state, SECRET, PRINCIPAL, Duration::from_mins(9));
    gateway.send(&retry(2, &younger, &accept("A1B2")));
    assert_tapped(&gateway.receive(), &json!(2), "A1B2");
}

#[test]
fn a_state_of_another_tool_or_other_arguments_gives_the_original_and_runs_nothing() {
    let refusal = modern_refusal(2);
    let home = Home::new();
    let mut gateway = start(&home, &SERVER, &[]);
    let state = modern_ask(&mut gateway, 1);
    let call = |tool: &str, arguments: Value| {
        let responses = json!({"deviceChoice": accept("A1B2")});
        modern(
            2,
            &json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": responses}),
        )
    };
    let mut records = 1;
    for (tool, arguments) in [
        ("swipe", json!({"text": "OK", "x": 1})),
        ("tapOn", json!({"text": "OK", "x": 2})),
        ("tapOn", json!({"text": "OK", "x": 1, "y": null})),
        ("tapOn", json!({"text": "OK"})),
        ("tapOn", json!({})),
    ] {
        gateway.send(&call(tool, arguments.clone()));
        assert_eq!(gateway.line(), refusal, "{tool} {arguments}");
        records += 1;
        assert_eq!(recorded(&gateway, records), "invalid client other-call", "{tool} {arguments}");
    }
    assert_eq!((gateway.count("tapOn"), gateway.count("swipe")), (1, 0));
    // In another order it is the same call; and nothing was spent.
    gateway.send(&call("tapOn", json!({"x": 1, "text": "OK"})));
    assert_tapped(&gateway.receive(), &json!(2), "A1B2");
}

/// The argument of this rule is one that the server does not read: the call that runs again is refused again.
#[test]
fn seed_000_what_runs_again_never_asks() {
    let rule = "[[refusal]]\nname = 'ambiguous_device_target'\ncode = 'ambiguous_device_target'\ncode_at = ['/code']\n\
                candidates_at = ['/candidates']\nvalue = '/deviceId'\ntitle = '{deviceId}'\nargument = 'target'\n\
                message = 'Which?'\n";
    let content = json!({"action": "accept", "content": {"target": "A1B2"}});
    let home = Home::new();
    home.write_config(rule);
    let mut gateway = session(&home, &SERVER, &[]);
    let question = ask(&mut gateway, &json!(1));
    respond(&mut gateway, &question, &content);
    assert_eq!(gateway.line(), refusal(&SERVER, &tap(&json!(1))));
    assert_eq!((gateway.count("tapOn"), recorded(&gateway, 1)), (2, "accept client".to_owned()));
    drop(gateway);
    let home = Home::new();
    home.write_config(rule);
    let mut gateway = start(&home, &SERVER, &[]);
    gateway.send(&modern_tap(1, &json!({})));
    let state = gateway.receive()["result"]["requestState"].clone();
    let responses = json!({ "targetChoice": content });
    gateway.send(&modern_tap(2, &json!({"requestState": state, "inputResponses": responses})));
    assert_eq!(gateway.line(), modern_refusal(2));
    assert_eq!((gateway.count("tapOn"), recorded(&gateway, 2)), (2, "accept client".to_owned()));
}

#[test]
fn the_modern_era_remembers_no_decline_and_reads_the_switch_for_every_request() {
    let refusal = modern_refusal(2);
    let home = Home::new();
    let mut gateway = start(&home, &SERVER, &[]);
    for _ in 0..2 {
        let state = modern_ask(&mut gateway, 1);
        gateway.send(&retry(2, &state, &json!({"action": "decline"})));
        assert_eq!(gateway.line(), refusal);
    }
    assert_eq!(gateway.outcomes(4), ["asked", "decline", "asked", "decline"]);
    // Switched off between a question and its answer.
    let state = modern_ask(&mut gateway, 1);
    home.write_config("elicitation = 'off'\n");
    send(gateway.child.id(), rustix::process::Signal::HUP);
    wait_for("the new setting", || gateway.log.text().contains("elicitation=\"off\"").then_some(()));
    gateway.send(&retry(2, &state, &accept("A1B2")));
    assert_eq!(gateway.line(), refusal);
    gateway.send(&modern_tap(2, &json!({})));
    assert_eq!(gateway.line(), refusal);
    assert_eq!(gateway.outcomes(7)[4..], ["asked", "disabled", "disabled"]);
    assert_eq!(gateway.count("tapOn"), 4);
}
