//! Refusals beyond a bound: recorded, and never asked about (mcp.md §3, §5). Each bound at its last and one beyond.

use serde_json::json;

use super::seed::modern_call;
use super::*;
use crate::refusal::{MAX_CANDIDATES, MAX_KNOWN_BYTES, MAX_REFUSAL_BYTES, MAX_VALUE_BYTES};
use crate::seal::MAX_RESULT_BYTES;

/// What became of a call's result: the outcome and the reason of its one record.
fn outcome(world: &mut World, call: &str, result: &str) -> String {
    world.client_sends(call);
    world.upstream.clear();
    world.upstream_sends(&response("1", result));
    let got = world.client_got();
    let Some(record) = world.records.pop() else {
        if got == response("1", result) {
            return "nothing".to_owned();
        }
        assert!(got.contains("elicitation/create"), "{got}");
        return "asked".to_owned();
    };
    assert!(world.records.is_empty(), "one record for a refusal");
    let outcome = record.outcome.as_str();
    if outcome == "asked" {
        assert!(got.contains("input_required"));
        return outcome.to_owned();
    }
    assert!(got == response("1", result), "byte for byte");
    assert_eq!(
        (record.rail.as_str(), record.refusal.as_deref()),
        ("refuse", Some("ambiguous_device_target"))
    );
    assert_eq!((record.tool.as_str(), record.provenance.as_str()), ("tapOn", "system"));
    assert_eq!((world.envelope.open_requests(), world.process.bytes_in_flight()), (0, 0));
    format!("{outcome} {}", record.reason.unwrap_or_default())
}

/// In both eras.
#[track_caller]
fn check(result: &str, push: &str, mrtr: &str) {
    assert_eq!(outcome(&mut World::push(&json!({})), &call("1"), result), push, "push");
    assert_eq!(outcome(&mut World::new(config()), &modern_call("1", "", &json!({})), result), mrtr, "mrtr");
}

fn of(devices: &[Value]) -> String {
    json!({"structuredContent": {"code": "ambiguous_device_target", "devices": devices}}).to_string()
}

fn of_length(bytes: usize) -> String {
    let padding = "x".repeat(bytes - REFUSAL.len());
    let result = REFUSAL.replace(r#""x":1e2"#, &format!(r#""{padding}x":1e2"#));
    assert_eq!(result.len(), bytes);
    result
}

const TOO_LARGE: &str = "not_offered result-too-large";

#[test]
fn sizes_of_results() {
    for (bytes, push, mrtr) in [
        (MAX_RESULT_BYTES, "asked", "asked"),
        (MAX_RESULT_BYTES + 1, "asked", TOO_LARGE),
        (MAX_REFUSAL_BYTES, "asked", TOO_LARGE),
        (MAX_REFUSAL_BYTES + 1, TOO_LARGE, TOO_LARGE),
        (MAX_KNOWN_BYTES, TOO_LARGE, TOO_LARGE),
        (MAX_KNOWN_BYTES + 1, "nothing", "nothing"),
    ] {
        check(&of_length(bytes), push, mrtr);
    }
    // In between, what says that it is one stands where nobody looks.
    let filling = "x".repeat(200_000);
    let middle = format!(r#"{{"a":"{filling}",{},"b":"{filling}"}}"#, &REFUSAL[1..REFUSAL.len() - 1]);
    check(&middle, "nothing", "nothing");
}

#[test]
fn numbers_of_candidates() {
    let devices = |count: usize| (0..count).map(|index| json!({"deviceId": index.to_string()}));
    let most: Vec<Value> = devices(MAX_CANDIDATES).collect();
    let too_many = "not_offered too-many-candidates";
    check(&of(&most), "asked", TOO_LARGE);
    check(&of(&devices(MAX_CANDIDATES + 1).collect::<Vec<_>>()), too_many, too_many);
    // One that is not enough for a choice is no refusal of ours, however long its list is.
    check(&of(&vec![most[0].clone(); MAX_CANDIDATES + 1]), "nothing", "nothing");
}

#[test]
fn lengths_of_values() {
    let devices = |length: usize| [json!({"deviceId": "a"}), json!({"deviceId": "b".repeat(length)})];
    let too_long = "not_offered candidate-too-long";
    check(&of(&devices(MAX_VALUE_BYTES)), "asked", "asked");
    check(&of(&devices(MAX_VALUE_BYTES + 1)), too_long, too_long);
    let with_others = [&devices(MAX_VALUE_BYTES + 1)[..], &[json!({"deviceId": "c"})]].concat();
    check(&of(&with_others), too_long, too_long);
    check(&of(&devices(MAX_VALUE_BYTES + 1)[1..]), "nothing", "nothing");
}

/// Who could not be asked anyway, and the switch, come first.
#[test]
fn what_bars_a_call_is_recorded_before_its_bounds() {
    let large = of_length(MAX_REFUSAL_BYTES + 1);
    let mut world = World::push(&json!({}));
    world.process.set_elicitation(false);
    assert_eq!(outcome(&mut world, &call("1"), &large), "disabled ");
    assert_eq!(outcome(&mut World::push(&json!({"url": {}})), &call("1"), &large), "not_offered ");
    let carried = call_with("1", r#"{"deviceId":null}"#);
    assert_eq!(outcome(&mut World::push(&json!({})), &carried, &large), "nothing");
}
