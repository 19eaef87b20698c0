//! The rules of form.md, one by one.

mod companions;
mod content;
mod hostile;
mod mapping;
mod properties;
mod validation;

use serde_json::{Value, json};

use super::{Content, Form, FormProfile, FormRequest, Mapped, Refusal, map};
use crate::ask::{Answer, Question};
use crate::form::{AnswerError, AnswerRules, Rule};
use crate::words::{Companion, Source};

/// An agent that adds a companion's text to the selection.
const ADDS: FormProfile = FormProfile { companion: Companion::Adds, ..FormProfile::acp() };

fn try_map(schema: &Value, profile: &FormProfile) -> Result<Mapped, Refusal> {
    map(&FormRequest { message: "The message", schema }, profile)
}

#[expect(clippy::needless_pass_by_value, reason = "schemas are written in place")]
/// Maps a schema of these properties, none of them required.
fn mapped(properties: Value) -> Mapped {
    try_map(&json!({"type": "object", "properties": properties}), &FormProfile::acp()).unwrap()
}

fn form(properties: Value) -> Form {
    mapped(properties).form
}

#[expect(clippy::needless_pass_by_value, reason = "schemas are written in place")]
/// The only question of a form of one property.
fn question(property: Value) -> Question {
    let form = form(json!({ "q": property }));
    assert_eq!(form.questions().len(), 1);
    form.questions()[0].clone()
}

fn ids(form: &Form) -> Vec<&str> {
    form.questions().iter().map(|question| question.id.as_str()).collect()
}

fn values(question: &Question) -> Vec<&str> {
    question.choices.iter().map(|choice| choice.value.as_str()).collect()
}

fn pick(question: &str, selected: &[&str]) -> Answer {
    both(question, selected, "")
}

fn text(question: &str, text: &str) -> Answer {
    both(question, &[], text)
}

fn both(question: &str, selected: &[&str], text: &str) -> Answer {
    Answer {
        question_id: question.into(),
        selected_options: selected.iter().map(|value| (*value).to_owned()).collect(),
        custom_text: text.into(),
    }
}

const ELICITATION: AnswerRules = AnswerRules::for_source(Source::Elicitation);

/// The content of a valid submission to an elicitation.
fn content(form: &Form, answers: &[Answer]) -> Value {
    Value::Object(form.answer(answers, ELICITATION).unwrap())
}

/// The broken rules of a submission to an elicitation.
fn broken(form: &Form, answers: &[Answer]) -> Vec<Rule> {
    rules(form.answer(answers, ELICITATION))
}

fn rules(result: Result<Content, Vec<AnswerError>>) -> Vec<Rule> {
    result.unwrap_err().iter().map(|error| error.rule).collect()
}

/// The property of the Claude bridge with its companion: one pick of three, or own words.
fn datastore() -> Value {
    json!({
        "question_0": {"type": "string", "title": "Datastore", "oneOf": [
            {"const": "Postgres", "title": "Postgres", "description": "Relational."},
            {"const": "SQLite", "title": "SQLite", "_meta": {"_claude/askUserQuestionOption": {"preview": "file:./app.db"}}},
            {"const": "DynamoDB", "title": "DynamoDB"},
        ]},
        "question_0_custom": {"type": "string", "title": "Other",
            "_meta": {"_askUserQuestionCustomAnswer": {"questionId": "question_0", "isCustomAnswer": true}}},
    })
}
