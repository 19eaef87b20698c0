//! Every rule that an answer can break (F10), and the rules per source (F3, AC-57).

use serde_json::json;

use super::*;
use crate::ask::{Choice, Constraints};
use crate::words::Kind;

#[test]
fn f10_unknown_and_repeated_questions() {
    let form = form(datastore());
    assert_eq!(broken(&form, &[pick("question_9", &["x"])]), [Rule::UnknownQuestion]);
    assert_eq!(
        broken(&form, &[text("question_0_custom", "x")]),
        [Rule::UnknownQuestion],
        "a companion is no question"
    );
    let twice = [pick("question_0", &["Postgres"]), text("question_0", "x")];
    assert_eq!(broken(&form, &twice), [Rule::DuplicateAnswer]);
}

#[test]
fn f10_selections_must_be_choices_each_once() {
    let single = form(datastore());
    assert_eq!(broken(&single, &[pick("question_0", &["MySQL"])]), [Rule::NotAChoice]);
    assert_eq!(broken(&single, &[pick("question_0", &["Postgres", "SQLite"])]), [Rule::OneSelection]);
    assert_eq!(broken(&single, &[pick("question_0", &["Postgres", "Postgres"])]), [Rule::DuplicateSelection]);
    assert_eq!(
        broken(&single, &[both("question_0", &["MySQL"], "text")]),
        [Rule::NotAChoice],
        "even beside text"
    );
    let multi = form(json!({"q": {"type": "array", "items": {"enum": ["a", "b"]}}}));
    assert_eq!(broken(&multi, &[pick("q", &["a", "x", "a"])]), [Rule::NotAChoice, Rule::DuplicateSelection]);
    let free = form(json!({"q": {"type": "string"}}));
    assert_eq!(broken(&free, &[both("q", &["a"], "text")]), [Rule::NotAChoice]);
}

#[test]
fn f10_booleans() {
    let form = form(json!({"q": {"type": "boolean"}}));
    assert_eq!(broken(&form, &[pick("q", &["yes"])]), [Rule::NotABoolean]);
    assert_eq!(broken(&form, &[text("q", "true")]), [Rule::NotABoolean]);
    assert_eq!(broken(&form, &[pick("q", &["true", "false"])]), [Rule::OneSelection]);
}

#[test]
fn f10_numbers() {
    let form = form(json!({
        "i": {"type": "integer", "minimum": 0, "maximum": 600},
        "n": {"type": "number", "minimum": -0.5},
    }));
    for bad in ["123abc", "NaN", "1e999", "0x1", "1,5"] {
        assert_eq!(broken(&form, &[text("i", bad)]), [Rule::NotANumber], "{bad}");
        assert_eq!(broken(&form, &[text("n", bad)]), [Rule::NotANumber], "{bad}");
    }
    assert_eq!(broken(&form, &[text("i", "30.5")]), [Rule::NotAnInteger]);
    assert_eq!(broken(&form, &[text("i", "-1")]), [Rule::Minimum]);
    assert_eq!(broken(&form, &[text("n", "-0.51")]), [Rule::Minimum]);
    assert_eq!(broken(&form, &[pick("i", &["3"])]), [Rule::NotANumber]);
    assert_eq!(content(&form, &[text("i", "30"), text("n", "-0.5")]), json!({"i": 30, "n": -0.5}));
    assert_eq!(content(&form, &[text("i", "30.0")]), json!({"i": 30}));
    let errors = form.answer(&[text("i", "900")], ELICITATION).unwrap_err();
    assert_eq!(errors[0].question_id, "i");
    assert_eq!(errors[0].message, "“900” is too large. The most it takes is 600.");
}

