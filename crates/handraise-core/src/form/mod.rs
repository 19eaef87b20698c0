//! Forms: `requestedSchema` → ordered questions, and a human's answers → content.
//!
//! The same code serves ACP, MCP and `handraise ask` (form.md). A schema arrives as the ordered tree that
//! `serde_json` makes of raw JSON, is mapped once by [`map`], and the [`Form`] that results checks every answer
//! with [`Form::answer`]. What differs between agents is data in a [`FormProfile`], never code in here.

mod answer;
mod build;
mod choices;
mod format;
mod limits;
mod map;
mod number;
mod order;
mod pattern;
mod profile;
mod property;
mod refusal;
mod rules;
mod secret;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use build::PERMISSION;
pub use limits::{
    MAX_CHOICES, MAX_CONTENT_BYTES, MAX_DEPTH, MAX_MESSAGE_BYTES, MAX_PATTERN_BYTES, MAX_PATTERNS,
    MAX_PROPERTIES, MAX_SCHEMA_BYTES,
};
pub use map::map;
pub use order::compare_keys;

pub use profile::{CompanionMarker, FormProfile, MetaPath, Order, PromptRule};
pub use refusal::{Ignored, IgnoredPart, Refusal};
pub use rules::{AnswerError, AnswerRules, Rule};
pub use secret::says_secret;

use serde_json::{Map, Value};

use crate::ask::{Answer, Question};

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
    /// Parallel to `questions`.
    fields: Vec<Field>,
}

/// What stands behind a question on the wire.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    /// Where free text goes.
    text: TextTo,
    /// The JSON values of the choices, in their order; `None` when each is the choice's own text.
    consts: Option<Box<[Value]>>,
}

/// The key that free text goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TextTo {
    /// The question's own.
    Own,
    /// The question's own, as one of its values.
    Among,
    /// Its companion's.
    Companion(String),
    /// None: text is dropped.
    Nowhere,
}

impl Form {
    /// The questions, in presentation order.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Checks a submission and builds the content that it stands for (form.md, "Answers → content").
    ///
    /// # Errors
    /// Every failed rule, each naming the question, the value and the rule. Nothing may be sent then; the ask
    /// stays open (F10).
    pub fn answer(&self, answers: &[Answer], rules: AnswerRules) -> Result<Content, Vec<AnswerError>> {
        answer::answer(self, answers, rules)
    }
}
