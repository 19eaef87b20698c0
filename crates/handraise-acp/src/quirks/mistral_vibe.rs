//! `@mistralai/mistral-vibe`. Measured: 3.0.3, its source read 2026-11-29 and 2026-11-30, run with a scripted model
//! 2026-11-30.
//!
//! Its forms are `q0`, `q1`, … with `title`, `description` and all of them required, without companions. It says that
//! clients may offer own words everywhere: a string that is no choice, or an item of an array that is none, is taken as
//! such (`isOther`). One string holds words or a pick, an array holds both. A JSON-RPC error as the response fails its whole turn, so nothing is ever answered with one. Forms of
//! MCP servers behind it are refused by itself (-32600) and never arrive.

use handraise_core::form::FormProfile;

use super::{Agent, Quirks};

/// What it calls itself.
pub const NAME: &str = "@mistralai/mistral-vibe";

pub(super) fn quirks() -> Quirks {
    let form = FormProfile { own_words: true, ..FormProfile::acp() };
    Quirks { agent: Agent::MistralVibe, form, ..Quirks::default() }
}

#[cfg(test)]
mod tests {
    use handraise_core::Answer;
    use handraise_core::form::{AnswerRules, Rule};
    use handraise_core::words::{Companion, Kind, Source};
    use serde_json::json;

    use super::*;
    use crate::elicitation::{Elicitation, read};

    fn asked() -> Elicitation {
        let params = json!({"mode": "form", "sessionId": "s", "toolCallId": "t", "message": "User input required",
            "requestedSchema": {"type": "object", "properties": {
                "q0": {"type": "string", "title": "DB", "description": "Which database?", "oneOf": [{"const": "a", "title": "a"}]},
                "q1": {"type": "array", "description": "Which stages?", "items": {"anyOf": [
                    {"const": "b", "title": "b"}, {"const": "c", "title": "c"}]}}},
                "required": ["q0", "q1"], "description": null}});
        read(&params, true, &quirks()).unwrap()
    }

    #[test]
    fn its_questions_are_all_required() {
        let asked = asked();
        let shapes: Vec<_> =
            asked.form.questions().iter().map(|q| (q.kind, q.prompt.as_str(), q.required)).collect();
        assert_eq!(shapes, [(Kind::Single, "Which database?", true), (Kind::Multi, "Which stages?", true)]);
        let broken = asked.form.answer(&[], AnswerRules::for_source(Source::Elicitation)).unwrap_err();
        assert!(broken.iter().all(|error| error.rule == Rule::Required));
    }

    #[test]
    fn own_words_stand_for_the_pick_of_one_question_and_beside_those_of_another() {
        let asked = asked();
        let companions: Vec<_> =
            asked.form.questions().iter().map(|q| (q.allows_text, q.companion)).collect();
        assert_eq!(companions, [(true, Some(Companion::Replaces)), (true, Some(Companion::Adds))]);
        let content = |picks: [&[&str]; 2], words: [&str; 2]| {
            let answers: Vec<Answer> = (0..2)
                .map(|at| Answer {
                    question_id: format!("q{at}"),
                    selected_options: picks[at].iter().map(|&pick| pick.into()).collect(),
                    custom_text: words[at].into(),
                })
                .collect();
            let content = asked.form.answer(&answers, AnswerRules::for_source(Source::Elicitation));
            serde_json::to_value(content.unwrap()).unwrap()
        };
        assert_eq!(content([&["a"], &["c", "b"]], ["", ""]), json!({"q0": "a", "q1": ["b", "c"]}));
        assert_eq!(content([&["a"], &["b"]], [" mine ", "mine"]), json!({"q0": "mine", "q1": ["b", "mine"]}));
        assert_eq!(content([&[], &[]], ["mine", "mine"]), json!({"q0": "mine", "q1": ["mine"]}));
        assert_eq!(content([&["a"], &["b"]], [" ", "b"]), json!({"q0": "a", "q1": ["b"]}));
    }
}
