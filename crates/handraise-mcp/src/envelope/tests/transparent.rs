//! What is nobody's question goes through as it is, and bounds hold.

use serde_json::json;

use super::*;
use crate::envelope::Limits;

#[test]
fn ids_come_back_as_they_were_spelled() {
    for id in [
        "1",
        "\"1\"",
        "1.0",
        "1e0",
        "-7",
        "9007199254740993",
        "123456789012345678901234567890",
        "1.5",
        "\"a\\/b\"",
        "\"é\\u00e9\"",
        "\"\\ud800\"",
        "\"\"",
        "0",
    ] {
        let mut world = World::push(&json!({}));
        world.client_sends(&call(id));
        assert_eq!(world.upstream_got(), call(id));
        world.upstream_sends(&response(id, "{}"));
        assert_eq!(world.client_got(), response(id, "{}"));
        assert_eq!(world.envelope.open_requests(), 0, "{id}");
        // Through a question and a second run.
        world.client_sends(&call(id));
        world.upstream.clear();
        world.upstream_sends(&response(id, REFUSAL));
        let ask = value(&world.client_got())["id"].to_string();
        world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{}}}"#, accept("A1B2")));
        let private = value(&world.upstream_got())["id"].to_string();
        world.upstream_sends(&response(&private, "{}"));
        assert_eq!(world.client_got(), response(id, "{}"), "{id}");
    }
}

#[test]
fn a_server_that_respells_an_id_is_understood() {
    let mut world = World::push(&json!({}));
    for (sent, returned) in [("1.0", "1"), ("\"a\\/b\"", "\"a/b\""), ("2", "2.0")] {
        world.client_sends(&call(sent));
        world.upstream.clear();
        world.upstream_sends(&response(returned, REFUSAL));
        assert!(world.client_got().contains("elicitation/create"), "{sent}");
    }
}

#[test]
fn everything_else_goes_through_byte_for_byte() {
    let mut world = World::push(&json!({}));
    for text in [
        r#"{"method":"tools/list","id":"x","jsonrpc":"2.0","params":{"cursor":"é\u00e9"},"z":{"b":1.0,"a":1e0}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"vendor/null"}"#,
        r#"{"jsonrpc":"2.0","id":{"odd":1},"method":"vendor/odd"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{"roots":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"99","error":{"code":-1,"message":"m"}}"#,
        r#" { "unknown" : [ 1.0 ] } "#,
    ] {
        world.client_sends(text);
        assert_eq!(world.upstream_got(), text);
    }
    for text in [
        r#"{"jsonrpc":"2.0","id":77,"result":{"unknown":"request"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        r#"{ "vendor":1e0 }"#,
    ] {
        world.upstream_sends(text);
        assert_eq!(world.client_got(), text);
    }
}

#[test]
fn s3_smuggled_calls_do_not_reach_the_upstream() {
    let mut world = World::push(&json!({}));
    for text in [
        r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe"}}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"wipe"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","name":"wipe"}}"#,
    ] {
        world.client_sends(text);
        assert_eq!(value(&world.client_got())["error"]["code"], -32600);
    }
    assert_eq!(world.runs, 0);
    world.nobody_got_anything();
}

#[test]
fn an_id_that_is_used_twice_gets_both_answers_and_no_question() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.client_sends(&call("1"));
    world.upstream.clear();
    for _ in 0..2 {
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got(), response("1", REFUSAL));
    }
    assert_eq!((world.runs, world.envelope.open_requests(), world.process.bytes_in_flight()), (2, 0, 0));
    // Under the id of a call that is asked about nothing runs.
    world.client_sends(&call("2"));
    world.upstream_sends(&response("2", REFUSAL));
    let ask = value(&world.client_got())["id"].to_string();
    world.upstream.clear();
    world.client_sends(&call("2"));
    assert_eq!(value(&world.client_got())["error"]["code"], -32600);
    world.nobody_got_anything();
    // And a second answer of the upstream is withheld while the first one is asked about.
    world.upstream_sends(&response("2", "{}"));
    world.nobody_got_anything();
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{}}}"#, accept("A1B2")));
    assert_eq!(world.runs, 4);
}

