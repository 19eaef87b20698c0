//! Answers → content: what a submission must be, and what is sent for it (form.md).

use std::collections::HashMap;

use serde_json::Value;

use super::choices::FEW;
use super::limits::{MAX_CONTENT_BYTES, content_fits};
use super::number::NoInteger;
use super::refusal::shorten;
use super::rules::{AnswerError, AnswerRules, Rule};
use super::{Content, Field, Form, TextTo, format, number, pattern};
use crate::ask::{Answer, Constraints, Question};
use crate::words::{Companion, Kind};

/// More broken rules than this are not listed.
const MAX_ERRORS: usize = 256;

/// See [`Form::answer`].
pub(super) fn answer(
    form: &Form,
    answers: &[Answer],
    rules: AnswerRules,
) -> Result<Content, Vec<AnswerError>> {
    let mut errors = Vec::new();
    if too_long(answers) {
        return Err(vec![too_large()]);
    }
    let given = pair(form, answers, &mut errors);
    let mut content = Content::new();
    for ((question, field), answer) in form.questions.iter().zip(&form.fields).zip(given) {
        let before = (content.len(), errors.len());
        let check = Check { question, field, rules };
        if let Some(answer) = answer {
            check.answer(answer, &mut content, &mut errors);
        }
        let unanswered = before == (content.len(), errors.len());
        if unanswered && (question.required || !rules.allows_partial) {
            errors.push(check.broken(Rule::Required, "This must be answered."));
        }
        if errors.len() >= MAX_ERRORS {
            break;
        }
    }
    if errors.is_empty() && !content_fits(&content) {
        errors.push(too_large());
    }
    if errors.is_empty() { Ok(content) } else { Err(errors) }
}

/// Whether the words alone are too much; also bounds what checking them costs.
fn too_long(answers: &[Answer]) -> bool {
    let words = answers.iter().map(|answer| {
        answer.custom_text.trim().len() + answer.selected_options.iter().map(String::len).sum::<usize>()
    });
    words.fold(0, usize::saturating_add) > MAX_CONTENT_BYTES
}

fn too_large() -> AnswerError {
    AnswerError {
        question_id: String::new(),
        rule: Rule::TooLarge,
        message: format!("The answers have more than {MAX_CONTENT_BYTES} bytes together. Shorten them."),
    }
}

/// Finds each question's answer; parallel to the form's questions.
fn pair<'a>(form: &Form, answers: &'a [Answer], errors: &mut Vec<AnswerError>) -> Vec<Option<&'a Answer>> {
    let mut given = vec![None; form.questions.len()];
    let find = finder(form.questions.iter().map(|question| question.id.as_str()), answers.len());
    for answer in answers {
        let (rule, message) = match find(&answer.question_id).and_then(|at| given.get_mut(at)) {
            Some(slot @ None) => {
                *slot = Some(answer);
                continue;
            }
            Some(Some(_)) => (Rule::DuplicateAnswer, "This question is answered twice in one submission."),
            None => (Rule::UnknownQuestion, "This ask has no question with this id."),
        };
        let question_id = match rule {
            Rule::UnknownQuestion => shorten(&answer.question_id),
            _ => answer.question_id.clone(),
        };
        errors.push(AnswerError { question_id, rule, message: message.to_owned() });
        if errors.len() >= MAX_ERRORS {
            break;
        }
    }
    given
}

/// Finds positions of words, by hashing once there are many of both words and questions about them.
fn finder<'a>(words: impl Iterator<Item = &'a str> + Clone, asked: usize) -> impl Fn(&str) -> Option<usize> {
    let index: Option<HashMap<&str, usize>> =
        (asked > FEW).then(|| words.clone().enumerate().map(|(at, word)| (word, at)).collect());
    move |wanted| match &index {
        Some(index) => index.get(wanted).copied(),
        None => words.clone().position(|word| word == wanted),
    }
}

/// What people type, without what surrounds it. JavaScript trims the byte order mark too.
fn trimmed(text: &str) -> Option<&str> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    (!text.is_empty()).then_some(text)
}

struct Check<'a> {
    question: &'a Question,
    field: &'a Field,
    rules: AnswerRules,
}

