//! Guarded calls of the scripted server, over each way to the client and to the server: its own count of calls is the
//! witness of what ran.

use serde_json::{Value, json};

use super::{Gateway, PAIR, PRINCIPAL};
use crate::support::{Home, Setup, wait_for};

pub(super) const GUARDED: &str = "[[confirm]]\ntools = ['tapOn', 'un*']\naction = 'Tap'\ntarget = '/deviceId'\n\
     preview = { tool = 'listDevices' }\n";

pub(super) const SECRET: (&str, &str) = ("MCP_CONFIRM_SECRET", "a secret of thirty-two characters");

/// No answer here is too fast to be a human's.
const UNHURRIED: (&str, &str) = ("HANDRAISE_ASK_MIN_HUMAN_MS", "0");

pub(super) fn start(home: &Home, config: &str, variables: &[(&str, &str)]) -> Gateway {
    home.write_config(config);
    let variables = [&[SECRET, UNHURRIED], variables].concat();
    Gateway::start_over(PAIR, home, &Setup { server: &[], variables: &variables, before: &[] })
}

/// A session of the push era.
pub(super) fn session(home: &Home, capabilities: &Value, variables: &[(&str, &str)]) -> Gateway {
    let mut gateway = start(home, GUARDED, variables);
    gateway.initialize("2025-11-25", capabilities);
    gateway
}

pub(super) fn tap() -> Value {
    json!({"text": "OK", "deviceId": "emulator-5554"})
}

pub(super) fn with(token: &str) -> Value {
    json!({"text": "OK", "deviceId": "emulator-5554", "confirmToken": token})
}

