//! A chosen candidate is looked for afresh, and must be as it was offered.

use super::*;
use crate::confirm::{ConfirmConfig, GuardSource, Guards, Remembers, Values};
use crate::refusal::{Entry, Rule, RuleSource, Rules};

pub(super) fn fresh() -> EnvelopeConfig {
    let rule = Rule::new(RuleSource {
        name: "ambiguous_device_target".into(),
        code: "ambiguous_device_target".into(),
        code_at: vec!["/code".into()],
        candidates_at: vec!["/candidates".into()],
        value: "/deviceId".into(),
        title: "{deviceId}".into(),
        argument: "deviceId".into(),
        message: "Which?".into(),
        candidates_tool: Some(("listDevices".into(), vec!["/devices".into()])),
    });
    EnvelopeConfig { rules: Rules::configured([Entry::Rule(Box::new(rule.unwrap()))]), ..config() }
}

pub(super) fn devices(list: &str) -> String {
    format!(r#"{{"content":[],"structuredContent":{{"devices":{list}}}}}"#)
}

/// Runs a retry up to the fresh list; it returns the private id as JSON text.
fn checking(world: &mut World) -> String {
    let state = asked(world);
    let call = modern_call("2", &with(&state, &accept("A1B2")), &json!({}))
        .replace(r#"{"io.model"#, r#"{"progressToken":7,"io.model"#);
    world.client_sends(&call);
    let list = value(&world.upstream_got());
    assert_eq!((&list["method"], &list["params"]["name"]), (&json!("tools/call"), &json!("listDevices")));
    assert_eq!(list["params"]["arguments"], json!({}));
    let meta = &list["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "the same client asks");
    assert_eq!(meta.get("progressToken"), None);
    assert!(world.records.is_empty() && world.client.is_empty());
    list["id"].to_string()
}

#[test]
fn candidates_that_a_guarded_tool_would_list_are_not_listed_and_nothing_runs() {
    let source = GuardSource { tools: vec!["listDevices".to_owned()], ..GuardSource::default() };
    let guards = Guards::new(vec![source]).unwrap();
    let keyring = Keyring::single(&[9; 32]);
    let (confirm, _) = ConfirmConfig::new(guards, Values::default(), keyring, [5; 32], Remembers::Beyond);
    let mut world = World::new(EnvelopeConfig { confirm: Some(confirm), ..fresh() });
    let state = asked(&mut world);
    world.client_sends(&modern_call("2", &with(&state, &accept("A1B2")), &json!({})));
    assert_eq!(world.recorded(), "error system candidates-guarded");
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
    assert!(world.upstream.is_empty());
}

#[test]
fn a_chosen_candidate_is_looked_for_afresh_and_must_be_as_it_was_offered() {
    let original = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#);
    let unchanged = r#"[{"n":1,"platform":"ios","deviceId":"A1B2"},{"deviceId":"x"}]"#;
    for (result, record) in [
        (devices(unchanged), "accept client"),
        (devices(r#"[{"deviceId":"A1B2","platform":"ios","n":1.0}]"#), "accept client"),
        // The deviation from the seed: the chosen device has vanished, and one remains.
        (
            devices(r#"[{"deviceId":"emulator-5554","platform":"android"}]"#),
            "invalid client candidate-changed",
        ),
        (
            devices(r#"[{"deviceId":"A1B2","platform":"android","n":1.0}]"#),
            "invalid client candidate-changed",
        ),
        (devices("[]"), "invalid client candidate-changed"),
        (r#"{"content":[]}"#.to_owned(), "error system candidates-unreadable"),
        (r#"{"resultType":"input_required"}"#.to_owned(), "error system candidates-unreadable"),
    ] {
        let mut world = World::new(fresh());
        let private = checking(&mut world);
        world.upstream_sends(&response(&private, &result));
        assert_eq!(world.recorded(), record, "{result}");
        if record == "accept client" {
            assert!(world.upstream_got().contains(r#""n": 1.50,"deviceId":"A1B2"}"#));
            world.upstream_sends(&response("2", "{}"));
            assert_eq!(world.client_got(), response("2", "{}"));
            assert_eq!(world.runs, 3);
        } else {
            assert_eq!(world.client_got(), original);
            assert_eq!(world.runs, 2, "nothing but the list ran");
        }
        assert_eq!((world.envelope.open_requests(), world.process.bytes_in_flight()), (0, 0));
        assert_eq!(world.envelope.next_deadline(), None);
    }
    let mut world = World::new(fresh());
    let private = checking(&mut world);
    world.upstream_sends(&format!(
        r#"{{"jsonrpc":"2.0","id":{private},"error":{{"code":-1,"message":"m"}}}}"#
    ));
    assert_eq!(world.recorded(), "error system candidates-unreadable");
    assert_eq!(world.client_got(), original);
}

#[test]
fn the_fresh_list_is_bounded_in_time_and_ends_with_its_call_and_its_client() {
    let mut world = World::new(fresh());
    let private = checking(&mut world);
    world.advance(Duration::from_secs(20));
    world.tick();
    assert_eq!(value(&world.upstream_got())["params"]["requestId"].to_string(), private);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
    assert_eq!(world.recorded(), "error system candidates-late");
    world.upstream_sends(&response(&private, &devices("[]")));
    world.nobody_got_anything();

    let mut world = World::new(fresh());
    let private = checking(&mut world);
    world.client_sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert_eq!(value(&world.upstream_got())["params"]["requestId"].to_string(), private);
    assert_eq!(world.recorded(), "withdrawn client call-cancelled");
    world.upstream_sends(&response(&private, &devices(r#"[{"deviceId":"A1B2","platform":"ios","n":1.0}]"#)));
    world.nobody_got_anything();
    assert_eq!((world.runs, world.envelope.next_deadline()), (2, None));

    // Behind a client that has closed its side nothing reaches the server any more: the retry must not wait for a run.
    let mut world = World::new(fresh());
    let private = checking(&mut world);
    world.client_closes();
    assert_eq!(value(&world.upstream_got())["params"]["requestId"].to_string(), private);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
    assert_eq!(world.recorded(), "withdrawn system client-closed");
    world.upstream_sends(&response(&private, &devices(r#"[{"deviceId":"A1B2","platform":"ios","n":1.0}]"#)));
    world.nobody_got_anything();
    assert_eq!((world.runs, world.envelope.open_requests()), (2, 0));
    assert_eq!((world.process.bytes_in_flight(), world.envelope.next_deadline()), (0, None));

    let mut world = World::new(fresh());
    let private = checking(&mut world);
    world.upstream_ends();
    assert!(world.client_got().contains("exit status 3"));
    assert_eq!(world.recorded(), "withdrawn system server-ended");
    // What it still says when it has been given up is nobody's answer.
    world.upstream_sends(&response(&private, &devices("[]")));
    world.upstream_sends(&response("2", "{}"));
    world.nobody_got_anything();
    assert_eq!((world.runs, world.envelope.next_deadline()), (2, None));
}
