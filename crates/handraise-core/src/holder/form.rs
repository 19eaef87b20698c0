//! What the engine needs of a form: its questions, and a judgement of answers to them.

use serde_json::{Map, Value};

use crate::ask::{Answer, Question};

/// What goes on the wire with an `accept`: property keys, verbatim, to values (form.md, "Answers → content").
pub type Content = Map<String, Value>;

/// What is wrong with one answer (F10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerError {
    /// Which question; empty when it is the submission as a whole.
    pub question_id: String,
    /// Which rule, as a stable word such as `maximum`.
    pub rule: &'static str,
    /// What to tell a human.
    pub message: String,
}

/// The questions of one ask, and what answers to them are worth.
///
/// The engine knows no schema: it asks its ask.
pub trait AskForm: Send + 'static {
    /// The questions in presentation order.
    fn questions(&self) -> &[Question];

    /// The content that the answers amount to.
    ///
    /// # Errors
    /// Every rule that an answer breaks; then nothing is delivered and the ask stays open.
    fn answer(&self, answers: &[Answer]) -> Result<Content, Vec<AnswerError>>;
}
