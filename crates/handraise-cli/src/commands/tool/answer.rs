//! How a call ended, in the words of its result.
//!
//! All of it is text, which every client brings to its model: structured content reaches some models alone, others not at
//! all, and would say the same.

use std::time::Duration;

use handraise_config::duration;
use handraise_core::{Kind, Outcome, Provenance, Question};
use handraise_transport::escape;
use serde_json::{Value, json};

use super::questions::Questions;
use crate::asking::End;

/// The result of a call. `was_there`: whether somebody who could answer had the inbox open meanwhile.
pub(crate) fn result(questions: &Questions, end: &End, timeout: Duration, was_there: bool) -> Value {
    let answers: Vec<Value> = match (&end.content, end.outcome) {
        (Some(content), Outcome::Accept) => {
            let answered = |question: &Question| Some(answer(question, content.get(&question.id)?));
            questions.all().iter().filter_map(answered).collect()
        }
        _ => Vec::new(),
    };
    // Nobody was shown what the inbox did not take, so that nobody declined it.
    let outcome = if end.refused.is_some() { Outcome::NotOffered } else { end.outcome };
    let mut told = json!({
        "answers": answers,
        "outcome": outcome.as_str(),
        "provenance": end.provenance.as_str(),
    });
    if let Some(by) = &end.by {
        told["by"] = by.as_str().into();
    }
    if let (Some(reason), Some(_)) = (&end.reason, &end.by) {
        told["reason"] = reason.as_str().into();
    }
    told["message"] = message(end, timeout, was_there).into();
    let is_answered = end.by.is_some() && matches!(end.outcome, Outcome::Accept | Outcome::Decline);
    text(&told, !is_answered)
}

/// The result of a call whose questions reached nobody, and why.
pub(crate) fn not_asked(why: &str) -> Value {
    let told = json!({
        "answers": [],
        "outcome": Outcome::NotOffered.as_str(),
        "provenance": Provenance::System.as_str(),
        "message": format!("Nobody was asked: {why}. This is no answer, and no consent."),
    });
    text(&told, true)
}

fn text(told: &Value, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": told.to_string()}], "isError": is_error})
}

/// One answer: what was picked, or the human's own words.
fn answer(question: &Question, value: &Value) -> Value {
    let mut answer = json!({"id": question.id, "prompt": question.prompt});
    match value {
        Value::Array(_) => answer["selected"] = value.clone(),
        // Words that are a label mean the label.
        Value::String(picked)
            if question.kind == Kind::Single
                && question.choices.iter().any(|choice| &choice.value == picked) =>
        {
            answer["selected"] = json!([picked]);
        }
        words => answer["text"] = words.clone(),
    }
    answer
}

/// What is known of an answer that is not a person's by the inbox's word: it was given with a token, or by a page that had not
/// shown the questions for long enough.
const UNSEEN: &str =
    "no person was seen: it was a token's, or came before anybody could have read the questions";

fn message(end: &End, timeout: Duration, was_there: bool) -> String {
    let by = end.by.as_deref().map_or_else(|| "somebody".to_owned(), |by| escape::shortened(by, 128));
    let is_seen = end.provenance == Provenance::Human;
    if let Some(refusal) = &end.refused {
        return format!(
            "The inbox did not take the questions, so nobody was shown them: {}. This is no answer, and no consent.",
            refusal.message
        );
    }
    match end.outcome {
        Outcome::Accept if is_seen => format!("{by}, a human who was shown the questions, answered."),
        Outcome::Accept => format!("Answered as \"{by}\"; {UNSEEN}."),
        Outcome::Decline if is_seen => format!(
            "{by}, a human who was shown the questions, skipped them without an answer. That is neither a yes nor a no to \
             any of them."
        ),
        Outcome::Decline => format!(
            "Skipped without an answer as \"{by}\"; {UNSEEN}. That is neither a yes nor a no to any of them."
        ),
        Outcome::Timeout => {
            let there = if was_there {
                "somebody who could answer had the inbox open meanwhile"
            } else {
                "as far as the inbox said, nobody who could answer had it open meanwhile"
            };
            let away = if end.was_cut_off {
                ", and it could not be reached all that time, so that the questions may not have been seen"
            } else {
                ""
            };
            format!(
                "Nobody answered within {}; {there}{away}. Nobody declined either: this is silence, and no consent.",
                duration::format(timeout)
            )
        }
        Outcome::Cancel | Outcome::Withdrawn => {
            "The questions were taken back before anybody answered, because handraise was stopped. This is no answer, and no \
             consent."
                .to_owned()
        }
        Outcome::Invalid
        | Outcome::Error
        | Outcome::NotOffered
        | Outcome::Disabled
        | Outcome::Remembered
        | Outcome::Asked => format!(
            "The questions ended as {} without an answer. This is no consent.",
            end.outcome
        ),
    }
}

#[cfg(test)]
mod tests {
    use handraise_api::error::ErrorCode;
    use handraise_holder::InboxRefusal;

    use super::*;

