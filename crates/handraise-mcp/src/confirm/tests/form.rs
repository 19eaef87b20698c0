//! The form, and what confirms.

use super::super::*;
use crate::question::FormDialect;

#[test]
fn a_form_has_one_required_field_without_a_default() {
    assert_eq!(
        confirm_params("Send it?", "Send e-mail", FormDialect::OneOf),
        r#"{"mode":"form","message":"Send it?","requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean","title":"Send e-mail","description":"Yes, do it now."}},"required":["confirm"]}}"#
    );
    assert_eq!(
        confirm_params("Send it?", "Send e-mail", FormDialect::EnumNames),
        r#"{"message":"Send it?","requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean","title":"Send e-mail","description":"Yes, do it now."}},"required":["confirm"]}}"#
    );
}

#[test]
fn only_true_confirms() {
    for confirmed in [
        r#"{"action":"accept","content":{"confirm":true}}"#,
        r#"{"content":{"note":"x","confirm": true },"action":"accept","_meta":{}}"#,
    ] {
        assert_eq!(ConfirmAnswer::read(confirmed), ConfirmAnswer::Confirmed);
    }
    for content in [
        "{}",
        "null",
        "[]",
        "true",
        r#"{"confirm":false}"#,
        r#"{"confirm":"true"}"#,
        r#"{"confirm":1}"#,
        r#"{"confirm":null}"#,
        r#"{"confirm":[true]}"#,
        r#"{"confirm":true,"confirm":true}"#,
        r#"{"confirm":false,"confirm":true}"#,
        r#"{"Confirm":true}"#,
        r#"{"content":{"confirm":true}}"#,
    ] {
        let answer = ConfirmAnswer::read(&format!(r#"{{"action":"accept","content":{content}}}"#));
        assert_eq!(answer, ConfirmAnswer::NotConfirmed, "{content}");
    }
    assert_eq!(ConfirmAnswer::read(r#"{"action":"accept"}"#), ConfirmAnswer::NotConfirmed);
    assert_eq!(ConfirmAnswer::read(r#"{"action":"accept","confirm":true}"#), ConfirmAnswer::NotConfirmed);
}

#[test]
fn other_actions_confirm_nothing() {
    let confirm = r#""content":{"confirm":true}"#;
    for (action, expected) in [
        (r#""decline""#, ConfirmAnswer::Decline),
        (r#""cancel""#, ConfirmAnswer::Cancel),
        (r#""Accept""#, ConfirmAnswer::Malformed),
        ("null", ConfirmAnswer::Malformed),
        ("true", ConfirmAnswer::Malformed),
    ] {
        assert_eq!(ConfirmAnswer::read(&format!(r#"{{"action":{action},{confirm}}}"#)), expected);
    }
    for result in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"content":{"confirm":true}}"#,
        r#"["accept",{"confirm":true}]"#,
        r#"{"action":"decline","action":"accept","content":{"confirm":true}}"#,
        r#"{"action":"accept","content":{"confirm":true},"content":{"confirm":true}}"#,
    ] {
        assert_eq!(ConfirmAnswer::read(result), ConfirmAnswer::Malformed, "{result}");
    }
}
