//! Schemas and answers that somebody made up to break something.

use serde_json::json;

use super::*;
use crate::form::IgnoredPart;
use crate::words::Kind;

fn marked(question: &str) -> Value {
    json!({"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": question}}})
}

#[test]
fn any_text_is_a_key() {
    let keys = ["", "__proto__", "constructor", " ", "a\u{0}b", "\u{202e}x", "é", "e\u{301}", "{\"a\":1}"];
    let properties: serde_json::Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
    let form = form(Value::Object(properties));
    assert_eq!(ids(&form), keys, "also those that only look alike");
    let answers: Vec<Answer> = keys.iter().map(|key| text(key, key.trim()).clone()).collect();
    let sent = content(&form, &answers);
    assert_eq!(sent["e\u{301}"], "e\u{301}", "nothing is normalised");
    assert_eq!(sent.as_object().unwrap().len(), keys.len() - 2, "two of the texts are blank");
}

#[test]
fn of_a_repeated_key_the_last_value_counts() {
    let schema = r#"{"properties":{"a":{"type":"string"},"b":{"type":"string"},"a":{"type":"boolean"}}}"#;
    let form = try_map(&serde_json::from_str(schema).unwrap(), &FormProfile::acp()).unwrap().form;
    let shapes: Vec<_> = form.questions().iter().map(|q| (q.id.as_str(), q.kind)).collect();
    assert_eq!(shapes, [("a", Kind::Boolean), ("b", Kind::Text)]);
}

#[test]
fn f10_errors_name_their_question_however_long_its_key_is() {
    let key = "k".repeat(250_000);
    let form = form(json!({key.clone(): {"type": "integer"}}));
    for answers in [vec![text(&key, "x")], vec![text(&key, "1"), text(&key, "1")]] {
        let errors = form.answer(&answers, ELICITATION).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].question_id == key, "{} bytes", errors[0].question_id.len());
    }
    let unknown = form.answer(&[text(&"x".repeat(250_000), "1")], ELICITATION).unwrap_err();
    assert!(unknown[0].question_id.len() < 100, "what is no question of ours is not repeated at length");
}

#[test]
fn ac18_properties_that_are_companions_of_each_other_are_no_question() {
    let circle = json!({"properties": {"a": marked("b"), "b": marked("a"), "c": marked("c")}});
    assert_eq!(try_map(&circle, &FormProfile::acp()), Err(Refusal::NoQuestions));
}

#[test]
fn a_companion_is_optional_even_where_the_schema_requires_it() {
    let schema = json!({"properties": {"q": {"type": "string", "enum": ["x"]}, "note": marked("q")}, "required": ["note"]});
    let form = try_map(&schema, &FormProfile::acp()).unwrap().form;
    assert!(!form.questions()[0].required);
    assert_eq!(content(&form, &[pick("q", &["x"])]), json!({"q": "x"}));
}

#[test]
fn ac12b_defaults_are_never_sent_unseen() {
    let form = form(json!({
        "t": {"type": "string", "default": "bob"},
        "b": {"type": "boolean", "default": true},
        "n": {"type": "number", "default": 1.5},
        "s": {"type": "string", "enum": ["x"], "default": "x"},
        "m": {"type": "array", "items": {"enum": ["x"]}, "default": ["x"]},
    }));
    assert!(form.questions().iter().all(|question| question.default.is_some()));
    assert_eq!(content(&form, &[]), json!({}));
}

#[test]
fn numbers_at_the_edges_are_kept_as_they_are() {
    let form = form(json!({
        "n": {"type": "number", "minimum": -1e308, "maximum": 1e308, "default": -0.0},
        "i": {"type": "integer", "maximum": 9_007_199_254_740_992.0, "default": 9_007_199_254_740_993_u64},
    }));
    assert_eq!(form.questions()[1].default, Some(json!(9_007_199_254_740_993_u64)));
    assert_eq!(content(&form, &[text("n", "1e308")]), json!({"n": 1e308}));
    assert_eq!(broken(&form, &[text("n", "1.1e308")]), [Rule::Maximum]);
    assert_eq!(content(&form, &[text("i", "9007199254740992.0")]), json!({"i": 9_007_199_254_740_992_u64}));
    assert_eq!(broken(&form, &[text("i", "9007199254740993")]), [Rule::Maximum]);
    let errors = form.answer(&[text("i", "1e300")], ELICITATION).unwrap_err();
    assert_eq!(errors[0].message, "“1e300” is too large to be sent exactly.");
}

#[test]
fn f10_constraints_that_nothing_satisfies_leave_the_question_unanswerable_and_the_form_usable() {
    let form = form(json!({
        "t": {"type": "string", "minLength": 9, "maxLength": 1},
        "m": {"type": "array", "items": {"enum": ["x"]}, "minItems": 2},
        "n": {"type": "number", "minimum": 2, "maximum": 1},
        "ok": {"type": "boolean"},
    }));
    let all = [text("t", "abc"), pick("m", &["x"]), text("n", "1.5"), pick("ok", &["true"])];
    assert_eq!(broken(&form, &all), [Rule::MinLength, Rule::MaxLength, Rule::MinItems, Rule::Minimum]);
    assert_eq!(content(&form, &all[3..]), json!({"ok": true}));
}

#[test]
fn limits_hold_together() {
    // As many properties as fit, each with the most choices: the text is too large long before.
    let choices: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let properties: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("q{n}"), json!({"type": "string", "enum": choices}))).collect();
    let schema = json!({ "properties": properties });
    assert_eq!(try_map(&schema, &FormProfile::acp()).map_err(|r| r.code()), Err("schema_too_large"));
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    assert_eq!(try_map(&deep, &FormProfile::acp()).map_err(|r| r.code()), Err("too_deep"));
}

#[test]
fn what_looks_blank_but_is_no_whitespace_is_text() {
    let form = form(json!({"q": {"type": "string"}}));
    for blank in ["\u{a0}", "\u{2003}\u{3000}", "\u{feff}\n", "\u{2028}"] {
        assert_eq!(content(&form, &[text("q", blank)]), json!({}), "{blank:?}");
    }
    for said in ["\u{0}", "\u{200b}", "\u{202e}"] {
        assert_eq!(content(&form, &[text("q", said)]), json!({"q": said}), "{said:?}");
    }
}

#[test]
fn f10_a_choice_is_matched_to_the_letter() {
    let form = form(json!({"q": {"type": "string", "enum": ["é", " x", ""]}}));
    for other in ["e\u{301}", "x", " "] {
        assert_eq!(broken(&form, &[pick("q", &[other])]), [Rule::NotAChoice], "{other:?}");
    }
    assert_eq!(content(&form, &[pick("q", &[""])]), json!({"q": ""}), "a choice, and it was picked");
}

#[test]
fn a_marker_on_a_question_with_choices_is_ignored_unless_they_are_a_plain_enum() {
    let mut titled = marked("q");
    titled["oneOf"] = json!([{"const": "y"}]);
    let mut plain = marked("q");
    plain["enum"] = json!(["y"]);
    let Mapped { form, ignored } =
        mapped(json!({"q": {"type": "string", "enum": ["x"]}, "titled": titled, "plain": plain}));
    assert_eq!(ids(&form), ["q", "titled"], "rule 1, then companions, then rule 4");
    assert!(ignored.iter().all(|ignored| ignored.part != IgnoredPart::StrayCompanion));
    assert_eq!(content(&form, &[text("q", "T")]), json!({"plain": "T"}));
}
