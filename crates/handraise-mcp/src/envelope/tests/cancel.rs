//! Cancellations, and ends of either side, at every step.

use serde_json::json;

use super::seed::modern_with;
use super::*;

fn cancel(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0", "method":"notifications/cancelled","params":{{"requestId": {id} ,"reason":"r"}}}}"#
    )
}

/// Runs a call up to our question; it returns the question's id as JSON text.
fn asked(world: &mut World, id: &str) -> String {
    world.client_sends(&call(id));
    world.upstream_got();
    world.upstream_sends(&response(id, REFUSAL));
    value(&world.client_got())["id"].to_string()
}

fn answer(world: &mut World, ask: &str, result: &str) {
    world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},"result":{result}}}"#));
}

/// Runs a call up to its second run; it returns the private id as JSON text.
fn rerun(world: &mut World, id: &str) -> String {
    let ask = asked(world, id);
    world.advance(Duration::from_secs(1));
    answer(world, &ask, &accept("A1B2"));
    world.records.clear();
    value(&world.upstream_got())["id"].to_string()
}

fn is_at_rest(world: &World) {
    world.nobody_got_anything();
    assert_eq!((world.envelope.open_requests(), world.process.bytes_in_flight()), (0, 0));
    assert_eq!(world.envelope.next_deadline(), None);
    assert!(world.envelope.asks.is_empty() && world.envelope.ours.is_empty());
}

#[test]
fn a_call_cancelled_while_it_runs_asks_nothing() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.client_sends(&cancel("1.0"));
    assert_eq!(world.upstream_got(), cancel("1.0"), "the upstream hears it as it was said");
    // A refusal that crossed the cancellation goes on: the client ignores it, as it does without us.
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert!(world.records.is_empty());
    assert_eq!(world.runs, 1);
    is_at_rest(&world);
}

#[test]
fn a_call_cancelled_during_the_ask_gets_no_response_and_runs_nothing() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.client_sends(&cancel("1"));
    let taken_back = value(&world.client_got());
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"].to_string(), ask);
    assert_eq!(world.recorded(), "withdrawn client call-cancelled");
    answer(&mut world, &ask, &accept("A1B2"));
    world.advance(Duration::from_secs(60));
    world.tick();
    assert_eq!(world.runs, 1);
    is_at_rest(&world);
}

#[test]
fn an_accept_before_the_cancellation_has_run_and_the_run_is_cancelled() {
    let mut world = World::push(&json!({}));
    let private = rerun(&mut world, "1");
    world.client_sends(&cancel("1"));
    assert_eq!(
        world.upstream_got(),
        cancel("1").replace(r#""requestId": 1"#, &format!(r#""requestId": {private}"#)),
        "the upstream knows the run by our id"
    );
    world.upstream_sends(&response(&private, "{}"));
    world.upstream_sends(&response(&private, "{}"));
    assert_eq!(world.runs, 2);
    is_at_rest(&world);
}

#[test]
fn late_and_unknown_cancellations_change_nothing() {
    let mut world = World::push(&json!({}));
    // After an ordinary success, as opencode does after every one.
    world.client_sends(&call("1"));
    world.upstream.clear();
    world.upstream_sends(&response("1", "{}"));
    world.client.clear();
    // After a second run.
    let private = rerun(&mut world, "2");
    world.upstream_sends(&response(&private, "{}"));
    world.client.clear();
    // After a decline.
    let ask = asked(&mut world, "3");
    world.advance(Duration::from_secs(1));
    answer(&mut world, &ask, r#"{"action":"decline"}"#);
    world.client.clear();
    world.records.clear();
    for id in ["1", "2", "3", "77", "\"1\"", "null", "[]"] {
        world.client_sends(&cancel(id));
        assert_eq!(world.upstream_got(), cancel(id));
    }
    for id in [&private, &ask] {
        world.client_sends(&cancel(id));
        world.nobody_got_anything();
    }
    world.client_sends(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    world.upstream.clear();
    assert_eq!(world.runs, 4);
    assert!(world.records.is_empty());
    is_at_rest(&world);
}

#[test]
fn a_cancellation_touches_its_own_call_alone() {
    let mut world = World::push(&json!({}));
    let first = asked(&mut world, "1");
    let second = asked(&mut world, "\"1\"");
    world.client_sends(&cancel("1"));
    assert!(world.client_got().contains(&first));
    world.records.clear();
    world.advance(Duration::from_secs(1));
    answer(&mut world, &second, &accept("A1B2"));
    let private = value(&world.upstream_got())["id"].to_string();
    world.upstream_sends(&response(&private, "{}"));
    assert_eq!(world.client_got(), response("\"1\"", "{}"));
    is_at_rest(&world);
}

#[test]
fn the_upstream_dies_in_every_state() {
    let error = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"the MCP server ended: exit status 3"}}}}"#
        )
    };
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    let ask = asked(&mut world, "2");
    let _private = rerun(&mut world, "3");
    world.upstream_ends();
    assert_eq!(world.client.len(), 4);
    assert_eq!(world.client[0], error("1"));
    assert_eq!(value(&world.client[1])["params"]["requestId"].to_string(), ask);
    assert_eq!(world.client[2..], [error("2"), error("3")]);
    assert_eq!(world.recorded(), "withdrawn system server-ended");
    world.client.clear();
    answer(&mut world, &ask, &accept("A1B2"));
    world.advance(Duration::from_secs(60));
    world.tick();
    assert_eq!(world.runs, 4);
    is_at_rest(&world);
}

