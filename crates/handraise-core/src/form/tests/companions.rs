//! Companions: markers, strays, pairs, and what they do to an answer.

use serde_json::json;

use super::*;
use crate::form::{CompanionMarker, IgnoredPart, PromptRule};
use crate::words::Kind;

#[test]
fn ac11_a_marker_decides_whatever_the_key() {
    let form = form(json!({
        "question_0": {"type": "string", "oneOf": [{"const": "L"}]},
        "answer_freeform": {"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "question_0"}}},
    }));
    assert_eq!(ids(&form), ["question_0"]);
    assert_eq!(content(&form, &[text("question_0", "T")]), json!({"answer_freeform": "T"}));
}

#[test]
fn ac11_a_suffix_alone_is_a_question_of_its_own() {
    let form = form(json!({
        "zone": {"type": "string", "enum": ["eu"]},
        "zone_custom": {"type": "string"},
    }));
    assert_eq!(ids(&form), ["zone", "zone_custom"]);
}

#[test]
fn ac12e_a_companion_of_nothing_is_ignored_and_no_question() {
    let marked = |question: &str| json!({"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": question}}});
    let Mapped { form, ignored } = mapped(json!({
        "a": {"type": "string", "enum": ["x"]},
        "stray": marked("nobody"),
        "of_companion": marked("stray"),
        "of_ignored": marked("object"),
        "object": {"type": "object"},
        "self": marked("self"),
    }));
    assert_eq!(ids(&form), ["a"]);
    assert_eq!(form.questions()[0].companion, None);
    let mut strays: Vec<_> = ignored
        .iter()
        .filter(|ignored| ignored.part == IgnoredPart::StrayCompanion)
        .map(|ignored| ignored.key.as_str())
        .collect();
    strays.sort_unstable();
    assert_eq!(strays, ["of_companion", "of_ignored", "self", "stray"]);
}

