//! Refusals in every shape that servers give them, and everything that only looks like one.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::testing::source;
use super::*;

const CODE: &str = "ambiguous_device_target";

/// A result as `shapeToolCallError` builds it: the payload as compact JSON in the first content block.
fn result_of(payload: &Value) -> String {
    json!({"content": [{"type": "text", "text": payload.to_string()}], "isError": true}).to_string()
}

fn devices() -> Value {
    json!([{"deviceId": "emulator-5554", "platform": "android"}, {"deviceId": "A1B2", "platform": "ios"}])
}

fn read(result: &str) -> Option<Ambiguity> {
    read_by(&Rules::presets(), result)
}

fn read_by(rules: &Rules, result: &str) -> Option<Ambiguity> {
    match rules.read(result, |_| false)? {
        Refusal::Ambiguous(ambiguity) => Some(ambiguity),
        Refusal::Beyond(_, beyond) => panic!("beyond a bound: {beyond:?}"),
    }
}

/// The bound that a refusal is beyond.
fn beyond(result: &str) -> Option<Beyond> {
    match Rules::presets().read(result, |_| false)? {
        Refusal::Beyond(rule, beyond) => {
            assert_eq!(rule.name(), PRESET);
            Some(beyond)
        }
        Refusal::Ambiguous(_) => None,
    }
}

/// What is offered by a result, as value and title.
fn offered(result: &str) -> Vec<(String, String)> {
    let candidates = read(result).map(|ambiguity| ambiguity.candidates).unwrap_or_default();
    candidates.into_iter().map(|candidate| (candidate.value, candidate.title)).collect()
}

#[track_caller]
fn assert_asks(result: &str) {
    assert_eq!(
        offered(result),
        [
            ("emulator-5554".to_owned(), "emulator-5554 (android)".to_owned()),
            ("A1B2".to_owned(), "A1B2 (ios)".to_owned())
        ],
        "{result}"
    );
}

#[track_caller]
fn assert_passes(result: &str) {
    assert!(read(result).is_none(), "{result}");
}

#[test]
fn every_family_of_payloads_is_read() {
    for payload in [
        // A: flat.
        json!({"success": false, "error": "2 devices match", "code": CODE, "candidates": devices(), "retryable": false}),
        // B: nested.
        json!({"error": {"code": CODE, "message": "2 devices match", "candidates": devices(), "retryable": false}}),
        // C: nested, with a message beside it.
        json!({"success": false, "message": format!("{CODE}: 2"), "error": {"code": CODE, "devices": devices()}}),
        // D: wrapped in a failure of something else, with the code where the rule looks for it.
        json!({"success": false, "error": {"code": CODE, "message": "2", "acquisitionFailure": {"code": "x"}, "candidates": devices()}}),
        // E: teardown.
        json!({"success": false, "error": "2 match", "state": "failed", "failure": {"code": CODE}, "devices": devices()}),
    ] {
        assert_asks(&result_of(&payload));
    }
}

#[test]
fn the_envelopes_members_may_stand_in_any_order() {
    let text = json!({"code": CODE, "candidates": devices()}).to_string();
    assert_asks(&json!({"isError": true, "content": [{"type": "text", "text": text}]}).to_string());
    assert_asks(
        &json!({"resultType": "complete", "content": [{"text": text, "type": "text"}], "_meta": {}})
            .to_string(),
    );
    assert_asks(&format!(
        " {{ \"content\" : [ {{ \"type\":\"text\",\"text\":{} }} , {{}} ] }} ",
        json!(text)
    ));
}

#[test]
fn code_and_candidates_are_found_at_each_path() {
    for code_at in [&["code"][..], &["error", "code"], &["failure", "code"]] {
        for candidates_at in
            [&["candidates"][..], &["error", "candidates"], &["devices"], &["error", "devices"]]
        {
            let mut payload = json!({"failure": {}, "error": {}});
            let place = |payload: &mut Value, path: &[&str], value: Value| {
                *path.iter().fold(payload, |at, name| &mut at[*name]) = value;
            };
            place(&mut payload, code_at, json!(CODE));
            place(&mut payload, candidates_at, devices());
            assert_asks(&result_of(&payload));
            assert_asks(&json!({"structuredContent": payload}).to_string());
        }
    }
}

