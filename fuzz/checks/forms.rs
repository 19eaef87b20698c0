//! Forms: whatever schema is asked for, and whatever is answered, content has the schema's keys alone.

use handraise_core::ask::Answer;
use handraise_core::form::{AnswerRules, CompanionMarker, FormProfile, FormRequest, Order, map};
use handraise_core::words::Source;
use serde_json::Value;

const PROFILES: [FormProfile; 3] = [
    FormProfile::acp(),
    FormProfile::declared(),
    FormProfile {
        order: Order::Sorted,
        own_words: true,
        markers: &[CompanionMarker::Suffix("_other")],
        ..FormProfile::acp()
    },
];

/// Reads bytes as a schema, and answers it with what follows a line end.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (schema, said) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let request = FormRequest { message: "Which?", schema: &schema };
    for profile in &PROFILES {
        let Ok(mapped) = map(&request, profile) else { continue };
        let questions = mapped.form.questions();
        assert!(!questions.is_empty());
        let keys = schema["properties"].as_object().unwrap();
        let answer = |picks: bool, says: bool| -> Vec<Answer> {
            let answers = questions.iter().map(|question| Answer {
                question_id: question.id.clone(),
                selected_options: if picks {
                    question.choices.iter().take(1).map(|choice| choice.value.clone()).collect()
                } else {
                    Vec::new()
                },
                custom_text: if says { said.to_owned() } else { String::new() },
            });
            answers.collect()
        };
        for source in [Source::Elicitation, Source::Tool] {
            for (picks, says) in [(false, false), (true, false), (false, true), (true, true)] {
                let rules = AnswerRules::for_source(source);
                match mapped.form.answer(&answer(picks, says), rules) {
                    Ok(content) => assert!(content.keys().all(|key| keys.contains_key(key)), "{content:?}"),
                    Err(errors) => assert!(!errors.is_empty()),
                }
            }
        }
    }
}
