//! JSON for property tests.

use proptest::prelude::*;
use serde_json::Value;

/// Any JSON, a few levels deep, made of words that ACP uses and others.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "sessionId",
            "options",
            "optionId",
            "kind",
            "name",
            "toolCall",
            "toolCallId",
            "title",
            "rawInput",
            "command",
            "content",
            "text",
            "type",
            "update",
            "sessionUpdate",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "plan",
            "entries",
            "status",
            "properties",
            "form",
            "mode",
            "message",
            "codex",
            "delivery",
            "async",
            "_meta",
            "agentInfo",
            "version",
            "0.81.0",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}
