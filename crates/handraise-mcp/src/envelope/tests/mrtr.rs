//! The modern era beside its answers: what a state is bound to, how often it counts, and what it carries.

mod foreign;
mod fresh;
mod model;
mod records;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::seed::{modern_call, modern_with};
use super::*;

const INVALID: &str = r#""error":{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}}"#;

/// Runs a call up to the question; it returns the state.
fn asked(world: &mut World) -> String {
    asked_with(world, r#"{"text": "OK", "n": 1.50}"#)
}

fn asked_with(world: &mut World, arguments: &str) -> String {
    world.client_sends(&modern_with("1", arguments, "", &json!({})));
    world.upstream.clear();
    world.upstream_sends(&response("1", REFUSAL));
    let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
    assert_eq!(world.recorded(), "asked system");
    world.advance(Duration::from_secs(1));
    state
}

/// The members that a retry adds.
fn with(state: &str, answer: &str) -> String {
    format!(r#","requestState":"{state}","inputResponses":{{"deviceChoice":{answer}}}"#)
}

fn retry(world: &mut World, id: &str, state: &str, answer: &str) {
    world.client_sends(&modern_call(id, &with(state, answer), &json!({})));
}

/// Retries with an acceptance that must not count.
#[track_caller]
fn is_refused(world: &mut World, id: &str, state: &str, why: &str) {
    let runs = world.runs;
    retry(world, id, state, &accept("A1B2"));
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":{id},{INVALID}"#), "{why}");
    assert_eq!(world.runs, runs, "{why}");
    world.nobody_got_anything();
}

#[test]
fn every_tampered_character_is_refused_before_anything_runs() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let payload_at = state.match_indices('.').nth(1).map(|(at, _)| at + 1).unwrap();
    for at in payload_at..state.len() {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        is_refused(&mut world, "2", std::str::from_utf8(&bytes).unwrap(), &format!("character {at}"));
    }
    let cut = &state[..state.len() - 1];
    for state in
        [cut, "hr1.", "hr1....", "hr1.x", &format!("{state}A"), &format!("{state}="), &"hr1.".repeat(20_000)]
    {
        is_refused(&mut world, "2", state, state);
    }
    world.records.clear();
    retry(&mut world, "3", &state, &accept("A1B2"));
    assert_eq!(world.recorded(), "accept client");
}

#[test]
fn a_state_ends_on_either_clock() {
    for (boot_ms, wall_ms, is_over) in [
        (598_999, 598_999, false),
        (599_000, 0, true),
        (0, 599_000, true),
        (599_000, 599_000, true),
        (0, -3_600_000, false),
    ] {
        let mut world = World::new(config());
        let state = asked(&mut world);
        world.now.boot = world.now.boot + Duration::from_millis(boot_ms);
        world.now.wall_ms = world.now.wall_ms.checked_add_signed(wall_ms).unwrap();
        if is_over {
            is_refused(&mut world, "2", &state, "expired");
            assert_eq!(world.recorded(), "invalid client state-expired");
        } else {
            retry(&mut world, "2", &state, &accept("A1B2"));
            assert_eq!(world.runs, 2, "{boot_ms} {wall_ms}");
        }
    }
}

#[test]
fn s10_a_state_is_bound_to_principal_and_session() {
    let caller = |principal: &str, session: Option<&str>| {
        Arc::new(Caller { principal: principal.to_owned(), session: session.map(str::to_owned) })
    };
    for (other, counts) in [
        (caller("stdio", None), true),
        (caller("other", None), false),
        (caller("stdio", Some("s")), false),
        (caller("stdio", Some("")), false),
    ] {
        let mut world = World::new(config());
        let state = asked(&mut world);
        world.caller = other;
        if counts {
            retry(&mut world, "2", &state, &accept("A1B2"));
            assert_eq!(world.runs, 2);
        } else {
            is_refused(&mut world, "2", &state, "another caller");
        }
    }
    let mut keyed = World::new(config());
    keyed.caller = caller("stdio", Some("s"));
    let state = asked(&mut keyed);
    keyed.caller = caller("stdio", Some("t"));
    is_refused(&mut keyed, "2", &state, "another session");
    keyed.caller = caller("stdio", None);
    is_refused(&mut keyed, "3", &state, "no session");
    keyed.caller = caller("stdio", Some("s"));
    retry(&mut keyed, "4", &state, &accept("A1B2"));
    assert_eq!(keyed.runs, 2);
}

#[test]
fn s22_a_state_is_about_one_upstream() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let mut other = World::new(EnvelopeConfig { upstream: "other".to_owned().into(), ..config() });
    is_refused(&mut other, "2", &state, "another upstream");
    assert_eq!(other.recorded(), "invalid client state-other-upstream");
}

