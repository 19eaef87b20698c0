//! Rules 1 to 9, prompts, constraints, defaults, secrets, limits, order.

use serde_json::{Value, json};

use super::*;
use crate::form::{IgnoredPart, Order};
use crate::words::Kind;

#[test]
fn ac04_one_of_with_companion_is_one_question_with_three_choices() {
    let form = form(datastore());
    assert_eq!(ids(&form), ["question_0"]);
    let question = &form.questions()[0];
    assert_eq!(question.kind, Kind::Single);
    assert_eq!(question.title.as_deref(), Some("Datastore"));
    assert_eq!(values(question), ["Postgres", "SQLite", "DynamoDB"]);
    assert_eq!(question.choices[0].description.as_deref(), Some("Relational."));
    assert_eq!(question.choices[1].preview.as_deref(), Some("file:./app.db"));
    assert_eq!(question.companion, Some(Companion::Replaces));
    assert!(question.allows_text && !question.required && !question.secret);
}

#[test]
fn ac04a_a_lone_string_is_a_free_text_question() {
    let form = form(json!({"apiKey": {"type": "string"}}));
    let question = &form.questions()[0];
    assert_eq!((question.kind, question.choices.len(), question.companion), (Kind::Text, 0, None));
    assert!(question.allows_text);
}

#[test]
fn ac05_descriptions_are_the_prompts_of_two_questions() {
    let form = form(json!({
        "a": {"type": "string", "title": "A", "description": "First?"},
        "b": {"type": "boolean", "title": "B", "description": "Second?"},
    }));
    let prompts: Vec<_> = form.questions().iter().map(|question| question.prompt.as_str()).collect();
    assert_eq!(prompts, ["First?", "Second?"]);
}

#[test]
fn ac06_the_message_is_the_prompt_where_no_description_is() {
    assert_eq!(question(json!({"type": "string", "title": "T"})).prompt, "The message");
    assert_eq!(question(json!({"type": "string", "title": "T", "description": " "})).prompt, "The message");
    let schema =
        json!({"properties": {"key": {"type": "string", "title": "T"}, "other": {"type": "string"}}});
    let unsaid = map(&FormRequest { message: "", schema: &schema }, &FormProfile::acp()).unwrap().form;
    let prompts: Vec<_> = unsaid.questions().iter().map(|question| question.prompt.as_str()).collect();
    assert_eq!(prompts, ["T", "other"]);
}

#[test]
fn ac07_any_of_items_are_a_multi_select() {
    for keyword in ["anyOf", "oneOf"] {
        let entries = json!([{"const": "dev", "title": "Dev"}, {"const": "prod"}]);
        let question =
            question(json!({"type": "array", "items": {keyword: entries}, "minItems": 1, "maxItems": 2}));
        assert_eq!(question.kind, Kind::Multi);
        assert_eq!(values(&question), ["dev", "prod"]);
        assert_eq!(question.choices[0].label, "Dev");
        assert_eq!(question.choices[1].label, "prod", "no title: the const is the label");
        assert_eq!((question.constraints.min_items, question.constraints.max_items), (Some(1), Some(2)));
    }
}

#[test]
fn rule4_and_5_enums_take_their_names() {
    let single = question(json!({"type": "string", "enum": ["r", "g", "b"], "enumNames": ["Red", "Green"]}));
    assert_eq!(single.kind, Kind::Single);
    let labels: Vec<_> = single.choices.iter().map(|choice| choice.label.as_str()).collect();
    assert_eq!(labels, ["Red", "Green", "b"]);
    let multi = question(
        json!({"type": "array", "items": {"type": "string", "enum": ["p", "q"], "enumNames": ["P"]}}),
    );
    assert_eq!((multi.kind, values(&multi)), (Kind::Multi, vec!["p", "q"]));
    assert_eq!(multi.choices[0].label, "P");
}