#[test]
fn the_text_comes_before_structured_content_and_that_before_meta() {
    let payload = |name: &str| json!({"code": CODE, "devices": [{"deviceId": name}, {"deviceId": "other"}]});
    let text = json!([{"type": "text", "text": payload("text").to_string()}]);
    let first = |result: &Value| offered(&result.to_string()).first().map(|(value, _)| value.clone());
    let (structured, meta) = (payload("structured"), payload("meta"));
    let all = json!({"_meta": meta, "structuredContent": structured, "content": text});
    assert_eq!(first(&all).as_deref(), Some("text"));
    let prose = json!([{"type": "text", "text": "Error: several devices match"}]);
    let without_text = json!({"_meta": meta, "structuredContent": structured, "content": prose});
    assert_eq!(first(&without_text).as_deref(), Some("structured"));
    assert_eq!(first(&json!({"_meta": meta, "content": []})).as_deref(), Some("meta"));
    // Where the text has the code but no list, the next document may have both.
    let bare = json!([{"type": "text", "text": json!({"code": CODE}).to_string()}]);
    assert_eq!(
        first(&json!({"structuredContent": structured, "content": bare})).as_deref(),
        Some("structured")
    );
}

#[test]
fn a_list_without_the_code_beside_it_belongs_to_nothing() {
    let bare = json!([{"type": "text", "text": json!({"code": CODE}).to_string()}]);
    assert_passes(&json!({"content": bare, "structuredContent": {"devices": devices()}}).to_string());
}

#[test]
fn another_code_is_another_refusal() {
    assert_passes(&result_of(
        &json!({"code": "device_owned_by_other_session", "error": {"code": CODE}, "devices": devices()}),
    ));
    let text = json!({"code": "other", "note": CODE}).to_string();
    let structured = json!({"code": CODE, "devices": devices()});
    assert_passes(
        &json!({"content": [{"type": "text", "text": text}], "structuredContent": structured}).to_string(),
    );
    assert_passes(&result_of(
        &json!({"code": "Ambiguous_Device_Target", "devices": devices(), "note": CODE}),
    ));
    assert_passes(&result_of(&json!({"code": format!("{CODE} "), "devices": devices()})));
    // A code that is no string is none, so the next path is asked.
    assert_asks(&result_of(&json!({"code": 409, "error": {"code": CODE}, "devices": devices()})));
}

#[test]
fn only_the_first_content_block_and_only_text_is_read() {
    let text = json!({"code": CODE, "devices": devices()}).to_string();
    for content in [
        json!([{"type": "text", "text": "first"}, {"type": "text", "text": text}]),
        json!([{"type": "resource", "text": text}]),
        json!([{"text": text}]),
        json!([{"type": "text", "text": {"code": CODE, "devices": devices()}}]),
        json!([[{"type": "text", "text": text}]]),
        json!({"0": {"type": "text", "text": text}}),
        json!(text),
        json!([]),
        json!(null),
    ] {
        assert_passes(&json!({"content": content, "isError": true}).to_string());
    }
}

#[test]
fn a_text_that_is_not_one_json_document_is_prose() {
    let payload = json!({"code": CODE, "devices": devices()}).to_string();
    for text in [
        format!("Error: {payload}"),
        format!("{payload} and more"),
        payload[..payload.len() - 1].to_owned(),
        format!("\u{feff}{payload}"),
        json!(payload).to_string(),
        format!("[{payload}]"),
        format!("`{payload}`"),
    ] {
        assert_passes(&json!({"content": [{"type": "text", "text": text}]}).to_string());
    }
    let spaced = format!("\n {payload}\t\n");
    assert_asks(&json!({"content": [{"type": "text", "text": spaced}]}).to_string());
}

#[test]
fn a_result_that_is_a_question_or_a_task_is_no_refusal() {
    for kind in [json!("input_required"), json!("task"), json!("Complete"), json!(null), json!(1)] {
        let result = json!({"resultType": kind, "structuredContent": {"code": CODE, "devices": devices()}});
        assert_passes(&result.to_string());
    }
}

