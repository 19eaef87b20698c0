//! Which answers are valid, and what is said about one that is not.

use std::fmt;

use crate::words::{Source, vocabulary};

/// What a source allows in a submission (F3, F6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRules {
    /// Whether questions that are not `required` may be left unanswered (AC-12h, AC-12b).
    pub allows_partial: bool,
    /// Whether free text may stand beside a selection (AC-12i); otherwise it is one or the other (AC-57).
    pub allows_text_with_selection: bool,
}

impl AnswerRules {
    /// The rules of a source.
    ///
    /// Elicitations take partial and empty submissions and text beside a pick. Everything else asks few
    /// questions and needs each answered by a selection or by text, never both.
    pub const fn for_source(source: Source) -> Self {
        match source {
            Source::Elicitation => Self { allows_partial: true, allows_text_with_selection: true },
            Source::Permission | Source::Refusal | Source::Confirm | Source::Tool | Source::Script => {
                Self { allows_partial: false, allows_text_with_selection: false }
            }
        }
    }
}

vocabulary! {
    /// The rule that an answer broke; a stable word on the wire.
    Rule {
        /// No question has this id.
        UnknownQuestion = "unknown_question",
        /// One question is answered twice in a submission.
        DuplicateAnswer = "duplicate_answer",
        /// The selection is none of the choices.
        NotAChoice = "not_a_choice",
        /// More than one selection where one is taken.
        OneSelection = "one_selection",
        /// One choice is selected twice.
        DuplicateSelection = "duplicate_selection",
        /// Neither `true` nor `false`.
        NotABoolean = "not_a_boolean",
        /// Not a number as JSON writes it, or beyond what can be sent.
        NotANumber = "not_a_number",
        /// A number with a fraction where none is taken.
        NotAnInteger = "not_an_integer",
        /// Below the least number.
        Minimum = "minimum",
        /// Above the greatest number.
        Maximum = "maximum",
        /// Shorter than the shortest text.
        MinLength = "min_length",
        /// Longer than the longest text.
        MaxLength = "max_length",
        /// No match of the pattern.
        Pattern = "pattern",
        /// Not of the format.
        Format = "format",
        /// Fewer selections than the fewest.
        MinItems = "min_items",
        /// More selections than the most.
        MaxItems = "max_items",
        /// Unanswered, but must be answered.
        Required = "required",
        /// Text and a selection where only one of them is taken.
        TextWithSelection = "text_with_selection",
        /// Text where only a selection is taken.
        NoText = "no_text",
        /// All answers together are too large.
        TooLarge = "too_large",
    }
}

/// One broken rule. `Debug` hides the message, which may quote what a human wrote.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{question_id}: {message}")]
pub struct AnswerError {
    /// Which question, shortened when it is no question of the form; empty when it is about all of them.
    pub question_id: String,
    /// Which rule.
    pub rule: Rule,
    /// The value and what it should be, for the human who sent it. Never quotes a secret (S33).
    pub message: String,
}

impl fmt::Debug for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerError")
            .field("question_id", &self.question_id)
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
