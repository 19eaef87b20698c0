//! The modern era beside its answers: what a state is bound to, how often it counts, and what it carries.

use serde_json::json;

use super::seed::{modern_call, modern_with};
use super::*;
use crate::confirm::{ConfirmConfig, GuardSource, Guards, Remembers, Values};
use crate::refusal::{Entry, Rule, RuleSource, Rules};

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
    let mut other = World::new(EnvelopeConfig { upstream: "other".to_owned(), ..config() });
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
    for (arguments, reason) in
        [(r#"{"a":{"b":1,"b":2}}"#, "duplicate-key"), (r#"{"a":9007199254740993}"#, "inexact-number")]
    {
        let mut world = World::new(config());
        world.client_sends(&modern_with("1", arguments, "", &json!({})));
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!(world.recorded(), format!("not_offered system {reason}"));
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

#[test]
fn the_upstreams_state_is_carried_and_restored() {
    let mut world = World::new(config());
    world.client_sends(&modern_call("1", "", &json!({})));
    world.upstream.clear();
    let result = REFUSAL.replace(r#""x":1e2"#, r#""requestState":"their\/s","x":1e2"#);
    world.upstream_sends(&response("1", &result));
    let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
    world.advance(Duration::from_secs(1));
    let extra = format!(
        r#","inputResponses":{{"theirs":{{"x":1.0}},"deviceChoice":{}}},"requestState":"{state}""#,
        accept("A1B2")
    );
    world.client_sends(&modern_call("2", &extra, &json!({})));
    let expected =
        modern_call("2", r#","inputResponses":{"theirs":{"x":1.0}},"requestState":"their/s""#, &json!({}))
            .replace(r#""n": 1.50}"#, r#""n": 1.50,"deviceId":"A1B2"}"#);
    assert_eq!(world.upstream_got(), expected);
}

#[test]
fn a_foreign_state_goes_through_and_adds_no_question() {
    for (state, reason) in [("theirs", "server-state"), ("hr2.x", "server-state"), ("", "server-state")] {
        let mut world = World::new(config());
        let call = modern_call("1", &with(state, r#"{"action":"accept"}"#), &json!({}));
        world.client_sends(&call);
        assert_eq!(world.upstream_got(), call);
        world.upstream_sends(&response("1", REFUSAL));
        assert_eq!(world.client_got(), response("1", REFUSAL));
        assert_eq!(world.recorded(), format!("not_offered system {reason}"));
    }
    let mut world = World::new(config());
    let call = modern_call("1", r#","inputResponses":{"deviceChoice":{}}"#, &json!({}));
    world.client_sends(&call);
    assert_eq!(world.upstream_got(), call);
    world.upstream_sends(&response("1", REFUSAL));
    assert_eq!(world.client_got(), response("1", REFUSAL));
    assert_eq!(world.recorded(), "not_offered system answer-without-state");
}

/// A legacy server would run the call and never look at the state (mcp.md §5).
#[test]
fn a_foreign_state_goes_no_further_before_a_legacy_upstream() {
    let foreign = |id: &str| modern_call(id, &with("theirs", r#"{"action":"accept"}"#), &json!({}));
    let mut world = World::push(&json!({}));
    world.client_sends(&foreign("5"));
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":5,{INVALID}"#));
    assert_eq!((world.recorded(), world.runs), ("invalid client state-before-legacy-upstream".to_owned(), 0));

    // An error of server/discover is what a legacy server has for it; an answer is what a modern one has.
    for (answer, runs) in
        [(r#""error":{"code":-32601,"message":"no"}"#, 0), (r#""result":{"supportedVersions":[]}"#, 1)]
    {
        let mut world = World::push(&json!({}));
        world.client_sends(r#"{"jsonrpc":"2.0","id":6,"method":"server/discover"}"#);
        world.upstream_sends(&format!(r#"{{"jsonrpc":"2.0","id":6,{answer}}}"#));
        world.client_sends(&foreign("7"));
        assert_eq!(world.runs, runs, "{answer}");
    }
    // So is a question that it hands back.
    let mut world = World::push(&json!({}));
    world.client_sends(&modern_call("8", "", &json!({})));
    world.upstream_sends(&response("8", r#"{"resultType":"input_required","requestState":"theirs"}"#));
    world.client_sends(&foreign("9"));
    assert_eq!(world.runs, 2);
}

#[test]
fn a_state_of_ours_belongs_to_tool_calls() {
    let mut world = World::new(config());
    let state = asked(&mut world);
    let prompt =
        modern_call("2", &with(&state, &accept("A1B2")), &json!({})).replace("tools/call", "prompts/get");
    world.client_sends(&prompt);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,{INVALID}"#));
    // In the push era as well.
    let bare = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"tapOn","requestState":"{state}"}}}}"#
    );
    world.client_sends(&bare);
    assert_eq!(world.client_got(), format!(r#"{{"jsonrpc":"2.0","id":3,{INVALID}"#));
    assert_eq!(world.runs, 1);
}

#[test]
fn gateways_in_a_row_know_their_own_states() {
    for keys in [[9; 32], [10; 32]] {
        // With keys of its own, or sharing ours: the state that went through is the inner one's.
        let mut inner = World::new(EnvelopeConfig { keyring: Keyring::single(&keys), ..config() });
        let mut outer = World::on(Arc::new(Process::new(config())), [8; 32]);
        outer.client_sends(&modern_call("1", "", &json!({})));
        inner.client_sends(&outer.upstream_got());
        inner.upstream_got();
        inner.upstream_sends(&response("1", REFUSAL));
        let asked = inner.client_got();
        outer.upstream_sends(&asked);
        assert_eq!(outer.client_got(), asked, "verbatim");
        let state = value(&asked)["result"]["requestState"].as_str().unwrap().to_owned();
        assert!(state.starts_with("hr1."));
        for world in [&mut inner, &mut outer] {
            world.advance(Duration::from_secs(1));
            world.records.clear();
        }
        let declined = modern_call("2", &with(&state, r#"{"action":"decline"}"#), &json!({}));
        outer.client_sends(&declined);
        assert_eq!(outer.upstream, [declined.as_str()]);
        inner.client_sends(&outer.upstream_got());
        outer.upstream_sends(&inner.client_got());
        assert_eq!(outer.client_got(), format!(r#"{{"jsonrpc":"2.0","id":2,"result":{REFUSAL}}}"#));
        assert_eq!(inner.recorded(), "decline client");
        assert_eq!(outer.recorded(), "not_offered system server-state", "the outer one adds no question");
        retry(&mut outer, "3", &state, &accept("A1B2"));
        inner.client_sends(&outer.upstream_got());
        assert_eq!(inner.runs, 2);
        // What never went through is refused.
        let mut third = World::on(Arc::new(Process::new(config())), [3; 32]);
        if keys == [10; 32] {
            is_refused(&mut third, "2", &state, "an unknown key");
        }
    }
}

fn fresh() -> EnvelopeConfig {
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

fn devices(list: &str) -> String {
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
