//! The question as each era has it, literally, and answers of every kind.

use proptest::prelude::*;

use super::*;
use crate::refusal::{Refusal, Rules};

const OFFERED: [&str; 2] = ["emulator-5554", "A1B2"];

fn ambiguity() -> Ambiguity {
    let devices = json!([
        {"deviceId": "emulator-5554", "platform": "android"},
        {"deviceId": "A1B2", "platform": "ios"},
    ]);
    let result = json!({"structuredContent": {"code": "ambiguous_device_target", "devices": devices}});
    Rules::presets().read(&result.to_string(), |_| false).and_then(Refusal::ambiguity).unwrap()
}

#[test]
fn a_form_of_2025_06_18_has_enum_names_and_no_mode() {
    assert_eq!(
        elicitation_params(&ambiguity(), "tapOn", FormDialect::of_version("2025-06-18")),
        r#"{"message":"Which device should tapOn use?","requestedSchema":{"type":"object","properties":{"deviceId":{"type":"string","enum":["emulator-5554","A1B2"],"enumNames":["emulator-5554 (android)","A1B2 (ios)"]}},"required":["deviceId"]}}"#
    );
}

#[test]
fn a_form_of_2025_11_25_and_later_has_titled_choices_and_a_mode() {
    let form = r#"{"mode":"form","message":"Which device should tapOn use?","requestedSchema":{"type":"object","properties":{"deviceId":{"type":"string","oneOf":[{"const":"emulator-5554","title":"emulator-5554 (android)"},{"const":"A1B2","title":"A1B2 (ios)"}]}},"required":["deviceId"]}}"#;
    for version in ["2025-11-25", "2026-07-28", "2027-01-01", "draft"] {
        assert_eq!(elicitation_params(&ambiguity(), "tapOn", FormDialect::of_version(version)), form);
    }
    assert_eq!(FormDialect::of_version("2025-03-26"), FormDialect::EnumNames);
}

#[test]
fn an_input_request_names_the_question_after_its_argument() {
    assert_eq!(
        input_requests(&ambiguity(), "tapOn"),
        r#"{"deviceChoice":{"method":"elicitation/create","params":{"mode":"form","message":"Which device should tapOn use?","requestedSchema":{"type":"object","properties":{"deviceId":{"type":"string","oneOf":[{"const":"emulator-5554","title":"emulator-5554 (android)"},{"const":"A1B2","title":"A1B2 (ios)"}]}},"required":["deviceId"]}}}}"#
    );
    for (argument, key) in [
        ("deviceId", "deviceChoice"),
        ("device_id", "deviceChoice"),
        ("account", "accountChoice"),
        ("Id", "IdChoice"),
        ("id", "idChoice"),
        ("grid", "gridChoice"),
    ] {
        assert_eq!(response_key(argument), key);
    }
}

