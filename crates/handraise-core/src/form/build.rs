//! Forms that are no schema: permissions, and the questions of `tool`, `ask`, refusals and confirms.

use std::collections::HashSet;

use super::limits::{MAX_CHOICES, MAX_PROPERTIES};
use super::refusal::{Refusal, shorten};
use super::{Field, Form, TextTo};
use crate::ask::{Choice, Constraints, Question};
use crate::words::Kind;

/// The key of the one question of a permission request (acp.md, "Agent life").
pub const PERMISSION: &str = "permission";

/// How many choices a question of `ask_user_question` takes (AC-57).
const TOOL_CHOICES: std::ops::RangeInclusive<usize> = 2..=6;

impl Form {
    /// A form of one question `permission`, answered by exactly one of `choices`. Later choices with a value that
    /// an earlier one has are left out.
    ///
    /// # Errors
    /// When there is no choice, or more than a question takes.
    pub fn permission(prompt: &str, mut choices: Vec<Choice>) -> Result<Self, Refusal> {
        let mut seen = HashSet::with_capacity(choices.len());
        choices.retain(|choice| seen.insert(choice.value.clone()));
        if choices.is_empty() {
            return Err(Refusal::NoQuestions);
        }
        Self::from_questions(vec![Question {
            id: PERMISSION.to_owned(),
            kind: Kind::Single,
            title: None,
            prompt: prompt.to_owned(),
            required: true,
            default: None,
            allows_text: false,
            companion: None,
            secret: false,
            choices,
            constraints: Constraints::default(),
        }])
    }

    /// The questions of one `ask_user_question` call (AC-57).
    ///
    /// # Errors
    /// As [`Form::from_questions`], and when a question has fewer than 2 or more than 6 choices.
    pub fn tool(questions: Vec<Question>) -> Result<Self, Refusal> {
        for question in &questions {
            let found = question.choices.len();
            if !TOOL_CHOICES.contains(&found) {
                let (least, most) = (*TOOL_CHOICES.start(), *TOOL_CHOICES.end());
                return Err(Refusal::ChoiceCount { question: shorten(&question.id), found, least, most });
            }
        }
        Self::from_questions(questions)
    }

    /// A form that is no schema. Free text goes to the question's own key where `allows_text` is set.
    ///
    /// # Errors
    /// When there is no question, one id stands twice, or a limit is passed.
    pub fn from_questions(questions: Vec<Question>) -> Result<Self, Refusal> {
        if questions.is_empty() {
            return Err(Refusal::NoQuestions);
        }
        if questions.len() > MAX_PROPERTIES {
            return Err(Refusal::TooManyProperties { found: questions.len(), limit: MAX_PROPERTIES });
        }
        let mut ids = HashSet::with_capacity(questions.len());
        for question in &questions {
            if !ids.insert(question.id.as_str()) {
                return Err(Refusal::DuplicateQuestion { question: shorten(&question.id) });
            }
            let found = question.choices.len();
            if found > MAX_CHOICES {
                let question = shorten(&question.id);
                return Err(Refusal::TooManyChoices { question, found, limit: MAX_CHOICES });
            }
        }
        let fields = questions
            .iter()
            .map(|question| {
                let typed = question.allows_text || question.kind == Kind::Text;
                Field { text: if typed { TextTo::Own } else { TextTo::Nowhere }, consts: None }
            })
            .collect();
        Ok(Self { questions, fields })
    }
}
