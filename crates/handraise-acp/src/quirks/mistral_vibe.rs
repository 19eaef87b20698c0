//! `@mistralai/mistral-vibe`. Measured: 3.0.3, its source read 2026-11-29, run with a scripted model 2026-11-30.
//!
//! Its forms are read as everywhere: `q0`, `q1`, … with `title`, `description` and all of them required, without
//! companions. A JSON-RPC error as the response fails its whole turn, so nothing is ever answered with one. Forms of
//! MCP servers behind it are refused by itself (-32600) and never arrive.

use super::{Agent, Quirks};

/// What it calls itself.
pub const NAME: &str = "@mistralai/mistral-vibe";

pub(super) fn quirks() -> Quirks {
    Quirks { agent: Agent::MistralVibe, ..Quirks::default() }
}

#[cfg(test)]
mod tests {
    use handraise_core::form::{AnswerRules, Rule};
    use handraise_core::words::{Kind, Source};
    use serde_json::json;

    use super::*;
    use crate::elicitation::read;

    #[test]
    fn its_questions_are_all_required() {
        let params = json!({"mode": "form", "sessionId": "s", "toolCallId": "t", "message": "User input required",
            "requestedSchema": {"type": "object", "properties": {
                "q0": {"type": "string", "title": "DB", "description": "Which database?", "oneOf": [{"const": "a", "title": "a"}]},
                "q1": {"type": "array", "description": "Which stages?", "items": {"anyOf": [{"const": "b", "title": "b"}]}}},
                "required": ["q0", "q1"], "description": null}});
        let asked = read(&params, true, &quirks()).unwrap();
        let shapes: Vec<_> =
            asked.form.questions().iter().map(|q| (q.kind, q.prompt.as_str(), q.required)).collect();
        assert_eq!(shapes, [(Kind::Single, "Which database?", true), (Kind::Multi, "Which stages?", true)]);
        let broken = asked.form.answer(&[], AnswerRules::for_source(Source::Elicitation)).unwrap_err();
        assert!(broken.iter().all(|error| error.rule == Rule::Required));
    }
}