#[test]
fn d2_of_two_companions_the_key_that_sorts_first_wins() {
    let marked = json!({"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "q"}}});
    let Mapped { form, ignored } =
        mapped(json!({"note_10": marked, "q": {"type": "string", "enum": ["x"]}, "note_9": marked}));
    assert_eq!(content(&form, &[text("q", "T")]), json!({"note_9": "T"}));
    assert_eq!((ignored[0].key.as_str(), ignored[0].part), ("note_10", IgnoredPart::SecondCompanion));
}

#[test]
fn d2_companions_are_removed_before_ordering() {
    // With the companion among them, the keys would be no series.
    let form = form(json!({
        "q10": {"type": "string", "enum": ["x"]},
        "other": {"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "q10"}}},
        "q2": {"type": "string", "enum": ["x"]},
    }));
    assert_eq!(ids(&form), ["q2", "q10"]);
}

#[test]
fn a_marker_on_something_else_than_a_string_is_no_companion() {
    let marked = json!({"_askUserQuestionCustomAnswer": {"questionId": "q"}});
    let form = form(json!({
        "q": {"type": "string", "enum": ["x"]},
        "flag": {"type": "boolean", "_meta": marked},
    }));
    assert_eq!(ids(&form), ["q", "flag"]);
}

#[test]
fn a_number_takes_no_companion() {
    let Mapped { form, ignored } = mapped(json!({
        "n": {"type": "integer"},
        "note": {"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "n"}}},
    }));
    assert_eq!((ids(&form), form.questions()[0].companion), (vec!["n"], None));
    assert_eq!(ignored[0].part, IgnoredPart::StrayCompanion);
    assert_eq!(content(&form, &[text("n", "7")]), json!({"n": 7}));
}

const QUIRKY: FormProfile = FormProfile {
    markers: &[
        CompanionMarker::Meta { question: &["x", "of"], when: &[(&["x", "role"], "note")] },
        CompanionMarker::Suffix("_custom"),
    ],
    secrets: &[&["x", "hidden"]],
    prompt: PromptRule::TitleAsksWhere(&["x"]),
    ..FormProfile::acp()
};

#[test]
fn the_suffix_quirk_takes_only_plain_optional_strings_of_choice_questions() {
    let ids_of = |properties: Value, required: Value| {
        let form = try_map(&json!({"properties": properties, "required": required}), &QUIRKY).unwrap().form;
        form.questions().iter().map(|question| question.id.clone()).collect::<Vec<_>>()
    };
    let choice = json!({"type": "string", "oneOf": [{"const": "x"}]});
    assert_eq!(ids_of(json!({"q": choice, "q_custom": {"type": "string"}}), json!([])), ["q"]);
    assert_eq!(ids_of(json!({"q_custom": {"type": "string"}, "q": choice}), json!([])), ["q"]);
    for constrained in [
        json!({"type": "string", "maxLength": 9}),
        json!({"type": "string", "enum": ["a"]}),
        json!({"type": "string", "format": "email"}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "boolean"}),
    ] {
        assert_eq!(
            ids_of(json!({"q": choice, "q_custom": constrained}), json!([])),
            ["q", "q_custom"],
            "{constrained}"
        );
    }
    assert_eq!(
        ids_of(json!({"q": choice, "q_custom": {"type": "string"}}), json!(["q_custom"])),
        ["q", "q_custom"]
    );
    assert_eq!(
        ids_of(json!({"q": {"type": "string"}, "q_custom": {"type": "string"}}), json!([])),
        ["q", "q_custom"]
    );
    assert_eq!(ids_of(json!({"p_custom": {"type": "string"}}), json!([])), ["p_custom"]);
}

#[test]
fn a_conditional_marker_needs_its_condition() {
    let note = |role: &str| {
        json!({"properties": {
            "q": {"type": "string", "enum": ["a"]},
            "note": {"type": "string", "_meta": {"x": {"of": "q", "role": role}}},
        }})
    };
    assert_eq!(ids(&try_map(&note("note"), &QUIRKY).unwrap().form), ["q"]);
    assert_eq!(ids(&try_map(&note("else"), &QUIRKY).unwrap().form), ["q", "note"]);
}

#[test]
fn title_asks_where_the_profile_says_so() {
    let schema = json!({"properties": {
        "a": {"type": "string", "title": "Which region?", "description": "Region", "_meta": {"x": {"hidden": true}}},
        "b": {"type": "string", "title": "Zone", "description": "Which zone?"},
        "c": {"type": "string", "title": "Only a title", "_meta": {"x": {}}},
    }});
    let form = try_map(&schema, &QUIRKY).unwrap().form;
    let said: Vec<_> =
        form.questions().iter().map(|q| (q.prompt.as_str(), q.title.as_deref(), q.secret)).collect();
    assert_eq!(
        said,
        [
            ("Which region?", Some("Region"), true),
            ("Which zone?", Some("Zone"), false),
            ("Only a title", None, false)
        ]
    );
}

#[test]
fn a_companions_limits_are_those_of_the_text() {
    let form = form(json!({
        "q": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1},
        "note": {"type": "string", "maxLength": 3, "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "q"}}},
    }));
    assert_eq!(form.questions()[0].constraints.max_length, Some(3));
    assert_eq!(broken(&form, &[text("q", "long")]), [Rule::MaxLength]);
    assert_eq!(broken(&form, &[pick("q", &["a", "b"])]), [Rule::MaxItems]);
    assert_eq!(
        content(&form, &[both("q", &["a", "b"], "abc")]),
        json!({"note": "abc"}),
        "the pick is not sent"
    );
}

#[test]
fn a_boolean_can_have_a_companion() {
    let properties = json!({"properties": {
        "ok": {"type": "boolean"},
        "why": {"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "ok"}}},
    }});
    let adds = try_map(&properties, &ADDS).unwrap().form;
    assert_eq!(adds.questions()[0].kind, Kind::Boolean);
    assert_eq!(content(&adds, &[both("ok", &["false"], "later")]), json!({"ok": false, "why": "later"}));
}
