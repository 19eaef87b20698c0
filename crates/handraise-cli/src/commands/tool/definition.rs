//! What the server says about itself and its one tool.

use std::time::Duration;

use handraise_config::duration;
use serde_json::{Value, json};

use super::questions::{
    CHOICES, MAX_ID_BYTES, MAX_LABEL_BYTES, MAX_QUESTIONS, MAX_TEXT_BYTES, MAX_TITLE_BYTES,
};

/// The tool.
pub(crate) const NAME: &str = "ask_user_question";

/// The protocol versions of sessions. Those before 2025-06-18 know nothing of elicitation, and of tools the same.
pub(crate) const SESSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The protocol version of requests that describe themselves.
pub(crate) const MODERN: &str = "2026-07-28";

/// How long a client may keep what is said here: it changes with the program.
const KEPT_MS: u64 = 3_600_000;

/// Every version that is spoken, the newest first.
pub(crate) fn versions() -> Vec<&'static str> {
    [MODERN].into_iter().chain(SESSIONS).collect()
}

/// The result of `initialize`, for a client that wants this version.
pub(crate) fn session(wanted: Option<&str>, timeout: Duration) -> Value {
    let version = SESSIONS.into_iter().find(|known| wanted == Some(known)).unwrap_or(SESSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": server(),
        "instructions": instructions(timeout),
    })
}

/// The result of `server/discover`.
pub(crate) fn discovered(timeout: Duration) -> Value {
    json!({
        "supportedVersions": versions(),
        "capabilities": {"tools": {}},
        "instructions": instructions(timeout),
        "ttlMs": KEPT_MS,
        "cacheScope": "private",
    })
}

/// The result of `tools/list`.
pub(crate) fn tools(timeout: Duration, is_modern: bool) -> Value {
    let mut list = json!({"tools": [tool(timeout)]});
    if is_modern {
        list["ttlMs"] = KEPT_MS.into();
        list["cacheScope"] = "private".into();
    }
    list
}

/// Who we are.
pub(crate) fn server() -> Value {
    json!({"name": "handraise", "title": "handraise: ask a human", "version": env!("CARGO_PKG_VERSION")})
}

fn instructions(timeout: Duration) -> String {
    format!(
        "{NAME} brings questions to the human who runs this session, in their handraise inbox, and waits up to {} for the \
         answer. Ask when you need a decision, a preference, an approval or a missing fact, instead of guessing; put \
         questions that belong together into one call. Silence is never consent: the result says whether somebody answered, \
         skipped, or nobody did.",
        duration::format(timeout)
    )
}

/// Described for whoever searches among hundreds of tools: with the words that they would search for.
fn description(timeout: Duration) -> String {
    let (least, most) = CHOICES;
    format!(
        "Ask the human user one or more multiple-choice questions and wait for the answer: to clarify a requirement, choose \
         between options, get a decision, approval, permission, confirmation, preference or feedback, or a missing piece of \
         information from a person (human in the loop). Each question has a prompt and {least} to {most} options; the human \
         picks one option (with multi, one or more), or answers in their own words instead. Returns JSON: answers with the id \
         and prompt of each question and either the selected labels or the human's text, and who answered. Waits up to {}. If \
         nobody answers in time, the human skips, or nobody can be reached, the result says which of these it was and holds no \
         answers: none of them is consent. It changes nothing and reads nothing; it only asks.",
        duration::format(timeout)
    )
}

/// Every hint is the truth: asking changes nothing; asked again, a human is asked again; and an inbox is a closed world.
fn tool(timeout: Duration) -> Value {
    let (least, most) = CHOICES;
    json!({
        "name": NAME,
        "title": "Ask the human a question",
        "description": description(timeout),
        "inputSchema": {
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "description": "The questions, answered together. All of them have to be answered.",
                    "minItems": 1,
                    "maxItems": MAX_QUESTIONS,
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "minLength": 1, "maxLength": MAX_ID_BYTES, "description":
                                "Names the question in the result; question_1, question_2, … otherwise. One line."},
                            "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE_BYTES,
                                "description": "A heading of a few words, on one line."},
                            "prompt": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES, "description":
                                "The question itself, with what the human needs to know to answer it."},
                            "options": {
                                "type": "array",
                                "description": "What can be picked; own words can be given as well, without an option for it.",
                                "minItems": least,
                                "maxItems": most,
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string", "minLength": 1, "maxLength": MAX_LABEL_BYTES,
                                            "description":
                                            "What is picked, and returned: one line, unlike the other labels."},
                                        "description": {"type": "string", "minLength": 1,
                                            "maxLength": MAX_TEXT_BYTES, "description":
                                            "What picking it means."},
                                    },
                                    "required": ["label"],
                                    "additionalProperties": false,
                                },
                            },
                            "multi": {"type": "boolean", "default": false, "description":
                                "Whether several options can be picked."},
                        },
                        "required": ["prompt", "options"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["questions"],
            "additionalProperties": false,
        },
        "annotations": {
            "title": "Ask the human a question",
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": false,
            "openWorldHint": false,
        },
    })
}
