//! What a person has entered for an ask and not sent: one draft for each question.

use std::collections::BTreeSet;

use handraise_api::{
    ask::{Answer, AnswerRequest, Ask, Choice, Question},
    words::{Kind, Source},
};
use serde_json::Value;

use super::{super::words, field::Field};

/// The drafts of one ask, in the order of its questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Drafts {
    pub(super) questions: Vec<Draft>,
    allows_both: bool,
}

/// What is entered for one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// Places of the choices that are picked.
    pub(super) picks: BTreeSet<usize>,
    pub(super) words: Field,
    is_single: bool,
}

impl Drafts {
    /// What the asking side fills in; nothing for a permission or a confirm, which take a deliberate choice (S40).
    pub(super) fn new(ask: &Ask) -> Self {
        let is_prefilled = !matches!(ask.content.source, Source::Permission | Source::Confirm);
        let questions = ask.content.questions.iter().map(|question| {
            let default = question.default.as_ref().filter(|_| is_prefilled && !question.secret);
            Draft::new(question, default)
        });
        Self { questions: questions.collect(), allows_both: ask.content.allows_text_with_selection }
    }

    /// Picks a choice, or takes the pick back.
    pub(super) fn toggle(&mut self, question: usize, choice: usize) {
        let allows_both = self.allows_both;
        let Some(draft) = self.questions.get_mut(question) else { return };
        if draft.picks.remove(&choice) {
            return;
        }
        if draft.is_single {
            draft.picks.clear();
        }
        draft.picks.insert(choice);
        if !allows_both {
            draft.words = Field::default();
        }
    }

    /// To be called after words were typed: where only one of both is taken, they replace the pick (AC-57).
    pub(super) fn typed(&mut self, question: usize) {
        if let Some(draft) = self.questions.get_mut(question)
            && !self.allows_both
            && !draft.words.is_empty()
        {
            draft.picks.clear();
        }
    }

    /// Whether a question has an answer.
    pub(super) fn is_answered(&self, question: usize) -> bool {
        self.questions.get(question).is_some_and(Draft::is_answered)
    }

    /// Forgets what looks like a secret: it is never kept longer than its card is open (S33).
    pub(super) fn forget_secrets(&mut self, ask: &Ask) {
        for (draft, question) in self.questions.iter_mut().zip(&ask.content.questions) {
            if question.secret {
                draft.words = Field::default();
            }
        }
    }

    /// The submission that it amounts to.
    pub(super) fn request(&self, ask: &Ask) -> AnswerRequest {
        let answers = ask.content.questions.iter().zip(&self.questions);
        let answers = answers.filter(|(_, draft)| draft.is_answered()).map(|(question, draft)| {
            let choices = words::choices(question);
            let picks = draft.picks.iter().filter_map(|pick| choices.get(*pick));
            Answer {
                question_id: question.id.clone(),
                selected_options: picks.map(|choice| choice.value.clone()).collect(),
                custom_text: draft.words.text(),
            }
        });
        AnswerRequest { answers: answers.collect(), ..AnswerRequest::default() }
    }
}

impl Draft {
    fn new(question: &Question, default: Option<&Value>) -> Self {
        let choices = words::choices(question);
        let mut draft = Self { is_single: question.kind != Kind::Multi, ..Self::default() };
        match default {
            Some(Value::Array(values)) => {
                draft.picks = values.iter().filter_map(|one| place(&choices, one)).collect();
            }
            Some(value) if !choices.is_empty() => draft.picks = place(&choices, value).into_iter().collect(),
            Some(Value::String(text)) => draft.words = Field::new(text),
            Some(Value::Number(number)) => draft.words = Field::new(&number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Object(_)) | None => {}
        }
        draft
    }

    fn is_answered(&self) -> bool {
        !self.picks.is_empty() || !self.words.text().trim().is_empty()
    }
}

/// The place of the choice that a default names.
fn place(choices: &[Choice], value: &Value) -> Option<usize> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    choices.iter().position(|choice| choice.value == text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::inbox::sample;

    #[test]
    fn defaults_are_filled_in_and_seen_and_secrets_are_not() {
        let mut ask = sample::ask();
        for (question, default) in ask.content.questions.iter_mut().zip([
            json!("SQLite"),
            json!(["prod", "dev", "moon"]),
            json!(true),
            json!(8080),
            json!("hunter2"),
        ]) {
            question.default = Some(default);
        }
        let answers = Drafts::new(&ask).request(&ask).answers;
        let shown: Vec<_> = answers
            .iter()
            .map(|answer| {
                (answer.question_id.as_str(), answer.selected_options.join("|"), answer.custom_text.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("db", "SQLite".to_owned(), ""),
                ("envs", "dev|prod".to_owned(), ""),
                ("public", "true".to_owned(), ""),
                ("port", String::new(), "8080"),
            ]
        );
    }

    #[test]
    fn s40_a_permission_has_nothing_filled_in() {
        for source in [Source::Permission, Source::Confirm] {
            let mut ask = sample::single(source);
            ask.content.questions[0].default = Some(json!("yes"));
            assert!(!Drafts::new(&ask).is_answered(0));
        }
    }

    #[test]
    fn ac57_words_replace_a_pick_and_a_pick_words_where_only_one_is_taken() {
        let mut ask = sample::single(Source::Tool);
        ask.content.questions[0].allows_text = true;
        let mut drafts = Drafts::new(&ask);
        drafts.toggle(0, 1);
        drafts.questions[0].words = Field::new("neither");
        drafts.typed(0);
        assert_eq!(drafts.request(&ask).answers[0].custom_text, "neither");
        assert!(drafts.questions[0].picks.is_empty());
        drafts.toggle(0, 0);
        let answer = drafts.request(&ask).answers.remove(0);
        assert_eq!((answer.selected_options, answer.custom_text), (vec!["yes".to_owned()], String::new()));
    }

    #[test]
    fn ac12i_words_stand_beside_a_pick_where_both_are_taken() {
        let ask = sample::ask();
        let mut drafts = Drafts::new(&ask);
        drafts.toggle(0, 0);
        drafts.toggle(0, 1);
        drafts.questions[0].words = Field::new("17");
        drafts.typed(0);
        let answer = drafts.request(&ask).answers.remove(0);
        assert_eq!(
            (answer.selected_options, answer.custom_text),
            (vec!["SQLite".to_owned()], "17".to_owned())
        );
    }
}