#[test]
fn the_clients_end_withdraws_questions_and_leaves_the_rest() {
    let mut world = World::push(&json!({}));
    world.client_sends(&call("1"));
    world.upstream.clear();
    let ask = asked(&mut world, "2");
    let private = rerun(&mut world, "3");
    world.client_closes();
    assert_eq!(value(&world.client.remove(0))["params"]["requestId"].to_string(), ask);
    assert_eq!(world.client_got(), response("2", REFUSAL));
    assert_eq!(world.recorded(), "withdrawn system client-closed");
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL), "nobody can answer any more");
    assert_eq!(world.recorded(), "not_offered system client-closed");
    world.upstream_sends(&response(&private, "{}"));
    assert_eq!(world.client_got(), response("3", "{}"));
    is_at_rest(&world);
}

#[test]
fn s27_the_upstream_does_not_cancel_our_question() {
    let mut world = World::push(&json!({}));
    let ask = asked(&mut world, "1");
    world.upstream_sends(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{ask}}}}}"#
    ));
    world.nobody_got_anything();
    assert_eq!(world.envelope.open_requests(), 1);
}

#[test]
fn the_upstreams_word_on_a_second_run_reaches_the_client_under_its_id() {
    let mut world = World::push(&json!({}));
    let private = rerun(&mut world, "1");
    world.upstream_sends(&cancel(&private));
    assert_eq!(world.client_got(), cancel("1"));
    world.upstream_sends(&response(&private, "{}"));
    assert_eq!(world.client_got(), response("1", "{}"));
}

#[test]
fn a_modern_call_is_cancelled_at_every_step() {
    let mut world = World::new(config());
    let first = modern_with("1", "{}", "", &json!({}));
    world.client_sends(&first);
    world.client_sends(&cancel("1"));
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert!(world.records.is_empty());
    // Nothing is in flight while the human thinks.
    world.client_sends(&first.replace("\"id\": 1", "\"id\": 2"));
    world.upstream_sends(&response("2", REFUSAL));
    let state = value(&world.client_got())["result"]["requestState"].to_string();
    world.upstream.clear();
    world.client_sends(&cancel("2"));
    assert_eq!(world.upstream_got(), cancel("2"));
    world.advance(Duration::from_secs(1));
    let answer = format!(r#","inputResponses":{{"deviceChoice":{}}},"requestState":{state}"#, accept("A1B2"));
    world.client_sends(&modern_with("3", "{}", &answer, &json!({})));
    world.upstream_got();
    world.client_sends(&cancel("3"));
    assert_eq!(world.upstream_got(), cancel("3"), "the second run has the retry's own id");
    assert_eq!(world.runs, 3);
    is_at_rest(&world);
}
