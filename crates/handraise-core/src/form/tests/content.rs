//! Answers → content (AC-10 … AC-12j, AC-55, AC-56).

use serde_json::json;

use super::*;

#[test]
fn ac10_a_pick_is_sent_at_the_schemas_own_key() {
    assert_eq!(
        content(&form(datastore()), &[pick("question_0", &["SQLite"])]),
        json!({"question_0": "SQLite"})
    );
}

#[test]
fn ac11a_ac56_text_of_a_question_without_companion_goes_to_its_own_key() {
    let form = form(json!({"apiKey": {"type": "string"}}));
    assert_eq!(content(&form, &[text("apiKey", "T")]), json!({"apiKey": "T"}));
}

#[test]
fn ac12_two_picks_are_an_array() {
    let form = form(
        json!({"q": {"type": "array", "items": {"anyOf": [{"const": "a"}, {"const": "b"}, {"const": "c"}]}}}),
    );
    assert_eq!(content(&form, &[pick("q", &["a", "c"])]), json!({"q": ["a", "c"]}));
}

#[test]
fn ac12a_text_is_trimmed() {
    let answers = [both("question_0", &["Postgres"], " CockroachDB ")];
    assert_eq!(content(&form(datastore()), &answers)["question_0_custom"], "CockroachDB");
    let bom = [text("question_0", "\u{feff}\u{a0}x\n")];
    assert_eq!(content(&form(datastore()), &bom), json!({"question_0_custom": "x"}));
}

#[test]
fn ac12b_nothing_answered_is_accepted_as_nothing() {
    assert_eq!(content(&form(datastore()), &[]), json!({}));
    assert_eq!(content(&form(datastore()), &[pick("question_0", &[])]), json!({}));
}

#[test]
fn ac12c_the_refusal_fallback_dialog_is_one_question_of_two_choices() {
    let form = form(json!({"choice": {"type": "string", "oneOf": [
        {"const": "retry_fallback", "title": "Retry with Opus"}, {"const": "cancelled", "title": "Keep"}]}}));
    let question = &form.questions()[0];
    assert_eq!((question.prompt.as_str(), question.title.as_deref()), ("The message", None));
    assert_eq!(values(question), ["retry_fallback", "cancelled"]);
    assert!(!question.allows_text);
    assert_eq!(content(&form, &[pick("choice", &["retry_fallback"])]), json!({"choice": "retry_fallback"}));
}

#[test]
fn ac12h_unanswered_questions_contribute_no_key() {
    let form = form(json!({"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "integer"}}));
    assert_eq!(content(&form, &[pick("b", &["false"])]), json!({"b": false}));
    let blank = [text("a", ""), pick("b", &["true"]), text("c", " ")];
    assert_eq!(content(&form, &blank), json!({"b": true}));
}

#[test]
fn ac12i_text_replaces_a_selection_by_default() {
    let answers = [both("question_0", &["Postgres"], "v16")];
    assert_eq!(content(&form(datastore()), &answers), json!({"question_0_custom": "v16"}));
}

#[test]
fn ac12i_text_stands_beside_a_selection_where_the_agent_adds() {
    let form = try_map(&json!({"properties": datastore()}), &ADDS).unwrap().form;
    assert_eq!(form.questions()[0].companion, Some(Companion::Adds));
    let answers = [both("question_0", &["Postgres"], "v16")];
    assert_eq!(content(&form, &answers), json!({"question_0": "Postgres", "question_0_custom": "v16"}));
    assert_eq!(content(&form, &[text("question_0", "v16")]), json!({"question_0_custom": "v16"}));
}

#[test]
fn ac12j_whitespace_is_no_text() {
    assert_eq!(content(&form(datastore()), &[text("question_0", " \t\n")]), json!({}));
    let picked = [both("question_0", &["Postgres"], "   ")];
    assert_eq!(content(&form(datastore()), &picked), json!({"question_0": "Postgres"}));
}

#[test]
fn text_at_a_choice_question_without_companion_is_dropped() {
    let form = form(json!({"q": {"type": "string", "enum": ["a", "b"]}}));
    assert_eq!(content(&form, &[both("q", &["a"], "words")]), json!({"q": "a"}));
    assert_eq!(content(&form, &[text("q", "words")]), json!({}));
}

#[test]
fn f12_ac55_selections_are_sent_in_declaration_order() {
    let form = form(json!({"q": {"type": "array", "items": {"anyOf": [
        {"const": "dev"}, {"const": "staging"}, {"const": "prod"}]}}}));
    assert_eq!(content(&form, &[pick("q", &["prod", "dev"])]), json!({"q": ["dev", "prod"]}));
}

#[test]
fn booleans_and_numbers_are_sent_as_json_types() {
    let form = form(json!({"b": {"type": "boolean"}, "i": {"type": "integer"}, "n": {"type": "number"}}));
    let answers = [pick("b", &["true"]), text("i", " 30.0 "), text("n", "-2.5e1")];
    assert_eq!(content(&form, &answers), json!({"b": true, "i": 30, "n": -25.0}));
}

#[test]
fn content_stands_in_presentation_order_whatever_the_order_of_the_answers() {
    let form = form(json!({"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}}));
    let content = content(&form, &[text("c", "3"), text("a", "1"), text("b", "2")]);
    assert_eq!(content.to_string(), r#"{"a":"1","b":"2","c":"3"}"#);
}