#[test]
fn f10_texts() {
    let form = form(json!({
        "t": {"type": "string", "minLength": 2, "maxLength": 3},
        "p": {"type": "string", "pattern": "^[a-z]+$"},
        "e": {"type": "string", "format": "email"},
        "d": {"type": "string", "format": "date"},
        "x": {"type": "string", "format": "something-else"},
    }));
    assert_eq!(broken(&form, &[text("t", "a")]), [Rule::MinLength]);
    assert_eq!(broken(&form, &[text("t", "abcd")]), [Rule::MaxLength]);
    assert_eq!(content(&form, &[text("t", "äöü")]), json!({"t": "äöü"}), "characters, not bytes");
    assert_eq!(content(&form, &[text("t", " ab ")]), json!({"t": "ab"}), "counted after trimming");
    assert_eq!(broken(&form, &[text("p", "a1")]), [Rule::Pattern]);
    assert_eq!(broken(&form, &[text("e", "nobody")]), [Rule::Format]);
    assert_eq!(broken(&form, &[text("d", "2026-02-30")]), [Rule::Format]);
    assert_eq!(content(&form, &[text("x", "y")]), json!({"x": "y"}));
}

#[test]
fn f10_counts_of_selections() {
    let form = form(
        json!({"q": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "maxItems": 2}}),
    );
    assert_eq!(broken(&form, &[pick("q", &["a"])]), [Rule::MinItems]);
    assert_eq!(broken(&form, &[pick("q", &["a", "b", "c"])]), [Rule::MaxItems]);
    assert_eq!(content(&form, &[]), json!({}), "unanswered is not too few");
}