impl Check<'_> {
    fn answer(&self, answer: &Answer, content: &mut Content, errors: &mut Vec<AnswerError>) {
        let text = trimmed(&answer.custom_text);
        let before = errors.len();
        match self.question.kind {
            Kind::Single | Kind::Multi => {
                let picks = self.picks(&answer.selected_options, errors);
                let value = self.value(&picks);
                self.selection(value, picks.len(), text, content, errors);
            }
            Kind::Boolean => {
                let value = self.boolean(&answer.selected_options, errors);
                if text.is_some() && !self.question.allows_text {
                    let said = self.said(text.unwrap_or_default());
                    errors.push(self.broken(Rule::NotABoolean, format!("{said} is neither yes nor no.")));
                } else if errors.len() == before {
                    self.selection(value.map(Value::Bool), 1, text, content, errors);
                }
            }
            Kind::Text => {
                if !answer.selected_options.is_empty() {
                    errors
                        .push(self.broken(Rule::NotAChoice, "This question has no choices; it takes text."));
                } else if let Some(text) = text {
                    self.text(text, content, errors);
                }
            }
            Kind::Number | Kind::Integer => {
                if !answer.selected_options.is_empty() {
                    errors.push(
                        self.broken(Rule::NotANumber, "This question has no choices; it takes a number."),
                    );
                } else if let Some(text) = text
                    && let Some(number) = self.number(text, errors)
                {
                    content.insert(self.question.id.clone(), Value::Number(number));
                }
            }
        }
    }

    /// Sends a selection, or text, or both, as the question and the rules have it.
    fn selection(
        &self,
        value: Option<Value>,
        picks: usize,
        text: Option<&str>,
        content: &mut Content,
        errors: &mut Vec<AnswerError>,
    ) {
        let text = match text {
            Some(_) if !self.question.allows_text && !self.rules.allows_text_with_selection => {
                errors.push(self.broken(Rule::NoText, "This question takes one of its choices, not text."));
                return;
            }
            // Without a companion there is nowhere for it to go (form.md).
            Some(_) if self.field.text == TextTo::Nowhere => None,
            text => text,
        };
        if text.is_some() && value.is_some() && !self.rules.allows_text_with_selection {
            errors.push(self.broken(Rule::TextWithSelection, "Send a choice or your own words, not both."));
            return;
        }
        let keeps = text.is_none() || self.question.companion == Some(Companion::Adds);
        let is_among = text.is_some() && self.field.text == TextTo::Among;
        if is_among {
            self.count(picks + 1, errors);
        }
        if let Some(value) = value.filter(|_| keeps) {
            if self.question.kind == Kind::Multi && !is_among {
                self.count(picks, errors);
            }
            content.insert(self.question.id.clone(), value);
        }
        if let Some(text) = text {
            self.text(text, content, errors);
        }
    }

    /// Checks selections and finds them among the choices, in declaration order (F12, AC-55).
    fn picks(&self, selected: &[String], errors: &mut Vec<AnswerError>) -> Vec<usize> {
        let choices = &self.question.choices;
        let find = finder(choices.iter().map(|choice| choice.value.as_str()), selected.len());
        let mut picked = vec![false; if selected.is_empty() { 0 } else { choices.len() }];
        for value in selected {
            match find(value).and_then(|at| picked.get_mut(at)) {
                Some(slot @ false) => *slot = true,
                Some(true) => {
                    let said = self.said(value);
                    errors.push(self.broken(Rule::DuplicateSelection, format!("{said} is selected twice.")));
                }
                None => {
                    let said = self.said(value);
                    errors.push(self.broken(Rule::NotAChoice, format!("{said} is not one of the choices.")));
                }
            }
            if errors.len() >= MAX_ERRORS {
                break;
            }
        }
        let picks: Vec<usize> =
            picked.iter().enumerate().filter(|(_, picked)| **picked).map(|(at, _)| at).collect();
        if picks.len() > 1 && self.question.kind == Kind::Single {
            let message = format!("{} choices are selected. This question takes one.", picks.len());
            errors.push(self.broken(Rule::OneSelection, message));
        }
        picks
    }

    /// What stands for the picks on the wire.
    fn value(&self, picks: &[usize]) -> Option<Value> {
        let constant = |at: &usize| match &self.field.consts {
            Some(consts) => consts.get(*at).cloned(),
            None => self.question.choices.get(*at).map(|choice| Value::from(choice.value.as_str())),
        };
        match self.question.kind {
            Kind::Multi if !picks.is_empty() => {
                Some(Value::Array(picks.iter().filter_map(constant).collect()))
            }
            Kind::Multi => None,
            _ => picks.first().and_then(constant),
        }
    }

    fn boolean(&self, selected: &[String], errors: &mut Vec<AnswerError>) -> Option<bool> {
        match selected {
            [] => None,
            [one] if one == "true" => Some(true),
            [one] if one == "false" => Some(false),
            [one] => {
                let said = self.said(one);
                errors.push(self.broken(Rule::NotABoolean, format!("{said} is neither yes nor no.")));
                None
            }
            several => {
                let message =
                    format!("{} choices are selected. This question takes yes or no.", several.len());
                errors.push(self.broken(Rule::OneSelection, message));
                None
            }
        }
    }

    fn number(&self, text: &str, errors: &mut Vec<AnswerError>) -> Option<serde_json::Number> {
        let Constraints { minimum, maximum, .. } = &self.question.constraints;
        let said = self.said(text);
        let read = match self.question.kind {
            Kind::Integer => number::parse_integer(text),
            _ => number::parse(text).ok_or(NoInteger::Syntax),
        };
        let number = match read {
            Ok(number) => number,
            Err(why) => {
                let (rule, what) = match why {
                    NoInteger::Syntax => (Rule::NotANumber, "not a number. Write it like 30 or 2.5."),
                    NoInteger::Fraction => (Rule::NotAnInteger, "not a whole number."),
                    NoInteger::TooLarge => (Rule::NotANumber, "too large to be sent exactly."),
                };
                errors.push(self.broken(rule, format!("{said} is {what}")));
                return None;
            }
        };
        let broken = match (minimum, maximum) {
            (Some(least), _) if number::compare(&number, least).is_lt() => {
                Some((Rule::Minimum, format!("{said} is too small. The least it takes is {least}.")))
            }
            (_, Some(most)) if number::compare(&number, most).is_gt() => {
                Some((Rule::Maximum, format!("{said} is too large. The most it takes is {most}.")))
            }
            _ => None,
        };
        if let Some((rule, message)) = broken {
            errors.push(self.broken(rule, message));
            return None;
        }
        Some(number)
    }

    /// Checks free text and puts it where it belongs.
    fn text(&self, text: &str, content: &mut Content, errors: &mut Vec<AnswerError>) {
        let key = match &self.field.text {
            TextTo::Own | TextTo::Among => &self.question.id,
            TextTo::Companion(key) => key,
            TextTo::Nowhere => return,
        };
        let before = errors.len();
        self.text_rules(text, errors);
        if errors.len() > before {
            return;
        }
        match content.get_mut(key) {
            // Words that are a picked value say nothing more.
            Some(Value::Array(values)) if values.iter().any(|value| value == text) => {}
            Some(Value::Array(values)) => values.push(Value::from(text)),
            _ if self.field.text == TextTo::Among => {
                content.insert(key.clone(), Value::Array(vec![Value::from(text)]));
            }
            _ => {
                content.insert(key.clone(), Value::from(text));
            }
        }
    }

    fn text_rules(&self, text: &str, errors: &mut Vec<AnswerError>) {
        let Constraints { min_length, max_length, pattern, format, .. } = &self.question.constraints;
        if min_length.is_some() || max_length.is_some() {
            let length = text.chars().count() as u64;
            let said = self.said(text);
            if let Some(least) = min_length.filter(|least| length < *least) {
                let message = format!("{said} has {length} characters. It must have at least {least}.");
                errors.push(self.broken(Rule::MinLength, message));
            }
            if let Some(most) = max_length.filter(|most| length > *most) {
                let message = format!("{said} has {length} characters. It may have at most {most}.");
                errors.push(self.broken(Rule::MaxLength, message));
            }
        }
        if let Some(source) = pattern
            && pattern::compile(source).is_some_and(|pattern| !pattern.is_match(text))
        {
            let said = self.said(text);
            let source = quoted(source);
            errors.push(self.broken(Rule::Pattern, format!("{said} does not match the pattern {source}.")));
        }
        if let Some(name) = format
            && !format::matches(name, text)
        {
            let said = self.said(text);
            let example = format::example(name);
            errors.push(self.broken(Rule::Format, format!("{said} is not {example}.")));
        }
    }

    fn count(&self, picks: usize, errors: &mut Vec<AnswerError>) {
        let Constraints { min_items, max_items, .. } = &self.question.constraints;
        let picks = picks as u64;
        if let Some(least) = min_items.filter(|least| picks < *least) {
            let message = format!("{picks} selected. Select at least {least}.");
            errors.push(self.broken(Rule::MinItems, message));
        }
        if let Some(most) = max_items.filter(|most| picks > *most) {
            let message = format!("{picks} selected. Select at most {most}.");
            errors.push(self.broken(Rule::MaxItems, message));
        }
    }

    fn broken(&self, rule: Rule, message: impl Into<String>) -> AnswerError {
        AnswerError { question_id: self.question.id.clone(), rule, message: message.into() }
    }

    /// The value, for a message; of a secret only that there was one (S33).
    fn said(&self, value: &str) -> String {
        if self.question.secret { "The value".to_owned() } else { quoted(value) }
    }
}

/// A value in quotes, shortened and without control characters.
fn quoted(value: &str) -> String {
    format!("“{}”", shorten(value))
}