#[test]
fn rule1_comes_before_rule4_and_before_companions() {
    let question = question(json!({"type": "string", "enum": ["x"], "oneOf": [{"const": "y"}],
        "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "q"}}}));
    assert_eq!(values(&question), ["y"]);
}

#[test]
fn rule6_and_7_booleans_and_numbers() {
    assert_eq!(question(json!({"type": "boolean"})).kind, Kind::Boolean);
    let number = question(json!({"type": "number", "minimum": 0, "maximum": 1.5, "default": 0.25}));
    assert_eq!(number.kind, Kind::Number);
    assert_eq!(number.constraints.maximum, serde_json::Number::from_f64(1.5));
    assert_eq!(number.default, Some(json!(0.25)));
    assert_eq!(question(json!({"type": "integer", "default": 3.0})).default, Some(json!(3)));
    assert!(!number.allows_text);
}

#[test]
fn rule7_a_numeric_enum_is_a_single_select_with_numeric_consts() {
    let form = form(json!({"q": {"type": "integer", "enum": [5, 10, "x", 2.5, 10, 20]}}));
    assert_eq!(form.questions()[0].kind, Kind::Single);
    assert_eq!(
        values(&form.questions()[0]),
        ["5", "10", "20"],
        "what no integer is, and repeats, are left out"
    );
    assert_eq!(content(&form, &[pick("q", &["10"])]), json!({"q": 10}));
}

#[test]
fn rule9_what_cannot_be_asked_is_ignored_and_the_rest_is_asked() {
    let Mapped { form, ignored } = mapped(json!({
        "object": {"type": "object", "properties": {"deep": {"type": "string"}}},
        "nested": {"type": "array", "items": {"type": "array"}},
        "texts": {"type": "array", "items": {"type": "string"}},
        "reference": {"$ref": "#/x"},
        "untyped": {"enum": ["a"]},
        "nothing": null,
        "both": {"type": ["string", "number"]},
        "kept": {"type": "string"},
    }));
    assert_eq!(ids(&form), ["kept"]);
    let parts: Vec<_> = ignored.iter().map(|ignored| (ignored.key.as_str(), ignored.part)).collect();
    let keys = ["object", "nested", "texts", "reference", "untyped", "nothing", "both"];
    assert_eq!(parts, keys.map(|key| (key, IgnoredPart::Property)));
}

#[test]
fn a_nullable_type_counts_as_its_other_type() {
    for types in [json!(["string", "null"]), json!(["null", "string"]), json!(["string"])] {
        assert_eq!(question(json!({"type": types})).kind, Kind::Text);
    }
    assert_eq!(question(json!({"type": ["integer", "null"]})).kind, Kind::Integer);
}

#[test]
fn empty_choices_leave_a_text_question() {
    for property in [
        json!({"type": "string", "oneOf": []}),
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "oneOf": [{"title": "no const"}, {"const": null}, 7]}),
        json!({"type": "array", "items": {"anyOf": []}}),
        json!({"type": "array", "items": {"enum": []}}),
    ] {
        let form = form(json!({"q": property}));
        assert_eq!(form.questions()[0].kind, Kind::Text, "{property}");
        assert_eq!(content(&form, &[text("q", " T ")]), json!({"q": "T"}));
    }
    assert_eq!(
        question(json!({"type": "integer", "enum": []})).kind,
        Kind::Integer,
        "never a string for a number"
    );
}

#[test]
fn later_duplicates_and_entries_without_a_const_are_skipped() {
    let many: Vec<Value> =
        (0..40).map(|n| json!({"const": format!("v{}", n % 25), "title": n.to_string()})).collect();
    let Mapped { form, ignored } = mapped(json!({"q": {"type": "string", "oneOf": many}}));
    assert_eq!(form.questions()[0].choices.len(), 25);
    assert_eq!(form.questions()[0].choices[24].label, "24");
    assert_eq!(ignored[0].part, IgnoredPart::Choices);
}

#[test]
fn numeric_consts_are_shown_as_text_and_restored_exactly() {
    let form = form(json!({"q": {"type": "array", "items": {"anyOf": [
        {"const": "a"}, {"const": 1}, {"const": 2.50}, {"const": true}, {"const": 18_446_744_073_709_551_615_u64}
    ]}}}));
    assert_eq!(values(&form.questions()[0]), ["a", "1", "2.5", "true", "18446744073709551615"]);
    let all = content(&form, &[pick("q", &["18446744073709551615", "true", "2.5", "1", "a"])]);
    assert_eq!(all, json!({"q": ["a", 1, 2.5, true, 18_446_744_073_709_551_615_u64]}));
}

#[test]
fn constraints_are_kept_and_an_unknown_format_is_only_text() {
    let question =
        question(json!({"type": "string", "minLength": 1, "maxLength": 40.0, "pattern": "^[a-z]+$",
        "format": "ipv4", "default": "bob"}));
    let constraints = &question.constraints;
    assert_eq!((constraints.min_length, constraints.max_length), (Some(1), Some(40)));
    assert_eq!(
        (constraints.pattern.as_deref(), constraints.format.as_deref()),
        (Some("^[a-z]+$"), Some("ipv4"))
    );
    assert_eq!(question.default, Some(json!("bob")));
}

#[test]
fn a_default_must_be_an_answer_to_its_question() {
    let default = |property| question(property).default;
    let one_of = json!([{"const": "x"}, {"const": 2}]);
    assert_eq!(default(json!({"type": "string", "oneOf": one_of, "default": "x"})), Some(json!("x")));
    assert_eq!(
        default(json!({"type": "string", "oneOf": one_of, "default": 2})),
        Some(json!("2")),
        "as answers name it"
    );
    assert_eq!(default(json!({"type": "string", "oneOf": one_of, "default": "y"})), None);
    let items = json!({"enum": ["p", "q", "r"]});
    assert_eq!(
        default(json!({"type": "array", "items": items, "default": ["r", "p", "z"]})),
        Some(json!(["p", "r"]))
    );
    assert_eq!(default(json!({"type": "array", "items": items, "default": "p"})), None);
    assert_eq!(default(json!({"type": "boolean", "default": "true"})), None);
    assert_eq!(default(json!({"type": "integer", "default": 1.5})), None);
    let mapped = mapped(json!({"q": {"type": "string", "default": 5}}));
    assert_eq!(mapped.ignored[0].part, IgnoredPart::Default);
}

#[test]
fn s33_secrets_are_marked_where_something_is_typed_and_their_defaults_are_not_shown() {
    let secret = |key: &str, property: Value| form(json!({key: property})).questions()[0].secret;
    for key in ["password", "token", "apiKey"] {
        assert!(secret(key, json!({"type": "string"})), "{key}");
    }
    assert!(secret("q", json!({"type": "string", "title": "GitHub token"})));
    assert!(secret("q", json!({"type": "string", "format": "password"})));
    assert!(secret("q", json!({"type": "string", "isSecret": true})));
    assert!(secret("q", json!({"type": "string", "enum": ["a"], "isSecret": true})));
    assert!(secret("otp", json!({"type": "integer"})));
    assert!(
        !secret("token", json!({"type": "string", "enum": ["personal", "shared"]})),
        "the choices are in sight"
    );
    assert!(!secret("password", json!({"type": "boolean"})));
    assert!(!secret("name", json!({"type": "string"})));
    assert_eq!(question(json!({"type": "string", "format": "password", "default": "hunter2"})).default, None);
}

#[test]
fn s39_a_pattern_that_cannot_be_checked_is_ignored_and_reported() {
    for pattern in ["(", "a(?=b)", &"a".repeat(1025)] {
        let Mapped { form, ignored } = mapped(json!({"q": {"type": "string", "pattern": pattern}}));
        assert_eq!(form.questions()[0].constraints.pattern, None);
        assert_eq!(ignored[0].part, IgnoredPart::Pattern);
        assert_eq!(content(&form, &[text("q", "anything")]), json!({"q": "anything"}));
    }
    let many: serde_json::Map<String, Value> =
        (0..40).map(|n| (format!("q{n}"), json!({"type": "string", "pattern": "^a$"}))).collect();
    let Mapped { form, ignored } = mapped(Value::Object(many));
    let kept = form.questions().iter().filter(|question| question.constraints.pattern.is_some()).count();
    assert_eq!((kept, ignored.len()), (32, 8), "what compiling costs is bounded");
}

#[test]
fn ac18_zero_questions_are_refused() {
    for schema in [
        json!({"type": "object", "properties": {}}),
        json!({"type": "object"}),
        json!({"properties": {"a": {"type": "object"}, "b": {"$ref": "#"}}}),
        json!({"properties": []}),
    ] {
        assert_eq!(try_map(&schema, &FormProfile::acp()), Err(Refusal::NoQuestions), "{schema}");
    }
    for schema in [json!(null), json!("x"), json!([])] {
        assert_eq!(try_map(&schema, &FormProfile::acp()), Err(Refusal::NotAnObject));
    }
    assert_eq!(Refusal::NoQuestions.to_string(), "the schema holds no property that can be asked");
}

#[test]
fn limits_are_checked_and_the_last_that_fits_is_taken() {
    let properties = |count: usize| -> Value {
        (0..count)
            .map(|n| (format!("q{n}"), json!({"type": "boolean"})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let code = |schema: &Value| try_map(schema, &FormProfile::acp()).map_err(|refusal| refusal.code());
    assert_eq!(code(&json!({"properties": properties(200)})).unwrap().form.questions().len(), 200);
    assert_eq!(code(&json!({"properties": properties(201)})), Err("too_many_properties"));
    let choices = |count: usize| json!({"properties": {"q": {"type": "string", "enum": (0..count).map(|n| n.to_string()).collect::<Vec<_>>()}}});
    assert_eq!(code(&choices(1000)).unwrap().form.questions()[0].choices.len(), 1000);
    assert_eq!(code(&choices(1001)), Err("too_many_choices"));
    let padded = |bytes: usize| {
        let mut schema = json!({"properties": {"q": {"type": "boolean"}}, "$comment": ""});
        schema["$comment"] = "x".repeat(bytes - schema.to_string().len()).into();
        schema
    };
    assert!(code(&padded(256 * 1024)).is_ok());
    assert_eq!(code(&padded(256 * 1024 + 1)), Err("schema_too_large"));
    let schema = json!({"properties": {"q": {"type": "boolean"}}});
    let message = |bytes: usize| {
        let message = "x".repeat(bytes);
        map(&FormRequest { message: &message, schema: &schema }, &FormProfile::acp())
            .map_err(|refusal| refusal.code())
    };
    assert!(message(64 * 1024).is_ok());
    assert_eq!(message(64 * 1024 + 1), Err("message_too_large"));
}

#[test]
fn ac12d_eleven_questions_map_to_one_order_a_hundred_times() {
    // As a map-sorted sender writes them.
    let mut keys: Vec<String> = (0..=10).map(|n| format!("question_{n}")).collect();
    keys.sort_unstable();
    let properties: Value = keys
        .iter()
        .map(|key| (key.clone(), json!({"type": "string", "oneOf": [{"const": "a"}]})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let expected: Vec<String> = (0..=10).map(|n| format!("question_{n}")).collect();
    for _ in 0..100 {
        assert_eq!(ids(&form(properties.clone())), expected);
    }
}

#[test]
fn order_is_that_of_the_text_unless_the_keys_are_one_series() {
    let properties =
        json!({"zone": {"type": "string"}, "step_10": {"type": "string"}, "step_2": {"type": "string"}});
    let order = |order| {
        let schema = json!({"properties": properties});
        let form = try_map(&schema, &FormProfile { order, ..FormProfile::acp() }).unwrap().form;
        form.questions().iter().map(|question| question.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order(Order::Declared), ["zone", "step_10", "step_2"]);
    assert_eq!(order(Order::Series), ["zone", "step_10", "step_2"]);
    assert_eq!(order(Order::Sorted), ["step_2", "step_10", "zone"]);
}

#[test]
fn choices_are_never_sorted() {
    assert_eq!(
        values(&question(json!({"type": "string", "enum": ["b", "c", "a", "10", "9"]}))),
        ["b", "c", "a", "10", "9"]
    );
}

#[test]
fn required_is_kept_per_question() {
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b", 7, "nobody"]});
    let form = try_map(&schema, &FormProfile::acp()).unwrap().form;
    assert_eq!(form.questions().iter().map(|question| question.required).collect::<Vec<_>>(), [false, true]);
}