pub(super) fn said(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn confirmed() -> Value {
    json!({"action": "accept", "content": {"confirm": true}})
}

/// The first call of the token rail; its token.
#[track_caller]
pub(super) fn token(gateway: &mut Gateway) -> String {
    let answer = gateway.answer(&json!("first"), "tapOn", &tap());
    let said = said(&answer);
    assert_eq!(said["status"], "confirmation-required", "{answer}");
    said["confirmToken"].as_str().unwrap().to_owned()
}

fn modern(id: &Value, arguments: &Value, more: &Value) -> Value {
    let mut params = json!({
        "name": "tapOn", "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        },
    });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

#[test]
fn a_form_runs_a_guarded_call_when_its_box_is_ticked_and_only_then() {
    for (answer, runs) in [
        (confirmed(), 1),
        (json!({"action": "accept", "content": {}}), 0),
        (json!({"action": "accept", "content": {"confirm": "true"}}), 0),
        (json!({"action": "decline"}), 0),
    ] {
        let home = Home::new();
        let mut gateway = session(&home, &json!({"elicitation": {"form": {}}}), &[]);
        gateway.call(&json!(1), "tapOn", &tap());
        let question = gateway.receive();
        let message = question["params"]["message"].as_str().unwrap();
        let caller = format!("{PRINCIPAL} (calls itself \"tests\") asks to: Tap\n");
        assert!(message.starts_with(&caller), "{message}");
        assert!(
            message.contains("\"deviceId\":\"emulator-5554\"") && message.contains("A1B2-C3D4"),
            "{message}"
        );
        gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let end = gateway.receive();
        assert_eq!(end["id"], 1);
        assert_eq!(gateway.count("tapOn"), runs, "{answer}: {end}");
        if runs == 1 {
            assert_eq!(said(&end), "tapped \"OK\" on emulator-5554");
        }
        // What is not guarded is not asked about.
        let echo = gateway.answer(&json!(2), "echo", &json!({"text": "x"}));
        assert_eq!(said(&echo), "x");
        assert_eq!(gateway.outcomes(1).len(), 1);
    }
}

#[test]
fn an_answer_faster_than_a_human_runs_nothing() {
    let home = Home::new();
    let mut gateway = session(&home, &json!({"elicitation": {}}), &[("HANDRAISE_ASK_MIN_HUMAN_MS", "60000")]);
    gateway.call(&json!(1), "tapOn", &tap());
    let question = gateway.receive();
    gateway.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": confirmed()}));
    assert_eq!(said(&gateway.receive())["reason"], "confirmation-not-shown");
    assert_eq!(gateway.count("tapOn"), 0);
    assert_eq!(gateway.outcomes(1), ["accept"]);
    assert_eq!(gateway.records()[0]["provenance"], "not_shown");
}

#[test]
fn a_token_runs_the_same_call_once_in_every_process_that_shares_the_folder() {
    let home = Home::new();
    let mut gateway = session(&home, &json!({}), &[]);
    let token = token(&mut gateway);
    assert_eq!((gateway.count("tapOn"), gateway.count("listDevices")), (0, 1));
    let other = gateway.answer(
        &json!(2),
        "tapOn",
        &json!({"text": "No", "deviceId": "emulator-5554", "confirmToken": token}),
    );
    assert_eq!(said(&other)["error"], "DRAFT_CHANGED");
    let answer = gateway.answer(&json!(3), "tapOn", &with(&token));
    assert_eq!(said(&answer), "tapped \"OK\" on emulator-5554");
    let ran = gateway.calls().into_iter().rfind(|call| call["tool"] == "tapOn").unwrap();
    assert_eq!(ran["arguments"], tap(), "the token goes to nobody");
    assert_eq!(said(&gateway.answer(&json!(4), "tapOn", &with(&token)))["error"], "TOKEN_REUSED");
    // Another process, and the folder.
    let mut replica = session(&home, &json!({}), &[]);
    assert_eq!(said(&replica.answer(&json!(5), "tapOn", &with(&token)))["error"], "TOKEN_REUSED");
    assert_eq!(gateway.count("tapOn"), 1);
    let spent = home.data_dir().join("confirm/spent");
    assert_eq!(std::fs::read_dir(&spent).unwrap().count(), 1);
    assert_eq!(gateway.outcomes(4), ["asked", "invalid", "accept", "invalid"]);
    let log = gateway.log.text();
    assert!(!log.contains("mcpu.token") && !log.contains("emulator-5554"), "{log}");
}

#[test]
fn s5_sixty_four_replays_of_one_acceptance_over_two_gateways_are_one_run() {
    let home = Home::new();
    let keys = ("HANDRAISE_STATE_SECRET", "a secret of thirty-two characters");
    let mut one = start(&home, GUARDED, &[keys]);
    let mut two = start(&home, GUARDED, &[keys]);
    one.send(&modern(&json!("first"), &tap(), &json!({})));
    let question = one.receive();
    assert_eq!(
        question["result"]["inputRequests"]["confirmation"]["method"], "elicitation/create",
        "{question}"
    );
    let retry = json!({
        "requestState": question["result"]["requestState"], "inputResponses": {"confirmation": confirmed()},
    });
    for number in 0..32 {
        for gateway in [&mut one, &mut two] {
            gateway.send(&modern(&json!(number), &tap(), &retry));
        }
    }
    let mut runs = 0;
    for gateway in [&one, &two] {
        for _ in 0..32 {
            let answer = gateway.receive();
            let said = said(&answer);
            if said == "tapped \"OK\" on emulator-5554" {
                runs += 1;
            } else {
                assert_eq!(said["error"], "TOKEN_REUSED", "{answer}");
            }
        }
    }
    assert_eq!((runs, one.count("tapOn")), (1, 1));
}

#[test]
fn an_edit_between_preview_and_token_is_told_with_a_fresh_preview() {
    let home = Home::new();
    let config = format!("{GUARDED}[[confirm]]\ntools = ['none']\n").replace(", 'un*'", "");
    let mut gateway = start(&home, &config, &[]);
    gateway.initialize("2025-11-25", &json!({}));
    let first = token(&mut gateway);
    gateway.answer(&json!(1), "unplug", &json!({"deviceId": "A1B2-C3D4"}));
    let answer = gateway.answer(&json!(2), "tapOn", &with(&first));
    let changed = said(&answer);
    assert_eq!((&changed["error"], &changed["reason"]), (&json!("DRAFT_CHANGED"), &json!("payload-changed")));
    assert_eq!(changed["preview"]["serverSays"]["devices"].as_array().unwrap().len(), 1);
    assert_eq!(gateway.count("tapOn"), 0);
    let fresh = changed["confirmToken"].as_str().unwrap();
    assert_eq!(said(&gateway.answer(&json!(3), "tapOn", &with(fresh))), "tapped \"OK\" on emulator-5554");
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn s5_a_folder_that_cannot_be_used_lets_nothing_run() {
    let home = Home::new();
    std::fs::create_dir_all(home.data_dir()).unwrap();
    std::fs::write(home.data_dir().join("confirm"), "no folder").unwrap();
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        // Nobody is asked, and no token is given, for what would not run.
        let mut gateway = session(&home, &capabilities, &[]);
        let answer = gateway.answer(&json!(2), "tapOn", &tap());
        assert_eq!(said(&answer)["error"], "SPENT_STORE_UNAVAILABLE");
        assert!(said(&answer).get("confirmToken").is_none(), "{answer}");
        assert_eq!(gateway.count("tapOn"), 0);
        gateway.log.wait_for("guarded calls will not run");
    }

    // One that is taken away later is no empty one.
    let home = Home::new();
    let mut gateway = session(&home, &json!({}), &[]);
    let first = token(&mut gateway);
    std::fs::remove_dir_all(home.data_dir().join("confirm")).unwrap();
    let answer = gateway.answer(&json!(2), "tapOn", &with(&first));
    assert_eq!(said(&answer)["error"], "SPENT_STORE_UNAVAILABLE");
    assert_eq!(gateway.count("tapOn"), 0);
    gateway.log.wait_for("guarded calls do not run");
    gateway.log.wait_for("is gone; put it back");
}

#[test]
fn settings_that_cannot_be_read_fail_closed_with_one_warning() {
    for (variable, value, warning) in [
        ("MCP_CONFIRM_MODE", "sometimes", "MCP_CONFIRM_MODE is \"sometimes\""),
        ("MCP_CONFIRM_TTL_SECONDS", "ten", "MCP_CONFIRM_TTL_SECONDS is \"ten\""),
        ("MCP_CONFIRM_SECRET", "hunter2", "MCP_CONFIRM_SECRET has 7 characters"),
    ] {
        let home = Home::new();
        let mut gateway = session(&home, &json!({}), &[(variable, value)]);
        let answer = gateway.answer(&json!(1), "tapOn", &tap());
        assert_eq!(said(&answer)["reason"], "confirmation-unsupported", "{answer}");
        assert!(said(&answer)["note"].as_str().unwrap().contains(variable), "{answer}");
        assert_eq!(gateway.count("tapOn"), 0);
        wait_for("the warning", || Some(()).filter(|()| gateway.log.text().contains(warning)));
        let log = gateway.log.text();
        assert_eq!(log.matches(warning).count(), 1, "{log}");
        assert!(!log.contains("hunter2"));
    }
    let home = Home::new();
    let switch = ("MCP_CONFIRM_ELICITATION", "off");
    let mut gateway = session(&home, &json!({"elicitation": {"form": {}}}), &[switch]);
    token(&mut gateway);
}

#[test]
fn lists_show_what_is_guarded_and_leave_the_rest_as_it_is() {
    let home = Home::new();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed = |config: &str| {
        let mut gateway = start(&home, config, &[]);
        gateway.initialize("2025-11-25", &json!({}));
        gateway.send(&list);
        gateway.line()
    };
    let (plain, none) = (listed(""), listed("[[confirm]]\ntools = ['nothing']\n"));
    assert_eq!(plain, none, "a list without guarded tools keeps every byte");
    let guarded: Value = serde_json::from_slice(&listed(GUARDED)).unwrap();
    let plain: Value = serde_json::from_slice(&plain).unwrap();
    for (before, after) in plain["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .zip(guarded["result"]["tools"].as_array().unwrap())
    {
        let is_guarded = ["tapOn", "unplug"].contains(&before["name"].as_str().unwrap());
        assert_eq!(before != after, is_guarded, "{after}");
        let token = &after["inputSchema"]["properties"]["confirmToken"]["type"];
        assert_eq!(token == "string", is_guarded, "{after}");
    }
}

#[test]
fn annotations_guard_what_is_not_called_harmless() {
    let home = Home::new();
    let mut gateway = start(&home, "[[confirm]]\nannotations = 'destructive'\nexcept = ['unplug']\n", &[]);
    gateway.initialize("2025-11-25", &json!({}));
    assert_eq!(said(&gateway.answer(&json!(1), "echo", &json!({"text": "x"}))), "x");
    let tapped = gateway.answer(&json!(2), "tapOn", &tap());
    assert_eq!(said(&tapped)["status"], "confirmation-required");
    let unlisted = gateway.answer(&json!(3), "format", &json!({}));
    assert_eq!(said(&unlisted)["status"], "confirmation-required");
    assert_eq!(said(&gateway.answer(&json!(4), "unplug", &json!({"deviceId": "A1B2-C3D4"}))), "unplugged");
    assert_eq!((gateway.count("tapOn"), gateway.count("format")), (0, 0));
}

#[test]
fn what_only_the_inbox_may_confirm_is_refused() {
    for line in ["require = 'human'", "who = 'caller'", "who = 'not-the-caller'"] {
        let home = Home::new();
        let mut gateway = start(&home, &format!("{GUARDED}{line}\n"), &[]);
        gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
        let answer = gateway.answer(&json!(1), "tapOn", &tap());
        assert_eq!(said(&answer)["reason"], "confirmation-unsupported", "{line}: {answer}");
        assert_eq!(gateway.count("tapOn"), 0);
    }
}