    fn questions() -> Questions {
        let arguments = json!({"questions": [
            {"id": "db", "prompt": "Which database?", "options": [{"label": "Postgres"}, {"label": "SQLite"}]},
            {"id": "env", "prompt": "Where?", "multi": true, "options": [{"label": "dev"}, {"label": "prod"}]},
        ]});
        Questions::read(Some(&arguments.to_string())).unwrap()
    }

    fn ended(outcome: Outcome, provenance: Provenance) -> End {
        End { outcome, provenance, content: None, by: None, reason: None, refused: None, was_cut_off: false }
    }

    fn told(end: &End) -> (Value, bool) {
        let result = result(&questions(), end, Duration::from_secs(3_300), false);
        let [only] = result["content"].as_array().unwrap().as_slice() else { panic!("{result}") };
        assert_eq!(result.as_object().unwrap().len(), 2, "nothing but text: {result}");
        (serde_json::from_str(only["text"].as_str().unwrap()).unwrap(), result["isError"].as_bool().unwrap())
    }

    fn answered(content: &Value, provenance: Provenance) -> End {
        let content = content.as_object().cloned();
        End { content, by: Some("laptop".into()), ..ended(Outcome::Accept, provenance) }
    }

    #[test]
    fn picks_and_words_are_told_apart() {
        let (picked, is_error) =
            told(&answered(&json!({"db": "SQLite", "env": ["dev", "prod"]}), Provenance::Human));
        assert!(!is_error);
        assert_eq!(
            picked["answers"],
            json!([
                {"id": "db", "prompt": "Which database?", "selected": ["SQLite"]},
                {"id": "env", "prompt": "Where?", "selected": ["dev", "prod"]},
            ])
        );
        let (said, _) = told(&answered(&json!({"db": "none at all", "env": "dev"}), Provenance::Human));
        assert_eq!(said["answers"][0]["text"], "none at all");
        assert_eq!(said["answers"][1]["text"], "dev");
        assert_eq!(said["answers"][1].get("selected"), None);
    }

    #[test]
    fn who_stands_behind_an_answer_is_said() {
        let content = json!({"db": "SQLite", "env": ["dev"]});
        let (human, _) = told(&answered(&content, Provenance::Human));
        assert_eq!((&human["provenance"], &human["by"]), (&json!("human"), &json!("laptop")));
        assert!(human["message"].as_str().unwrap().contains("a human who was shown"), "{human}");
        let (token, _) = told(&answered(&content, Provenance::Client));
        assert_eq!(token["provenance"], "client");
        assert!(token["message"].as_str().unwrap().contains("no person was seen"), "{token}");
    }

    #[test]
    fn a_skip_is_no_error_and_no_answer() {
        let skipped = End {
            by: Some("laptop".into()),
            reason: Some("ask me on Monday".into()),
            ..ended(Outcome::Decline, Provenance::Human)
        };
        let (skipped, is_error) = told(&skipped);
        assert!(!is_error);
        assert_eq!((&skipped["answers"], &skipped["reason"]), (&json!([]), &json!("ask me on Monday")));
        assert!(skipped["message"].as_str().unwrap().contains("skipped"), "{skipped}");
    }

    #[test]
    fn nothing_without_an_answer_is_a_success_or_says_that_somebody_declined() {
        for outcome in Outcome::ALL {
            let (told, is_error) = told(&ended(*outcome, Provenance::System));
            assert!(is_error, "{outcome}");
            assert_eq!(told["answers"], json!([]), "{outcome}");
        }
        let (silence, _) = told(&ended(Outcome::Timeout, Provenance::System));
        let message = silence["message"].as_str().unwrap();
        assert!(
            message.contains("Nobody answered within 55m") && message.contains("Nobody declined"),
            "{message}"
        );
        assert!(
            message.contains("as far as the inbox said, nobody who could answer had it open"),
            "{message}"
        );
        let cut_off = End { was_cut_off: true, ..ended(Outcome::Timeout, Provenance::System) };
        let (away, _) = told(&cut_off);
        assert!(
            away["message"].as_str().unwrap().contains("it could not be reached all that time"),
            "{away}"
        );
        let end = ended(Outcome::Timeout, Provenance::System);
        let seen = super::message(&end, Duration::from_secs(3_300), true);
        assert!(seen.contains("somebody who could answer had the inbox open"), "{seen}");

        let refused = InboxRefusal { code: ErrorCode::LimitExceeded, message: "full".into() };
        let (refused, is_error) =
            told(&End { refused: Some(refused), ..ended(Outcome::Decline, Provenance::System) });
        assert!(is_error);
        assert_eq!(refused["outcome"], "not_offered", "nobody declined");
        assert!(refused["message"].as_str().unwrap().contains("nobody was shown them: full"), "{refused}");
    }

    #[test]
    fn an_answer_for_each_outcome_of_nobody_at_all_says_what_to_do() {
        let result = not_asked("no inbox has run in /d; start one with `handraise up`");
        assert_eq!(result["isError"], true);
        let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&told["outcome"], &told["answers"]), (&json!("not_offered"), &json!([])));
        assert!(told["message"].as_str().unwrap().contains("`handraise up`"));
    }
}