#[test]
fn s37_bytes_in_flight_are_bounded() {
    let limits = Limits { bytes_in_flight: 2 * call("1").len() as u64 + 10, ..Limits::default() };
    let mut world = World::new(EnvelopeConfig { limits, ..config() });
    world.initialize(&json!({"elicitation": {}}), "2025-11-25");
    for id in ["1", "2", "3"] {
        world.client_sends(&call(id));
        assert_eq!(world.upstream_got(), call(id), "forwarded all the same");
    }
    assert_eq!(world.process.bytes_in_flight(), 2 * call("1").len() as u64);
    world.upstream_sends(&response("3", REFUSAL));
    assert_eq!(world.client_got(), response("3", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system bytes-in-flight");
    // The refusal itself must fit as well.
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system bytes-in-flight");
    assert_eq!(world.process.reached().bytes_in_flight, 2);
    // A call that did not fit and carries the argument is no ambiguity.
    world.client_sends(&call("4"));
    world.client_sends(&call_with("5", r#"{"deviceId":"A1B2"}"#));
    world.upstream_sends(&response("5", REFUSAL));
    assert_eq!(world.client_got(), response("5", REFUSAL));
    assert!(world.records.is_empty());
    world.process.set_elicitation(false);
    world.client_sends(&call("6"));
    world.upstream_sends(&response("6", REFUSAL));
    assert_eq!(world.recorded(), "disabled system");
    // A connection that goes gives back what it held.
    let process = Arc::clone(&world.process);
    drop(world);
    assert_eq!(process.bytes_in_flight(), 0);
}

#[test]
fn s37_one_callers_calls_keep_no_other_callers_from_being_asked_about() {
    let one = call("1").len() as u64;
    let limits = Limits { bytes_in_flight: 40 * one, ..Limits::default() };
    let callers = ["ada", "bob"].map(str::to_owned).into();
    let process = Arc::new(Process::new(EnvelopeConfig { limits, callers, ..config() }));
    let mut worlds = [("ada", SEED), ("bob", [4; 32])].map(|(name, seed)| {
        let mut world = World::on(Arc::clone(&process), seed);
        world.envelope = Envelope::of(Arc::clone(&process), name, seed);
        world.initialize(&json!({"elicitation": {}}), "2025-11-25");
        world
    });
    let [ada, bob] = &mut worlds;
    for id in 0..100 {
        ada.client_sends(&call(&id.to_string()));
    }
    ada.upstream_sends(&response("99", REFUSAL));
    assert_eq!(ada.recorded(), "not_offered system bytes-in-flight");
    bob.client_sends(&call("1"));
    assert_eq!(bob.upstream_got(), call("1"));
    bob.upstream_sends(&response("1", REFUSAL));
    assert_eq!(value(&bob.client_got())["method"], "elicitation/create");
    drop(worlds);
    assert_eq!(process.bytes_in_flight(), 0);
}

#[test]
fn s37_open_requests_are_bounded() {
    let limits = Limits { open_requests: 2, ..Limits::default() };
    let mut world = World::new(EnvelopeConfig { limits, ..config() });
    for id in ["1", "2", "3"] {
        world.client_sends(&call(id));
    }
    assert_eq!(world.upstream, [call("1"), call("2")]);
    assert_eq!(value(&world.client_got())["error"]["code"], -32603);
    assert_eq!(world.process.reached().open_requests, 1);
    world.upstream_sends(&response("1", "{}"));
    world.client_sends(&call("4"));
    assert_eq!(world.runs, 3);
}

#[test]
fn two_gateways_in_a_row_ask_once() {
    let mut inner = World::push(&json!({}));
    let mut outer = World::on(Arc::clone(&inner.process), [8; 32]);
    outer.initialize(&json!({"elicitation": {}}), "2025-11-25");
    outer.client_sends(&call("1"));
    inner.client_sends(&outer.upstream_got());
    inner.upstream_got();
    inner.upstream_sends(&response("1", REFUSAL));
    let ask = inner.client_got();
    outer.upstream_sends(&ask);
    assert_eq!(outer.client_got(), ask, "the inner question goes through");
    let reply = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, value(&ask)["id"]);
    inner.advance(Duration::from_secs(1));
    outer.client_sends(&reply);
    assert_eq!(outer.upstream.first(), Some(&reply));
    inner.client_sends(&outer.upstream_got());
    outer.upstream_sends(&inner.client_got());
    assert_eq!(outer.client_got(), response("1", REFUSAL));
    assert_eq!(inner.recorded(), "decline client");
    assert_eq!(outer.recorded(), "not_offered system server-asked");
    assert_eq!(inner.runs, 1);
}