#[test]
fn keyrings_rotate_and_random_keys_end_with_the_process() {
    let (old, new) = ("o".repeat(32), "n".repeat(32));
    let ring = |text: &str| EnvelopeConfig { keyring: Keyring::parse(text).unwrap(), ..config() };
    let mut world = World::new(ring(&old));
    let state = asked(&mut world);
    let now = world.now;
    for (keys, counts) in [(format!("{new},{old}"), true), (old.clone(), true), (new, false)] {
        // Another process, which shares the clock's identity by configuration only in this test.
        let mut replica = World::new(ring(&keys));
        replica.now = now;
        if counts {
            retry(&mut replica, "2", &state, &accept("A1B2"));
            assert_eq!(replica.runs, 1, "{keys}");
        } else {
            is_refused(&mut replica, "2", &state, "an unknown key");
            assert_eq!(replica.recorded(), "invalid client state-unknown-key");
        }
    }
}

#[test]
fn another_tool_or_other_arguments_get_the_original_and_run_nothing() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let original = format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#);
    let extra = with(&state, &accept("A1B2"));
    for call in [
        modern_with("2", r#"{"text": "OK", "n": 1.51}"#, &extra, &json!({})),
        modern_with("2", r#"{"text": "OK"}"#, &extra, &json!({})),
        modern_with("2", r#"{"text": "OK", "n": 1.50, "x": null}"#, &extra, &json!({})),
        modern_with("2", r#"{"text": "OK", "n": 1.5, "x": {"a":1,"a":1}}"#, &extra, &json!({})),
        modern_with("2", "[]", &extra, &json!({})),
        modern_with("2", "null", &extra, &json!({})),
        modern_call("2", &extra, &json!({})).replace("tapOn", "tapoff"),
    ] {
        world.client_sends(&call);
        assert_eq!(world.client_got(), original, "{call}");
        assert_eq!(world.recorded(), "invalid client other-call");
    }
    assert_eq!(world.runs, 1);
    // The same value in another order and spelling is the same call.
    let same = modern_with("2", r#"{"n": 15e-1,  "t\u0065xt": "OK"}"#, &extra, &json!({}));
    world.client_sends(&same);
    assert_eq!(world.recorded(), "accept client");
    assert_eq!(world.runs, 2);
}

#[test]
fn the_chosen_device_counts_whatever_the_retry_names() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let arguments = r#"{"deviceId": "rogue", "text": "OK", "n": 1.50}"#;
    world.client_sends(&modern_with("2", arguments, &with(&state, &accept("A1B2")), &json!({})));
    assert_eq!(world.upstream_got(), modern_with("2", &arguments.replace("rogue", "A1B2"), "", &json!({})));
}

#[test]
fn s5_a_state_runs_a_call_once() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    retry(&mut world, "2", &state, &accept("A1B2"));
    assert_eq!(world.runs, 2);
    world.upstream.clear();
    world.records.clear();
    // In parallel, with another candidate, on another connection of the process, and after the run.
    is_refused(&mut world, "3", &state, "the run is open");
    assert_eq!(world.recorded(), "invalid client state-spent");
    world.upstream_sends(&response("2", "{}"));
    world.client.clear();
    retry(&mut world, "4", &state, &accept("emulator-5554"));
    assert!(world.client_got().contains("invalid_request_state"));
    world.records.clear();
    let mut second = World::on(Arc::clone(&world.process), [8; 32]);
    second.now = world.now;
    is_refused(&mut second, "2", &state, "another connection");
    // Other answers spend nothing, and still get the original.
    retry(&mut world, "5", &state, r#"{"action":"decline"}"#);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":5,"result":{REFUSAL}}}"#));
    assert_eq!(world.recorded(), "decline client");
    let state = asked(&mut world);
    retry(&mut world, "6", &state, r#"{"action":"decline"}"#);
    retry(&mut world, "7", &state, "{}");
    world.records.clear();
    retry(&mut world, "8", &state, &accept("A1B2"));
    assert_eq!(world.recorded(), "accept client");
    assert_eq!((world.runs, second.runs), (4, 0));
}

#[test]
fn modern_requests_remember_nothing() {
    let mut world = World::new(config());
    for _ in 0..2 {
        let state = asked(&mut world);
        retry(&mut world, "2", &state, r#"{"action":"decline"}"#);
        world.client.clear();
        assert_eq!(world.recorded(), "decline client");
    }
}

#[test]
fn a_fast_answer_was_not_shown() {
    for (reply, record, runs) in [
        (r#"{"action":"cancel"}"#.to_owned(), "cancel not_shown", 1),
        (accept("A1B2"), "accept not_shown", 2),
    ] {
        let mut world = World::new(config());
        let state = asked(&mut world);
        world.now.boot = Moment::from_millis(world.now.boot.as_millis() - 980);
        retry(&mut world, "2", &state, &reply);
        assert_eq!(world.records[0].latency_ms, Some(20));
        assert_eq!(world.recorded(), record);
        assert_eq!(world.runs, runs);
    }
}

#[test]
fn the_switch_is_read_for_every_request() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    world.process.set_elicitation(false);
    retry(&mut world, "2", &state, &accept("A1B2"));
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
    assert_eq!(world.recorded(), "disabled system");
    world.client_sends(&modern_call("3", "", &json!({})));
    world.upstream.clear();
    world.upstream_sends(&response("3", REFUSAL));
    assert_eq!(world.client_got(), response("3", REFUSAL));
    assert_eq!(world.recorded(), "disabled system");
    assert_eq!(world.runs, 2);
}

#[test]
fn a_result_of_16_kib_is_asked_about_and_one_byte_more_is_not() {
    for (length, is_asked) in [(16_384, true), (16_385, false)] {
        let padding = "x".repeat(length - REFUSAL.len());
        let result = REFUSAL.replace(r#""x":1e2"#, &format!(r#""{padding}x":1e2"#));
        assert_eq!(result.len(), length);
        let mut world = World::new(config());
        world.client_sends(&modern_call("1", "", &json!({})));
        world.upstream.clear();
        world.upstream_sends(&response("1", &result));
        if is_asked {
            let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
            assert!(state.len() < 64 * 1024);
            retry(&mut world, "2", &state, r#"{"action":"decline"}"#);
            assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{result}}}"#));
        } else {
            assert_eq!(world.client_got(), response("1", &result));
            assert_eq!(world.recorded(), "not_offered system result-too-large");
        }
    }
}

#[test]
fn s4_arguments_that_cannot_be_bound_are_not_asked_about() {
    for (arguments, reason) in unbindable() {
        let mut world = World::new(config());
        world.client_sends(&modern_with("1", &arguments, "", &json!({})));
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!((world.recorded(), world.runs), (format!("not_offered system {reason}"), 1));
    }
}

#[test]
fn a_question_names_the_server_as_its_refusal_does() {
    let info = r#"{"name":"s", "version":"1.0"}"#;
    let named =
        format!(r#"{{"_meta":{{"x":1,"io.modelcontextprotocol/serverInfo":{info}}},{}"#, &REFUSAL[1..]);
    for (refusal, meta) in [
        (named.as_str(), json!({"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1.0"}})),
        (REFUSAL, json!(null)),
    ] {
        let mut world = World::new(config());
        world.client_sends(&modern_call("1", "", &json!({})));
        world.upstream_sends(&response("1", refusal));
        let question = value(&world.client_got());
        assert_eq!(question["result"]["resultType"], "input_required", "{question}");
        assert_eq!(question["result"]["_meta"], meta, "{question}");
    }
}