#[test]
fn fewer_than_two_candidates_are_no_choice() {
    for devices in [
        json!([]),
        json!([{"deviceId": "a"}]),
        json!([{"deviceId": "a"}, {"deviceId": "a", "platform": "ios"}]),
        json!([{"deviceId": "a"}, {"deviceId": 7}, {"deviceId": null}, {"deviceId": ["b"]}, {"id": "b"}, "b", null]),
        json!([{"deviceId": "a"}, {"deviceId": ""}]),
        json!({"0": {"deviceId": "a"}, "1": {"deviceId": "b"}}),
        json!("two"),
        json!(null),
    ] {
        assert_passes(&result_of(&json!({"code": CODE, "candidates": devices})));
    }
    // The first array decides: what another path offers is not added.
    assert_passes(&result_of(
        &json!({"code": CODE, "candidates": [{"deviceId": "a"}], "devices": devices()}),
    ));
    assert_asks(&result_of(&json!({"code": CODE, "candidates": "see below", "devices": devices()})));
}

#[test]
fn values_that_are_no_strings_are_skipped_and_duplicates_offered_once() {
    let devices = json!([
        {"deviceId": 5554, "platform": "android"},
        {"deviceId": "b", "platform": "ios"},
        {"deviceId": "a", "platform": "android"},
        {"deviceId": true},
        {"deviceId": "b", "platform": "tvos"},
    ]);
    let read = offered(&result_of(&json!({"code": CODE, "devices": devices})));
    assert_eq!(read, [("b".to_owned(), "b (ios)".to_owned()), ("a".to_owned(), "a (android)".to_owned())]);
}

#[test]
fn a_call_that_carries_the_argument_is_not_asked_about() {
    let result = result_of(&json!({"code": CODE, "devices": devices()}));
    assert!(Rules::presets().read(&result, |key| key == "deviceId").is_none());
    assert!(Rules::presets().read(&result, |key| key == "device").is_some());
}

#[test]
fn a_title_falls_back_to_the_value() {
    let devices = json!([
        {"deviceId": "a"},
        {"deviceId": "b", "platform": null},
        {"deviceId": "c", "platform": {"os": "ios"}},
        {"deviceId": "d", "platform": 17.50},
        {"deviceId": "e", "platform": true},
        {"deviceId": "f", "platform": "x".repeat(5_000)},
        {"deviceId": "g", "platform": ""},
    ]);
    let titles: Vec<_> = offered(&result_of(&json!({"code": CODE, "devices": devices})))
        .into_iter()
        .map(|(_, title)| title)
        .collect();
    assert_eq!(titles, ["a", "b", "c", "d (17.5)", "e (true)", "f", "g ()"]);
}

#[test]
fn s26_a_title_shows_what_would_hide() {
    let devices = json!([{"deviceId": "a\u{202e}b", "platform": "ios\n\u{1b}[2J"}, {"deviceId": "c"}]);
    let read = offered(&result_of(&json!({"code": CODE, "devices": devices})));
    assert_eq!(read[0], ("a\u{202e}b".to_owned(), "a\\u{202e}b (ios\\u{a}\\u{1b}[2J)".to_owned()));
}

#[test]
fn candidates_that_read_alike_are_told_apart_by_their_values() {
    let rule = Rule::new(RuleSource { title: "{name}".into(), ..source() }).unwrap();
    let rules = Rules::configured([Entry::Rule(Box::new(rule))]);
    let devices = json!([
        {"deviceId": "a", "name": "Pixel"},
        {"deviceId": "b", "name": "Pixel"},
        {"deviceId": "c", "name": "iPhone"},
    ]);
    let ambiguity = read_by(&rules, &result_of(&json!({"code": CODE, "devices": devices}))).unwrap();
    let titles: Vec<_> = ambiguity.candidates.iter().map(|candidate| candidate.title.as_str()).collect();
    assert_eq!(titles, ["Pixel [a]", "Pixel [b]", "iPhone"]);
}

