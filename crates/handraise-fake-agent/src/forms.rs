//! The forms that the scripts ask.
//!
//! The first four are what `@agentclientprotocol/claude-agent-acp` 0.65.0 builds (captured by calling its exported
//! builders on 2026-11-29): a lone question whose text is the message, several questions, the dialog after a
//! model's refusal, and an MCP server's schema passed through.

use serde_json::{Map, Value, json};

fn companion(question: &str) -> Value {
    json!({
        "type": "string",
        "title": "Other",
        "description": "Type your own answer instead of choosing an option above (optional).",
        "_meta": {"_askUserQuestionCustomAnswer": {"questionId": question, "isCustomAnswer": true}},
    })
}

fn datastores() -> Value {
    json!([
        {"const": "Postgres", "title": "Postgres", "description": "Relational, already operated by the team."},
        {"const": "SQLite", "title": "SQLite", "description": "Embedded; no ops burden.",
            "_meta": {"_claude/askUserQuestionOption": {"preview": "file:./app.db"}}},
        {"const": "DynamoDB", "title": "DynamoDB"},
    ])
}

fn form(message: &str, properties: &Value) -> Value {
    json!({"message": message, "requestedSchema": {"type": "object", "properties": properties}})
}

fn in_tool_call(mut form: Value) -> Value {
    // The bridge puts the tool call between session and message; order is no part of the contract.
    form["toolCallId"] = json!("tool-42");
    form
}

/// One single-select question with a companion.
pub(crate) fn single() -> Value {
    in_tool_call(form(
        "Which database should the new service use?",
        &json!({
            "question_0": {"type": "string", "title": "Datastore", "oneOf": datastores()},
            "question_0_custom": companion("question_0"),
        }),
    ))
}

/// A single-select and a multi-select question, each with a companion.
pub(crate) fn two() -> Value {
    in_tool_call(form(
        "Please answer the following questions.",
        &json!({
            "question_0": {
                "type": "string",
                "title": "Datastore",
                "description": "Which database should the new service use?",
                "oneOf": datastores(),
            },
            "question_0_custom": companion("question_0"),
            "question_1": {
                "type": "array",
                "title": "Envs",
                "description": "Which environments should it deploy to?",
                "items": {"anyOf": [
                    {"const": "dev", "title": "dev"},
                    {"const": "staging", "title": "staging"},
                    {"const": "prod", "title": "prod"},
                ]},
            },
            "question_1_custom": companion("question_1"),
        }),
    ))
}

/// The retry dialog after a model's refusal.
pub(crate) fn refusal() -> Value {
    form(
        "Fable declined this request (safety). Retry with Opus?\n\nTry rephrasing.",
        &json!({"choice": {"type": "string", "oneOf": [
            {"const": "retry_fallback", "title": "Retry with Opus", "description": "The session continues on Opus."},
            {"const": "cancelled", "title": "Keep the refusal", "description": "You can send a new message."},
        ]}}),
    )
}

/// An MCP server's question, passed through untouched.
pub(crate) fn passthrough() -> Value {
    json!({
        "message": "Need key",
        "requestedSchema": {"properties": {"apiKey": {"type": "string"}}, "type": "object"},
    })
}

/// Every typed field: text, number, integer, boolean, enum, with required ones and defaults.
pub(crate) fn typed() -> Value {
    json!({
        "message": "Tell me about the service.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "title": "Name", "description": "What is it called?",
                    "minLength": 1, "maxLength": 40, "default": "billing"},
                "email": {"type": "string", "title": "Owner", "description": "Who answers for it?",
                    "format": "email"},
                "ratio": {"type": "number", "title": "Share of traffic", "minimum": 0, "maximum": 1,
                    "default": 0.25},
                "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 10, "default": 3},
                "public": {"type": "boolean", "title": "Reachable from outside?", "default": false},
                "tier": {"type": "string", "title": "Tier", "enum": ["gold", "silver", "bronze"],
                    "enumNames": ["Gold", "Silver", "Bronze"], "default": "silver"},
            },
            "required": ["email", "public"],
        },
    })
}

/// Eleven numbered questions: `question_2` comes before `question_10`.
pub(crate) fn eleven() -> Value {
    let properties: Map<String, Value> = (0..11)
        .map(|index| {
            let question = json!({
                "type": "string",
                "title": format!("Q{index}"),
                "description": format!("Question number {index}?"),
                "oneOf": [{"const": "yes", "title": "yes"}, {"const": "no", "title": "no"}],
            });
            (format!("question_{index}"), question)
        })
        .collect();
    in_tool_call(form("Please answer the following questions.", &Value::Object(properties)))
}

/// A companion whose key follows no pattern (AC-11).
pub(crate) fn freeform() -> Value {
    form(
        "Which way?",
        &json!({
            "direction": {"type": "string", "oneOf": [{"const": "left"}, {"const": "right"}]},
            "answer_freeform": companion("direction"),
        }),
    )
}

/// Nothing that is a question.
pub(crate) fn zero() -> Value {
    form(
        "Nothing to see.",
        &json!({"nested": {"type": "object", "properties": {"deep": {"type": "string"}}}}),
    )
}
