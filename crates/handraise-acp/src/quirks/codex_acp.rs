//! `@agentclientprotocol/codex-acp`. Measured: 2.6.0, its source read 2026-11-29, run with a scripted model
//! 2026-11-30.
//!
//! - A question of Codex itself has `_meta.codex`, its text in `title` and its heading in `description`. Forms of
//!   MCP servers that it passes on have neither.
//! - The companion has the key `<id>_note` (with a number behind it when that is taken) and
//!   `_meta.codex {role: "user_note", questionId}`. A note is sent on beside the pick, so neither is lost.
//! - `_meta.codex.isSecret` marks secrets.
//! - Forms come one after the other. Every question is required. A declined form gives its model
//!   `{"answers":{}}`. When an MCP server behind it gives up, no cancellation comes: the turn ends with the form open.
//! - A request with `_meta.codex.delivery = "async"` takes its answer while the turn goes on.

use handraise_core::form::{CompanionMarker, FormProfile, PromptRule};
use handraise_core::words::Companion;

use super::{Agent, Quirks};

/// What it calls itself.
pub const NAME: &str = "@agentclientprotocol/codex-acp";

const USER_NOTE: CompanionMarker =
    CompanionMarker::Meta { question: &["codex", "questionId"], when: &[(&["codex", "role"], "user_note")] };

const MARKERS: &[CompanionMarker] = &[FormProfile::CUSTOM_ANSWER, USER_NOTE];

pub(super) fn quirks() -> Quirks {
    let form = FormProfile {
        companion: Companion::Adds,
        markers: MARKERS,
        prompt: PromptRule::TitleAsksWhere(&["codex"]),
        secrets: &[&["codex", "isSecret"]],
        ..FormProfile::acp()
    };
    Quirks { agent: Agent::CodexAcp, form, asynchronous: Some((&["codex", "delivery"], "async")) }
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;
    use handraise_core::form::AnswerRules;
    use handraise_core::words::{Kind, Source};
    use serde_json::{Value, json};

    use super::*;
    use crate::elicitation::{Elicitation, read};

    fn ask(properties: &Value, meta: &Value) -> Elicitation {
        let params = json!({"mode": "form", "sessionId": "s", "toolCallId": "item-1",
            "message": "Codex needs your input to continue.",
            "requestedSchema": {"type": "object", "properties": properties, "required": ["region"]},
            "_meta": {"codex": meta}});
        read(&params, true, &quirks()).unwrap()
    }

    /// As its schema builder writes a question with choices and a note.
    fn region() -> Value {
        json!({
            "region": {"title": "Which region first?", "description": "Region",
                "_meta": {"codex": {"isOther": true, "isSecret": false}}, "type": "string",
                "oneOf": [{"const": "eu", "title": "eu"},
                    {"const": "None of the above", "title": "None of the above", "description": "Provide a different answer in the note field."}]},
            "region_note": {"type": "string", "title": "Additional answer or note",
                "_meta": {"codex": {"questionId": "region", "role": "user_note", "isSecret": false}}},
        })
    }

    #[test]
    fn the_title_asks_and_the_note_is_the_companion() {
        let asked = ask(&region(), &json!({"autoResolutionMs": null}));
        let [question] = asked.form.questions() else { panic!("one question") };
        assert_eq!(
            (question.prompt.as_str(), question.title.as_deref()),
            ("Which region first?", Some("Region"))
        );
        assert_eq!((question.companion, question.secret), (Some(Companion::Adds), false));
        let answer = Answer {
            question_id: "region".into(),
            selected_options: vec!["eu".into()],
            custom_text: " or us ".into(),
        };
        let content = asked.form.answer(&[answer], AnswerRules::for_source(Source::Elicitation)).unwrap();
        assert_eq!(Value::Object(content), json!({"region": "eu", "region_note": "or us"}));
    }

    #[test]
    fn is_secret_marks_the_question_on_itself_or_on_its_note() {
        let mut properties = region();
        properties["region_note"]["_meta"]["codex"]["isSecret"] = json!(true);
        assert!(ask(&properties, &json!({})).form.questions()[0].secret);
        let plain =
            json!({"region": {"type": "string", "title": "?", "_meta": {"codex": {"isSecret": true}}}});
        let asked = ask(&plain, &json!({}));
        assert!(asked.form.questions()[0].secret);
        assert_eq!(asked.form.questions()[0].kind, Kind::Text);
    }

    #[test]
    fn only_an_asynchronous_request_outlives_its_prompt() {
        assert!(ask(&region(), &json!({"delivery": "async"})).outlives_prompt);
        for meta in [json!({}), json!(null), json!({"delivery": "sync"}), json!({"delivery": true})] {
            assert!(!ask(&region(), &meta).outlives_prompt);
        }
    }

    #[test]
    fn forms_of_mcp_servers_are_read_as_everywhere() {
        let asked = ask(
            &json!({"zone": {"type": "string", "title": "Zone", "description": "Which zone?"}}),
            &json!({}),
        );
        assert_eq!(asked.form.questions()[0].prompt, "Which zone?");
    }
}
