//! Questions while processes end, and with a process more in the row.

use serde_json::json;

use super::asking::{UNHURRIED, ask, refusal, respond, session, tap};
use crate::support::{Gateway, Home, Setup, alive, binary, kill, tree, wait_for};

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
}

#[test]
fn s35_nothing_is_left_of_a_gateway_that_is_killed_while_it_asks() {
    let home = Home::new();
    let mut gateway = session(&home, &[], &[]);
    ask(&mut gateway, &json!(1));
    let below = tree(gateway.child.id());
    kill(gateway.child.id());
    wait_for("the end", || below.iter().all(|process| !alive(*process)).then_some(()));
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