#[test]
fn a_candidate_keeps_its_own_bytes() {
    let text = format!(
        r#"{{"code":"{CODE}","devices":[{{"deviceId":"a", "n":1.0e0}},{{"deviceId":"b","n":9007199254740993}}]}}"#
    );
    let ambiguity = read(&json!({"content": [{"type": "text", "text": text}]}).to_string()).unwrap();
    let whole: Vec<_> = ambiguity.candidates.iter().map(|candidate| candidate.whole.get()).collect();
    assert_eq!(whole, [r#"{"deviceId":"a", "n":1.0e0}"#, r#"{"deviceId":"b","n":9007199254740993}"#]);
}

#[test]
fn a_candidate_is_unchanged_when_all_its_members_are() {
    let candidate = |whole: &str| Candidate {
        value: "a".into(),
        title: "a".into(),
        whole: RawValue::from_string(whole.into()).unwrap(),
    };
    let one = candidate(r#"{"deviceId":"a","state":"booted","n":1}"#);
    assert!(one.is_unchanged_in(&candidate(r#"{ "n":1.0, "state":"booted","deviceId":"\u0061"}"#)));
    assert!(!one.is_unchanged_in(&candidate(r#"{"deviceId":"a","state":"shutdown","n":1}"#)));
    assert!(!one.is_unchanged_in(&candidate(r#"{"deviceId":"a","state":"booted"}"#)));
    let twofold = candidate(r#"{"deviceId":"a","deviceId":"a"}"#);
    assert!(!twofold.is_unchanged_in(&twofold));
}

#[test]
fn a_refusal_that_offers_more_than_a_question_holds_is_known_as_one() {
    let list = |count: usize| -> Vec<Value> {
        (0..count).map(|index| json!({"deviceId": index.to_string()})).collect()
    };
    let of = |devices: &[Value]| result_of(&json!({"code": CODE, "devices": devices}));
    assert_eq!(offered(&of(&list(MAX_CANDIDATES))).len(), MAX_CANDIDATES);
    assert_eq!(beyond(&of(&list(MAX_CANDIDATES + 1))), Some(Beyond::TooManyCandidates));
    assert_eq!(beyond(&of(&list(10_000))), Some(Beyond::TooManyCandidates));
    // Only what can be chosen counts, and once.
    let padded = [list(MAX_CANDIDATES), list(MAX_CANDIDATES), vec![json!({"deviceId": 7}), json!(null)]];
    assert_eq!(offered(&of(&padded.concat())).len(), MAX_CANDIDATES);
    assert_passes(&of(&vec![json!({"deviceId": "a"}); MAX_CANDIDATES + 1]));
    assert_passes(&of(&[vec![json!({"deviceId": "a"})], vec![json!(0); MAX_CANDIDATES]].concat()));

    let of = |lengths: &[usize]| {
        let device = |(at, length): (usize, &usize)| json!({"deviceId": at.to_string().repeat(*length)});
        of(&lengths.iter().enumerate().map(device).collect::<Vec<_>>())
    };
    assert_eq!(offered(&of(&[1, MAX_VALUE_BYTES])).len(), 2);
    for lengths in [&[1, MAX_VALUE_BYTES + 1][..], &[MAX_VALUE_BYTES + 1, 1, 1], &[5_000, 5_000]] {
        assert_eq!(beyond(&of(lengths)), Some(Beyond::CandidateTooLong), "{lengths:?}");
    }
    // One alone is no choice, however long it is.
    assert_passes(&of(&[MAX_VALUE_BYTES + 1]));
}

#[test]
fn a_refusal_that_is_too_large_to_be_asked_about_is_known_as_one_up_to_a_mebibyte() {
    let padded = |devices: Value, bytes: usize| {
        let mut payload = json!({"code": CODE, "devices": devices, "log": ""});
        let missing = bytes - result_of(&payload).len();
        payload["log"] = "x".repeat(missing).into();
        result_of(&payload)
    };
    assert_asks(&padded(devices(), MAX_REFUSAL_BYTES));
    for bytes in [MAX_REFUSAL_BYTES + 1, MAX_KNOWN_BYTES] {
        assert_eq!(beyond(&padded(devices(), bytes)), Some(Beyond::ResultTooLarge), "{bytes}");
        assert_passes(&padded(json!([{"deviceId": "a"}, {"deviceId": "a"}, {"deviceId": 1}]), bytes));
        assert!(Rules::presets().may_match(padded(devices(), bytes).as_bytes()));
    }
    assert_passes(&padded(devices(), MAX_KNOWN_BYTES + 1));
}

#[test]
fn large_results_are_looked_at_by_their_ends() {
    let may_match = |before: usize, after: usize| {
        let text = format!("{}{CODE}{}", " ".repeat(before), " ".repeat(after));
        Rules::presets().may_match(text.as_bytes())
    };
    let most = LARGEST_WHOLE - CODE.len();
    assert!(may_match(most / 2, most - most / 2));
    assert!(!may_match(most / 2, most - most / 2 + 1));
    assert!(may_match(ENDS - CODE.len(), LARGEST_WHOLE) && may_match(LARGEST_WHOLE, ENDS - CODE.len()));
    assert!(!may_match(ENDS - CODE.len() + 1, LARGEST_WHOLE));
    assert!(!may_match(LARGEST_WHOLE, ENDS - CODE.len() + 1));
    assert!(may_match(0, LARGEST_KNOWN - CODE.len()) && !may_match(0, LARGEST_KNOWN - CODE.len() + 1));
}

#[test]
fn deep_nesting_is_survived() {
    let deep = |inside: &str| "[".repeat(50_000) + inside + &"]".repeat(50_000);
    let structured =
        format!(r#"{{"structuredContent":{{"x":{},"code":"{CODE}","devices":{}}}}}"#, deep(""), devices());
    assert_asks(&structured);
    assert_passes(&format!(r#"{{"structuredContent":{{"code":"{CODE}","devices":{}}}}}"#, deep("1")));
    let nested =
        format!(r#"{{"code":"{CODE}","devices":[{{"deviceId":"a","x":{}}},{{"deviceId":"b"}}]}}"#, deep(""));
    let read = offered(&json!({"content": [{"type": "text", "text": nested}]}).to_string());
    assert_eq!(read.len(), 2);
}

#[test]
fn the_candidates_tool_says_what_can_be_chosen_now() {
    let rule = Rule::new(source()).unwrap();
    assert_eq!(rule.candidates_tool().map(CandidatesTool::name), Some("listDevices"));
    let now = |result: &Value| {
        let candidates = rule.candidates_now(&result.to_string())?;
        Some(candidates.into_iter().map(|candidate| candidate.value).collect::<Vec<_>>())
    };
    let text = json!({"devices": [{"deviceId": "a"}]}).to_string();
    assert_eq!(now(&json!({"content": [{"type": "text", "text": text}]})), Some(vec!["a".to_owned()]));
    assert_eq!(now(&json!({"structuredContent": {"devices": []}})), Some(Vec::new()));
    assert_eq!(now(&json!({"content": [{"type": "text", "text": "none"}]})), None);
    assert_eq!(now(&json!({"resultType": "task", "structuredContent": {"devices": []}})), None);
    assert!(Rule::ambiguous_device_target().candidates_now("{}").is_none());
    let many =
        |count: usize| (0..count).map(|index| json!({"deviceId": index.to_string()})).collect::<Vec<_>>();
    for (count, is_read) in [(MAX_CANDIDATES, true), (MAX_CANDIDATES + 1, false)] {
        assert_eq!(now(&json!({"structuredContent": {"devices": many(count)}})).is_some(), is_read);
    }
}

proptest! {
    /// Anything at all is read without a panic, and nothing is read that the test on bytes would have spared.
    #[test]
    fn arbitrary_text_is_survived(text in r#"[\[\]{}",:\\u0-9a-z_]{0,60}"#, cut in any::<prop::sample::Index>()) {
        prop_assert!(read(&text).is_none());
        let whole = result_of(&json!({"code": CODE, "devices": devices(), "text": text}));
        assert_asks(&whole);
        let cut = &whole[..cut.index(whole.len())];
        prop_assert!(read(cut).is_none());
        let spliced = whole.replacen(CODE, &text, 1);
        prop_assert!(read(&spliced).is_none() || spliced.contains(CODE));
    }

    /// Whatever is offered has distinct, non-empty string values from the list, in its order.
    #[test]
    fn what_is_offered_was_in_the_list(values in prop::collection::vec(
        prop_oneof![
            "[ab]{0,2}".prop_map(Value::from),
            any::<u8>().prop_map(Value::from),
            Just(Value::Null)
        ],
        0..8,
    )) {
        let list: Vec<_> = values.iter().map(|value| json!({"deviceId": value})).collect();
        let mut expected: Vec<&str> = Vec::new();
        for value in values.iter().filter_map(Value::as_str).filter(|value| !value.is_empty()) {
            if !expected.contains(&value) {
                expected.push(value);
            }
        }
        let read = offered(&result_of(&json!({"code": CODE, "devices": list})));
        let read: Vec<_> = read.iter().map(|(value, _)| value.as_str()).collect();
        prop_assert_eq!(read, if expected.len() >= 2 { expected } else { Vec::new() });
    }
}
