//! Questions while processes end, and with a process more in the row.

use serde_json::json;

use super::asking::{
    SECOND, UNHURRIED, accept, ask,
    modern::{modern_ask, retry},
    refusal, respond, session, tap,
};
use crate::support::{Gateway, Home, Setup, assert_gone, binary, kill, tree, wait_for};

#[test]
fn a_server_that_dies_while_its_refusal_is_asked_about_ends_the_call_with_an_error() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    gateway.call(&json!(1), "tapOn", &json!({"text": "OK", "dieAfterMs": 50}));
    let question = gateway.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let rest = String::from_utf8(gateway.rest()).unwrap();
    assert!(rest.contains("exit status 3"), "{rest}");
    assert!(rest.contains("notifications/cancelled"), "{rest}");
    assert_eq!(gateway.wait(), Some(3));
    assert_eq!(gateway.count("tapOn"), 1);
}

/// A call that was refused, asked about and accepted, and runs again for a while.
fn runs_again(gateway: &mut Gateway, id: &str) {
    gateway.call(&json!(id), "swipe", &json!({"steps": 20, "pauseMs": 20}));
    let question = gateway.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let before = gateway.count("swipe");
    respond(gateway, &question, &accept(SECOND));
    wait_for("the call that runs again", || (gateway.count("swipe") == before + 1).then_some(()));
}

#[test]
fn a_server_that_dies_while_a_call_runs_again_ends_the_call_with_an_error_and_runs_it_no_third_time() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    runs_again(&mut gateway, "a");
    let server = *tree(gateway.child.id()).last().unwrap();
    kill(server);
    let rest = String::from_utf8(gateway.rest()).unwrap();
    assert!(rest.contains("\"id\":\"a\",\"error\"") && rest.contains("exit status 137"), "{rest}");
    assert_eq!(rest.lines().count(), 1, "{rest}");
    assert_eq!(gateway.wait(), Some(137));
    assert_eq!((gateway.count("swipe"), gateway.outcomes(1)), (2, vec!["accept".to_owned()]));
}

#[test]
fn a_call_that_runs_again_while_the_clients_input_ends_gets_its_answer() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    runs_again(&mut gateway, "a");
    gateway.close();
    let rest = String::from_utf8(gateway.rest()).unwrap();
    assert!(rest.contains("\"id\":\"a\",\"result\"") && rest.contains("swiped on A1B2-C3D4"), "{rest}");
    assert_eq!(gateway.wait(), Some(0));
    assert_eq!(gateway.count("swipe"), 2);
}

#[test]
fn an_acceptance_and_a_cancel_in_one_write_are_taken_in_their_order() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    let mut taps = 0;
    for round in 0..60 {
        let id = json!(format!("call {round}"));
        let question = ask(&mut gateway, &id);
        let accepted = json!({"jsonrpc": "2.0", "id": question["id"], "result": accept(SECOND)}).to_string();
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
                .to_string();
        let accepted_first = round % 2 == 0;
        let lines = if accepted_first { [accepted, cancelled] } else { [cancelled, accepted] };
        // One write, or cut anywhere.
        let text = format!("{}\n{}\n", lines[0], lines[1]);
        let (one, two) = text.split_at(if round < 20 { 0 } else { text.len() * (round - 20) / 40 });
        gateway.write(one.as_bytes());
        gateway.write(two.as_bytes());
        // A cut lets the answer through before the cancel is there, or not; the other order never runs anything.
        gateway.call(&json!(round), "echo", &json!({}));
        let mut frame = gateway.receive();
        while frame["id"] != round {
            let is_answer = accepted_first && round >= 20 && frame["id"] == id;
            let is_withdrawn = !accepted_first && frame["params"]["requestId"] == question["id"];
            assert!(is_answer || is_withdrawn, "round {round}: {frame}");
            frame = gateway.receive();
        }
        taps += if accepted_first { 2 } else { 1 };
        assert_eq!(gateway.count("tapOn"), taps, "round {round}");
    }
    gateway.close();
    assert_eq!(gateway.rest(), b"");
    assert_eq!(gateway.wait(), Some(0));
}

#[test]
fn s35_nothing_is_left_of_a_gateway_that_is_killed_while_it_asks() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    ask(&mut gateway, &json!(1));
    let below = tree(gateway.child.id());
    gateway.kill();
    assert_gone(&below);
}

#[test]
fn s35_nothing_is_left_of_a_gateway_that_is_killed_while_a_call_runs_again() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    gateway.call(&json!(1), "swipe", &json!({"steps": 1, "pauseMs": 100}));
    let question = wait_for("the question", || {
        let frame = gateway.receive();
        (frame["method"] == "elicitation/create").then_some(frame)
    });
    respond(&mut gateway, &question, &accept(SECOND));
    wait_for("the second run", || (gateway.count("swipe") == 2).then_some(()));
    let below = tree(gateway.child.id());
    gateway.kill();
    assert_gone(&below);
}

#[test]
fn two_gateways_in_a_row_ask_once() {
    let home = Home::new();
    let before = [binary(), "mcp", "--"];
    let mut gateway =
        Gateway::start_with(&home, &Setup { server: &[], variables: &UNHURRIED, before: &before });
    gateway.initialize("2025-11-25", &json!({"elicitation": {}}));
    let question = ask(&mut gateway, &json!(1));
    respond(&mut gateway, &question, &json!({"action": "decline"}));
    assert_eq!(gateway.line(), refusal(&[], &tap(&json!(1))));
    assert_eq!(gateway.count("tapOn"), 1);
}

#[test]
fn two_gateways_in_a_row_ask_a_modern_client_once_and_know_their_states() {
    for shared in [&[][..], &[("HANDRAISE_STATE_SECRET", "0123456789abcdef0123456789abcdef")]] {
        let home = Home::new();
        // The inner gateway reads the secret from its own environment: ours is taken out of what a server sees (S7).
        let secret = shared.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let mut before = vec!["env"];
        before.extend(secret.iter().map(String::as_str));
        before.extend(["HANDRAISE_ASK_MIN_HUMAN_MS=0", binary(), "mcp", "--"]);
        let variables = [&UNHURRIED[..], shared].concat();
        let mut gateway =
            Gateway::start_with(&home, &Setup { server: &[], variables: &variables, before: &before });
        let state = modern_ask(&mut gateway, 1);
        gateway.send(&retry(2, &state, &accept(SECOND)));
        let answer = gateway.receive();
        assert_eq!(answer["result"]["content"][0]["text"], "tapped \"OK\" on A1B2-C3D4", "{answer}");
        assert_eq!(gateway.count("tapOn"), 2);
        // Spent where it was made, although it passed by the other one.
        gateway.send(&retry(3, &state, &accept(SECOND)));
        assert_eq!(gateway.receive()["error"]["data"]["reason"], "invalid_request_state");
        assert_eq!(gateway.count("tapOn"), 2);
    }
}
