//! What callers are told, literally.

use serde_json::Value;
use serde_json::value::RawValue;

use super::super::*;
use crate::canonical::Unbindable;

const ACTION: &str = "Send e-mail";

fn phase1(preview: Option<&RawValue>, mode: Mode) -> Phase1<'_> {
    Phase1 { preview, token: "mcpu.token.v1.x.y", expires_ms: 1_800_000_600_000, ttl_seconds: 600, mode }
}

/// The result without the words of its note and instruction, which are there.
#[track_caller]
fn shape(told: &Told) -> String {
    let mut read: Value = serde_json::from_str(told.text()).unwrap();
    for words in ["note", "instruction"] {
        if let Some(text) = read.get_mut(words) {
            assert!(text.as_str().is_some_and(|text| text.starts_with("Nothing was done")), "{text}");
            *text = "…".into();
        }
    }
    format!("{}{read}", if told.is_error() { "error " } else { "" })
}

#[test]
fn the_first_call_gets_a_preview_and_a_token() {
    let preview: &RawValue = serde_json::from_str(r#"{"to": "a@b", "n": 1.0}"#).unwrap();
    let told = Told::confirmation_required(ACTION, &phase1(Some(preview), Mode::AskUser));
    assert_eq!(
        shape(&told),
        r#"{"status":"confirmation-required","confirmed":false,"dispatched":false,"action":"Send e-mail","preview":{"to":"a@b","n":1.0},"confirmToken":"mcpu.token.v1.x.y","expiresAt":"2027-01-15T08:10:00.000Z","ttlSeconds":600,"instruction":"…"}"#
    );
    assert!(told.text().contains(r#""preview":{"to": "a@b", "n": 1.0},"#), "the preview keeps its bytes");
    assert!(told.text().contains("Show the preview to the user"));
    let told = Told::confirmation_required(ACTION, &phase1(None, Mode::Auto));
    assert!(told.text().contains(r#""preview":null,"#));
    assert!(!told.text().contains("the user"), "in this mode the model may go on by itself");
}

#[test]
fn a_rejection_has_its_code_and_reason() {
    for (rejection, members) in [
        (Rejection::BadMac, r#""error":"TOKEN_INVALID""#),
        (Rejection::Reused, r#""error":"TOKEN_REUSED""#),
        (Rejection::Expired, r#""error":"TOKEN_EXPIRED""#),
        (Rejection::RevisionChanged, r#""error":"DRAFT_CHANGED","reason":"revision-changed""#),
        (Rejection::PayloadChanged, r#""error":"DRAFT_CHANGED","reason":"payload-changed""#),
        (Rejection::StoreUnavailable, r#""error":"SPENT_STORE_UNAVAILABLE""#),
    ] {
        let head = r#"error {"status":"confirmation-rejected","confirmed":false,"dispatched":false"#;
        let expected = format!(r#"{head},{members},"action":"Send e-mail","note":"…"}}"#);
        assert_eq!(shape(&Told::rejected(ACTION, rejection, None)), expected);
        let fresh = phase1(None, Mode::AskUser);
        let with_fresh = shape(&Told::rejected(ACTION, rejection, Some(&fresh)));
        let has_token =
            with_fresh.contains(r#""preview":null,"confirmToken":"mcpu.token.v1.x.y","expiresAt""#);
        assert_eq!(has_token, rejection.code() == "DRAFT_CHANGED", "{with_fresh}");
    }
}

#[test]
fn every_other_case_is_told_apart() {
    for (told, expected) in [
        (
            Told::declined(ACTION),
            r#"{"confirmed":false,"dispatched":false,"cancelled":true,"action":"Send e-mail","note":"…"}"#,
        ),
        (
            Told::not_confirmed(ACTION),
            r#"error {"status":"confirmation-rejected","confirmed":false,"dispatched":false,"error":"NOT_CONFIRMED","action":"Send e-mail","note":"…"}"#,
        ),
        (
            Told::cancelled(ACTION),
            r#"{"confirmed":false,"dispatched":false,"cancelled":true,"action":"Send e-mail","reason":"cancelled","note":"…"}"#,
        ),
        (
            Told::timed_out(ACTION),
            r#"{"confirmed":false,"dispatched":false,"cancelled":true,"action":"Send e-mail","reason":"timeout","note":"…"}"#,
        ),
        (
            Told::not_shown(ACTION),
            r#"{"confirmed":false,"dispatched":false,"action":"Send e-mail","reason":"confirmation-not-shown","note":"…"}"#,
        ),
        (
            Told::state_missing(ACTION),
            r#"error {"status":"confirmation-rejected","confirmed":false,"dispatched":false,"error":"STATE_MISSING","action":"Send e-mail","note":"…"}"#,
        ),
        (
            Told::pending(ACTION, "0192-ask"),
            r#"{"status":"confirmation-pending","confirmed":false,"dispatched":false,"action":"Send e-mail","ask":"0192-ask","note":"…"}"#,
        ),
        (
            Told::unsupported(ACTION, NoTokens::Mode.remedy(), true),
            r#"{"confirmed":false,"dispatched":false,"action":"Send e-mail","reason":"confirmation-unsupported","note":"…"}"#,
        ),
        (
            Told::unbindable(ACTION, Unbindable::DuplicateKey),
            r#"error {"status":"confirmation-rejected","confirmed":false,"dispatched":false,"error":"unbindable-arguments","reason":"duplicate-key","action":"Send e-mail","note":"…"}"#,
        ),
    ] {
        assert_eq!(shape(&told), expected);
    }
    for (forms, words) in [(true, "supports elicitation"), (false, "MCP_CONFIRM_ELICITATION")] {
        let told = Told::unsupported(ACTION, NoTokens::Mode.remedy(), forms);
        assert!(told.text().contains("MCP_CONFIRM_MODE") && told.text().contains(words), "{}", told.text());
    }
}

#[test]
fn only_a_decline_says_that_somebody_declined() {
    for told in [
        Told::cancelled(ACTION),
        Told::timed_out(ACTION),
        Told::not_shown(ACTION),
        Told::not_confirmed(ACTION),
    ] {
        assert!(!told.text().contains("declined"), "{}", told.text());
    }
}

#[test]
fn a_result_is_one_text_block() {
    let told = Told::declined("Say \"hi\"");
    let result: Value = serde_json::from_str(&told.to_result()).unwrap();
    assert_eq!(result["content"][0]["text"].as_str(), Some(told.text()));
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1));
    assert!(result.get("isError").is_none() && result.get("structuredContent").is_none());
    let inner: Value = serde_json::from_str(told.text()).unwrap();
    assert_eq!(inner["action"], "Say \"hi\"");
    assert!(Told::not_confirmed(ACTION).to_result().ends_with(r#""isError":true}"#));
}

#[test]
fn a_time_beyond_all_calendars_is_the_last_one() {
    let last = Phase1 { expires_ms: u64::MAX, ..phase1(None, Mode::AskUser) };
    assert!(Told::confirmation_required(ACTION, &last).text().contains(r#""expiresAt":"9999-12-30T"#));
}