#[test]
fn f10_required_questions_must_be_answered() {
    let schema =
        json!({"properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["a"]});
    let form = try_map(&schema, &FormProfile::acp()).unwrap().form;
    assert_eq!(broken(&form, &[]), [Rule::Required]);
    assert_eq!(broken(&form, &[text("a", "  ")]), [Rule::Required]);
    assert_eq!(content(&form, &[text("a", "x")]), json!({"a": "x"}));
}

#[test]
fn f10_content_is_at_most_one_mebibyte() {
    let form = form(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    let fits = "x".repeat(1024 * 1024 - r#"{"a":""}"#.len());
    assert!(form.answer(&[text("a", &fits)], ELICITATION).is_ok());
    assert_eq!(broken(&form, &[text("a", &format!("{fits}x"))]), [Rule::TooLarge]);
    let escaped = "\n".repeat(600 * 1024);
    assert_eq!(broken(&form, &[text("a", &format!("x{escaped}x"))]), [Rule::TooLarge], "as JSON writes it");
    let half = "x".repeat(600 * 1024);
    assert_eq!(broken(&form, &[text("a", &half), text("b", &half)]), [Rule::TooLarge]);
}

#[test]
fn f10_every_broken_rule_is_listed_but_not_without_end() {
    let form = form(json!({"a": {"type": "integer"}, "b": {"type": "boolean"}}));
    let errors =
        form.answer(&[text("a", "x"), pick("b", &["y"]), pick("c", &["z"])], ELICITATION).unwrap_err();
    let listed: Vec<_> = errors.iter().map(|error| (error.question_id.as_str(), error.rule)).collect();
    assert_eq!(listed, [("c", Rule::UnknownQuestion), ("a", Rule::NotANumber), ("b", Rule::NotABoolean)]);
    let flood: Vec<Answer> = (0..100_000).map(|n| text(&format!("{n}"), "")).collect();
    assert!(form.answer(&flood, ELICITATION).unwrap_err().len() <= 258);
}

#[test]
fn s33_errors_never_quote_a_secret() {
    let form = form(
        json!({"password": {"type": "string", "minLength": 20, "pattern": "^[0-9]+$", "format": "email"}}),
    );
    let errors = form.answer(&[text("password", "hunter2")], ELICITATION).unwrap_err();
    assert_eq!(errors.len(), 3);
    for error in &errors {
        assert!(!error.message.contains("hunter2"), "{}", error.message);
        assert!(!format!("{error:?}").contains(&error.message), "debug output hides messages");
    }
    let number = self::form(json!({"passcode": {"type": "integer"}}));
    let errors = number.answer(&[text("passcode", "12a4")], ELICITATION).unwrap_err();
    assert!(!errors[0].message.contains("12a4"));
}

#[test]
fn s26_quoted_values_are_short_and_show_what_hides() {
    let form = form(json!({"q": {"type": "integer"}}));
    let errors = form
        .answer(&[text("q", &format!("a\u{202e}\u{1b}[2J{}", "x".repeat(5000)))], ELICITATION)
        .unwrap_err();
    assert!(errors[0].message.len() < 300, "{}", errors[0].message);
    assert!(errors[0].message.contains(r"\u{202e}") && errors[0].message.contains(r"\u{1b}"));
}

fn choices(values: &[&str]) -> Vec<Choice> {
    let choice = |value: &&str| Choice {
        value: (*value).to_owned(),
        label: value.to_uppercase(),
        description: None,
        preview: None,
    };
    values.iter().map(choice).collect()
}

fn asked(id: &str, kind: Kind, values: &[&str]) -> Question {
    Question {
        id: id.into(),
        kind,
        title: None,
        prompt: "?".into(),
        required: true,
        default: None,
        allows_text: true,
        companion: None,
        secret: false,
        choices: choices(values),
        constraints: Constraints::default(),
    }
}

#[test]
fn ac57_tool_asks_need_each_question_answered_by_a_pick_or_by_text() {
    let rules_of = AnswerRules::for_source(Source::Tool);
    let form = Form::tool(vec![asked("a", Kind::Single, &["x", "y"]), asked("b", Kind::Multi, &["p", "q"])])
        .unwrap();
    let answer = |answers: &[Answer]| form.answer(answers, rules_of);
    let sent = answer(&[pick("a", &["x"]), pick("b", &["q", "p"])]).unwrap();
    assert_eq!(Value::Object(sent), json!({"a": "x", "b": ["p", "q"]}));
    let sent = answer(&[text("a", " own "), text("b", "words")]).unwrap();
    assert_eq!(Value::Object(sent), json!({"a": "own", "b": "words"}));
    assert_eq!(rules(answer(&[pick("a", &["x"])])), [Rule::Required]);
    assert_eq!(rules(answer(&[both("a", &["x"], "own"), pick("b", &["p"])])), [Rule::TextWithSelection]);
    assert_eq!(rules(answer(&[pick("a", &["x", "y"]), pick("b", &["p"])])), [Rule::OneSelection]);
    assert_eq!(rules(answer(&[])), [Rule::Required, Rule::Required]);
}

#[test]
fn ac57_tool_asks_have_two_to_six_choices() {
    let code = |count: usize| {
        let values = ["a", "b", "c", "d", "e", "f", "g"];
        Form::tool(vec![asked("q", Kind::Single, &values[..count])]).map_err(|refusal| refusal.code())
    };
    assert!(code(2).is_ok() && code(6).is_ok());
    assert_eq!((code(1), code(7)), (Err("choice_count"), Err("choice_count")));
    assert_eq!(Form::tool(vec![]), Err(Refusal::NoQuestions));
    let twice = vec![asked("q", Kind::Single, &["a", "b"]), asked("q", Kind::Single, &["a", "b"])];
    assert_eq!(Form::tool(twice).map_err(|refusal| refusal.code()), Err("duplicate_question"));
}

#[test]
fn permissions_take_exactly_one_choice_and_no_text() {
    let rules_of = AnswerRules::for_source(Source::Permission);
    let form = Form::permission("Run it?", choices(&["yes", "no", "yes"])).unwrap();
    assert_eq!(values(&form.questions()[0]), ["yes", "no"]);
    assert_eq!(form.questions()[0].id, "permission");
    let answer = |answers: &[Answer]| form.answer(answers, rules_of);
    assert_eq!(Value::Object(answer(&[pick("permission", &["no"])]).unwrap()), json!({"permission": "no"}));
    assert_eq!(rules(answer(&[])), [Rule::Required]);
    assert_eq!(rules(answer(&[pick("permission", &["yes", "no"])])), [Rule::OneSelection]);
    assert_eq!(rules(answer(&[both("permission", &["yes"], "but")])), [Rule::NoText]);
    assert_eq!(Form::permission("?", vec![]), Err(Refusal::NoQuestions));
}

#[test]
fn f3_f6_what_each_source_allows() {
    for source in Source::ALL {
        let free = *source == Source::Elicitation;
        let rules = AnswerRules::for_source(*source);
        assert_eq!((rules.allows_partial, rules.allows_text_with_selection), (free, free), "{source}");
    }
}

#[test]
fn rules_are_distinct_stable_words() {
    let mut words: Vec<_> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Rule::ALL.len());
    assert!(words.iter().all(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
}
