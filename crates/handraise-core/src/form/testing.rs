//! JSON and schemas for property tests.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, a few levels deep.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::String),
        any::<String>().prop_map(Value::String),
    ]
}

/// Words that mean something in a schema, and some that do not.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "type",
            "string",
            "array",
            "boolean",
            "number",
            "integer",
            "object",
            "oneOf",
            "anyOf",
            "items",
            "enum",
            "enumNames",
            "const",
            "title",
            "description",
            "_meta",
            "properties",
            "required",
            "default",
            "minLength",
            "maxLength",
            "pattern",
            "format",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "email",
            "uri",
            "date",
            "date-time",
            "password",
            "question_0",
            "question_0_custom",
            "_askUserQuestionCustomAnswer",
            "questionId",
            "codex",
            "role",
            "user_note",
        ])
        .prop_map(str::to_owned),
        "[a-z_]{0,6}[0-9]{0,2}",
    ]
}

/// A schema whose properties are mostly well-formed, with noise in between.
pub(crate) fn schema() -> impl Strategy<Value = Value> {
    let property = prop_oneof![
        8 => well_formed(),
        1 => any_json(),
    ];
    let required = prop::collection::vec(prop_oneof!["question_[0-3]", "[ab]{1,2}"], 0..3);
    (prop::collection::vec((key(), property), 0..7), required).prop_map(|(properties, required)| {
        let properties: Map<String, Value> = properties.into_iter().collect();
        json!({ "type": "object", "properties": properties, "required": required })
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["question_[0-3]", "question_[0-3]_custom", "[ab]{1,2}", any::<String>()]
}

fn well_formed() -> impl Strategy<Value = Value> {
    let options = || {
        prop::collection::vec(
            (prop_oneof!["[a-d]{1,2}".prop_map(Value::from), (0i64..9).prop_map(Value::from)], "[A-Z]{0,2}"),
            0..5,
        )
        .prop_map(|options| {
            options
                .into_iter()
                .map(|(value, title)| json!({"const": value, "title": title}))
                .collect::<Vec<_>>()
        })
    };
    let plain = || prop::collection::vec("[a-d]{1,2}".prop_map(Value::from), 0..5);
    prop_oneof![
        options().prop_map(|options| json!({"type": "string", "oneOf": options})),
        (options(), 0u64..3, 1u64..4)
            .prop_map(|(options, least, most)| json!({"type": "array", "items": {"anyOf": options}, "minItems": least, "maxItems": most})),
        plain().prop_map(|options| json!({"type": "string", "enum": options})),
        plain().prop_map(|options| json!({"type": "array", "items": {"type": "string", "enum": options}})),
        Just(json!({"type": "boolean", "default": true})),
        (-5i64..5, 0i64..9).prop_map(|(least, most)| json!({"type": "integer", "minimum": least, "maximum": most})),
        (-5f64..5.0).prop_map(|least| json!({"type": "number", "minimum": least})),
        prop::collection::vec(0i64..9, 0..4).prop_map(|numbers| json!({"type": "integer", "enum": numbers})),
        (0u64..4, 2u64..9).prop_map(|(least, most)| json!({"type": ["string", "null"], "minLength": least, "maxLength": most})),
        prop::sample::select(vec!["^[a-c]+$", "\\d", "(", "x{2,3}", "a(?=b)"])
            .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        prop::sample::select(vec!["email", "uri", "date", "date-time", "password", "other"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        "question_[0-3]"
            .prop_map(|question| json!({"type": "string", "_meta": {"_askUserQuestionCustomAnswer": {"questionId": question}}})),
    ]
}
