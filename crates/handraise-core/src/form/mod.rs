//! Forms: `requestedSchema` → ordered questions, and a human's answers → content.
//!
//! The same code serves ACP, MCP and `handraise ask` (form.md). A schema arrives as the ordered tree that
//! `serde_json` makes of raw JSON, is mapped once by [`map`], and the [`Form`] that results checks every answer
//! with [`Form::answer`]. What differs between agents is data in a [`FormProfile`], never code in here.

mod profile;
mod refusal;
mod rules;

pub use profile::{CompanionMarker, FormProfile, MetaPath, Order, PromptRule};
pub use refusal::{Ignored, IgnoredPart, Refusal};
pub use rules::{AnswerError, AnswerRules, Rule};

use serde_json::{Map, Value};

use crate::ask::{Answer, Choice, Question};

/// What a form request holds besides its addressing.
#[derive(Debug, Clone, Copy)]
pub struct FormRequest<'a> {
    /// The request's own words; the prompt of a question that has no description (AC-06).
    pub message: &'a str,
    /// `requestedSchema`, as parsed from raw JSON so that the order of its properties survives.
    pub schema: &'a Value,
}

/// The `content` of an accepted form: the schema's property keys, verbatim, in presentation order.
pub type Content = Map<String, Value>;

/// A mapped request.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapped {
    /// The questions and how their answers become content.
    pub form: Form,
    /// What of the schema was left out, and why: for the log.
    pub ignored: Vec<Ignored>,
}

/// The questions of one ask and what is needed to check and build their answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    questions: Vec<Question>,
}

/// Turns a requested schema into questions (form.md, "Mapping").
///
/// # Errors
/// When nothing in it can be asked, or it is beyond a size limit: the request is then declined without
/// reaching anyone (AC-18), and the refusal says why.
pub fn map(request: &FormRequest<'_>, profile: &FormProfile) -> Result<Mapped, Refusal> {
    let _ = (request, profile);
    Err(Refusal::NoQuestions)
}

impl Form {
    /// A form of one question `permission`, answered by exactly one of `choices` (acp.md, "Agent life").
    ///
    /// # Errors
    /// When there is no choice, or more than a question takes.
    pub fn permission(prompt: &str, choices: Vec<Choice>) -> Result<Self, Refusal> {
        let _ = (prompt, choices);
        Err(Refusal::NoQuestions)
    }

    /// A form that is no schema: the questions of `tool`, `ask`, a refusal or a confirm.
    ///
    /// Free text goes to the question's own key where `allows_text` is set.
    ///
    /// # Errors
    /// When there is no question, one id stands twice, or a limit is passed.
    pub fn from_questions(questions: Vec<Question>) -> Result<Self, Refusal> {
        Ok(Self { questions })
    }

    /// The questions, in presentation order.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Checks a submission and builds the content that it stands for (form.md, "Validation", "Answers → content").
    ///
    /// # Errors
    /// Every failed rule, each naming the question, the value and the rule. Nothing may be sent then; the ask
    /// stays open (F10).
    pub fn answer(&self, answers: &[Answer], rules: AnswerRules) -> Result<Content, Vec<AnswerError>> {
        let _ = (answers, rules);
        Ok(Content::new())
    }
}