#[test]
fn s26_a_hostile_name_stays_inside_its_string_and_shows() {
    let params = elicitation_params(&ambiguity(), "x\"}\u{1}\u{2028}\\", FormDialect::OneOf);
    let read: Value = serde_json::from_str(&params).unwrap();
    assert_eq!(read["message"], r#"Which device should x"}\u{1}\u{2028}\ use?"#);
}

fn answer(result: &str) -> Answer {
    Answer::read(result, "deviceId", OFFERED)
}

#[track_caller]
fn assert_accepts(answer: &Answer, value: &str) {
    let Answer::Accept(chosen) = answer else { panic!("{answer:?}") };
    assert_eq!(chosen.as_str(), value);
}

#[test]
fn an_offered_value_is_accepted() {
    assert_accepts(&answer(r#"{"action":"accept","content":{"deviceId":"A1B2"}}"#), "A1B2");
    assert_accepts(&answer(r#" { "content" : {"deviceId":"\u00411B2"}, "action":"accept" } "#), "A1B2");
    // MCP allows members beside the known ones.
    assert_accepts(
        &answer(r#"{"_meta":{},"action":"accept","content":{"x":1,"deviceId":"A1B2","y":[]}}"#),
        "A1B2",
    );
}

#[test]
fn a_decline_and_a_cancel_are_told_apart() {
    assert_eq!(answer(r#"{"action":"decline"}"#), Answer::Decline);
    assert_eq!(answer(r#"{"action":"cancel"}"#), Answer::Cancel);
    // What they carry beside the action is nobody's choice.
    assert_eq!(answer(r#"{"action":"decline","content":{"deviceId":"A1B2"}}"#), Answer::Decline);
    assert_eq!(answer(r#"{"action":"cancel","content":null}"#), Answer::Cancel);
}

#[test]
fn a_value_that_was_not_offered_is_invalid() {
    for value in [r#""b""#, r#""a1b2""#, r#"" A1B2""#, r#""A1B2 (ios)""#, r#""""#, r#""A1B2\u0000""#] {
        let result = format!(r#"{{"action":"accept","content":{{"deviceId":{value}}}}}"#);
        assert_eq!(answer(&result), Answer::Invalid(InvalidAnswer::NotOffered), "{result}");
    }
}

#[test]
fn an_acceptance_without_the_argument_is_invalid() {
    for content in ["{}", r#"{"device":"A1B2"}"#, r#"{"DeviceId":"A1B2"}"#, r#"{"deviceChoice":"A1B2"}"#] {
        let result = format!(r#"{{"action":"accept","content":{content}}}"#);
        assert_eq!(answer(&result), Answer::Invalid(InvalidAnswer::Missing), "{result}");
    }
}

#[test]
fn what_is_not_shaped_like_an_answer_is_invalid() {
    for result in [
        "",
        "null",
        "[]",
        r#""accept""#,
        "{}",
        r#"{"action":null}"#,
        r#"{"action":true}"#,
        r#"{"action":"Accept","content":{"deviceId":"A1B2"}}"#,
        r#"{"action":"accept "}"#,
        r#"{"action":"accept"}"#,
        r#"{"action":"accept","content":null}"#,
        r#"{"action":"accept","content":"A1B2"}"#,
        r#"{"action":"accept","content":["A1B2"]}"#,
        r#"{"action":"accept","content":{"deviceId":["A1B2"]}}"#,
        r#"{"action":"accept","content":{"deviceId":null}}"#,
        r#"{"action":"accept","content":{"deviceId":1}}"#,
        r#"{"action":"accept","content":{"deviceId":"A1B2","deviceId":"A1B2"}}"#,
        r#"{"action":"accept","content":{"deviceId":"A1B2","device\u0049d":"A1B2"}}"#,
        r#"{"action":"accept","content":{"deviceId":"\ud800"}}"#,
        r#"{"action":"decline","action":"accept","content":{"deviceId":"A1B2"}}"#,
        r#"{"action":"accept","content":{"deviceId":"A1B2"},"content":{"deviceId":"A1B2"}}"#,
        r#"{"action":"accept","content":{"deviceId":"A1B2"}} x"#,
        r#"["accept",{"deviceId":"A1B2"}]"#,
    ] {
        assert_eq!(answer(result), Answer::Invalid(InvalidAnswer::Malformed), "{result}");
    }
}

#[test]
fn a_retrys_responses_are_read_under_the_questions_key() {
    let read = |responses: Option<&str>| Answer::read_responses(responses, "deviceId", OFFERED);
    let accepted = r#"{"action":"accept","content":{"deviceId":"A1B2"}}"#;
    assert_accepts(&read(Some(&format!(r#"{{"other":1,"deviceChoice":{accepted}}}"#))), "A1B2");
    assert_eq!(read(Some(r#"{"deviceChoice":{"action":"decline"}}"#)), Answer::Decline);
    for responses in [None, Some("{}"), Some(r#"{"deviceId":{"action":"decline"}}"#)] {
        assert_eq!(read(responses), Answer::Invalid(InvalidAnswer::Missing), "{responses:?}");
    }
    let twice = format!(r#"{{"deviceChoice":{accepted},"deviceChoice":{accepted}}}"#);
    for responses in ["null", "[]", "", "{", r#"{"deviceChoice":null}"#, r#"{"deviceChoice":{}}"#, &twice] {
        assert_eq!(read(Some(responses)), Answer::Invalid(InvalidAnswer::Malformed), "{responses}");
    }
}

#[test]
fn answers_stay_out_of_debug_output() {
    let shown = format!("{:?}", answer(r#"{"action":"accept","content":{"deviceId":"A1B2"}}"#));
    assert_eq!(shown, "Accept(Chosen(•))");
}

proptest! {
    /// Anything at all is an answer of some kind, and an acceptance names an offered value.
    #[test]
    fn arbitrary_answers_are_survived(
        text in r#"[\[\]{}",:\\ a-zA-Z0-9]{0,60}"#,
        action in "accept|decline|cancel|[a-z]{0,3}",
        value in "A1B2|emulator-5554|[AB12]{0,5}",
    ) {
        let _ = answer(&text);
        let _ = Answer::read_responses(Some(&text), "deviceId", OFFERED);
        let result = json!({"action": action, "content": {"deviceId": value}}).to_string();
        let is_accepted = matches!(answer(&result), Answer::Accept(_));
        prop_assert_eq!(is_accepted, action == "accept" && OFFERED.contains(&value.as_str()));
    }
}
