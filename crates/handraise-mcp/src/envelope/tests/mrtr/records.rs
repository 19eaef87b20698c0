//! What is recorded of the modern era: whole lines, of each rail that was tried.

use super::*;

/// What every line says of the party.
const PARTY: &str = r#""client":"client","protocolVersion":"2026-07-28""#;

const REFUSED: &str = r#""tool":"tapOn","refusal":"ambiguous_device_target""#;

/// The lines since the last look.
fn lines(world: &mut World) -> Vec<String> {
    world.records.drain(..).map(|record| record.to_line()).collect()
}

fn answered(outcome: &str, provenance: &str, latency: u64, reason: &str) -> String {
    format!(
        r#"[elicitation] {{"declared":"both","era":"mrtr","rail":"form","outcome":"{outcome}","provenance":"{provenance}","latencyMs":{latency},{REFUSED},{PARTY}{}}}"#,
        reason_of(reason)
    )
}

fn passed(outcome: &str, declared: &str, reason: &str) -> String {
    format!(
        r#"[elicitation] {{"declared":"{declared}","era":"mrtr","rail":"refuse","outcome":"{outcome}","provenance":"system",{REFUSED},{PARTY}{}}}"#,
        reason_of(reason)
    )
}

/// A state that is refused: what it was about is not known, or not believed.
fn refused(reason: &str) -> String {
    format!(
        r#"[elicitation] {{"declared":"both","era":"mrtr","rail":"form","outcome":"invalid","provenance":"client","tool":"tapOn",{PARTY}{}}}"#,
        reason_of(reason)
    )
}

fn reason_of(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(r#","reason":"{reason}""#) }
}

fn both() -> Value {
    json!({"form": {}, "url": {}})
}

/// Runs a call up to the question; the line that says so is looked at.
fn asked(world: &mut World) -> String {
    world.client_sends(&modern_call("1", "", &both()));
    world.upstream.clear();
    world.upstream_sends(&response("1", REFUSAL));
    let line = format!(
        r#"[elicitation] {{"declared":"both","era":"mrtr","rail":"form","outcome":"asked","provenance":"system",{REFUSED},{PARTY}}}"#
    );
    assert_eq!(lines(world), [line]);
    let state = value(&world.client_got())["result"]["requestState"].as_str().unwrap().to_owned();
    world.advance(Duration::from_secs(2));
    state
}

fn retry(world: &mut World, state: &str, answer: &str) -> Vec<String> {
    world.client_sends(&modern_call("2", &with(state, answer), &both()));
    lines(world)
}

#[test]
fn each_answer_of_a_retry_is_one_whole_line() {
    let accepted = accept("A1B2");
    for (answer, outcome, reason) in [
        (accepted.as_str(), "accept", ""),
        (r#"{"action":"decline"}"#, "decline", ""),
        (r#"{"action":"cancel"}"#, "cancel", ""),
        (r#"{"action":"accept","content":{"deviceId":"rogue"}}"#, "invalid", "choice-not-offered"),
        (r#"{"action":"accept","content":{}}"#, "invalid", "answer-missing"),
        ("7", "invalid", "answer-malformed"),
    ] {
        let mut world = World::new(config());
        let state = asked(&mut world);
        assert_eq!(retry(&mut world, &state, answer), [answered(outcome, "client", 2000, reason)]);
    }
    let mut world = World::new(config());
    let state = asked(&mut world);
    world.now.boot = Moment::from_millis(world.now.boot.as_millis() - 1700);
    assert_eq!(retry(&mut world, &state, &accepted), [answered("accept", "not_shown", 300, "")]);
    // The second acceptance: what it was about is known.
    world.advance(Duration::from_secs(1));
    world.upstream_sends(&response("2", "{}"));
    assert_eq!(retry(&mut world, &state, &accepted), [answered("invalid", "client", 1300, "state-spent")]);
    // Another call's state, and one that is switched off.
    world.client_sends(&modern_with("3", "{}", &with(&state, &accepted), &both()));
    assert_eq!(lines(&mut world), [answered("invalid", "client", 1300, "other-call")]);
    world.process.set_elicitation(false);
    assert_eq!(retry(&mut world, &state, &accepted), [passed("disabled", "both", "")]);
}

#[test]
fn a_state_that_is_refused_is_one_line_without_what_it_says_it_is_about() {
    let retry = |world: &mut World, state: &str| retry(world, state, &accept("A1B2"));
    let mut world = World::new(config());
    let state = asked(&mut world);
    let (tampered, cut) = (format!("{state}A"), &state[..state.len() - 43]);
    assert_eq!(retry(&mut world, &tampered), [refused("state-malformed")]);
    assert_eq!(retry(&mut world, &format!("{cut}{}", "A".repeat(43))), [refused("state-bad-mac")]);
    world.caller = Arc::new(Caller { principal: "other".to_owned(), session: None });
    assert_eq!(retry(&mut world, &state), [refused("state-bad-mac")]);
    let mut other = World::new(EnvelopeConfig { keyring: Keyring::single(&[8; 32]), ..config() });
    assert_eq!(retry(&mut other, &state), [refused("state-unknown-key")]);
    let mut other = World::new(EnvelopeConfig { upstream: "other".to_owned().into(), ..config() });
    assert_eq!(retry(&mut other, &state), [refused("state-other-upstream")]);
    let mut late = World::new(config());
    let state = asked(&mut late);
    late.advance(Duration::from_secs(600));
    assert_eq!(retry(&mut late, &state), [refused("state-expired")]);
    let mut legacy = World::push(&json!({}));
    assert_eq!(retry(&mut legacy, "theirs"), [refused("state-before-legacy-upstream")]);
    let prompt = modern_call("2", &with(&state, "{}"), &both()).replace("tools/call", "prompts/get");
    late.client_sends(&prompt);
    assert_eq!(lines(&mut late), [refused("state-other-method")]);
}

#[test]
fn a_refusal_that_passes_is_one_line_with_its_reason() {
    let large = REFUSAL.replace(r#""x":1e2"#, &format!(r#""x":"{}""#, "x".repeat(16_384)));
    let unknown =
        modern_call("1", "", &json!({})).replace(r#""io.modelcontextprotocol/clientCapabilities""#, r#""x""#);
    for (call, result, line) in [
        (modern_call("1", "", &json!({"url": {}})), REFUSAL, passed("not_offered", "url", "")),
        (modern_call("1", "", &json!(null)), REFUSAL, passed("not_offered", "none", "")),
        (unknown, REFUSAL, passed("not_offered", "unknown", "")),
        (modern_call("1", "", &both()), &large, passed("not_offered", "both", "result-too-large")),
        (
            modern_with("1", r#"{"a":1,"a":2}"#, "", &both()),
            REFUSAL,
            passed("not_offered", "both", "duplicate-key"),
        ),
        (
            modern_call("1", r#","requestState":"theirs""#, &both()),
            REFUSAL,
            passed("not_offered", "both", "server-state"),
        ),
        (modern_call("1", r#","task":{}"#, &both()), REFUSAL, passed("not_offered", "both", "task")),
    ] {
        let mut world = World::new(config());
        world.client_sends(&call);
        world.upstream_sends(&response("1", result));
        assert_eq!(lines(&mut world), [line], "{call}");
    }
}
