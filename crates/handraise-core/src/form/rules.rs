//! Which answers are valid, and what is said about one that is not.

use std::fmt;

use crate::words::Source;

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

/// The rule that an answer broke; a stable word on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// No question has this id.
    UnknownQuestion,
    /// One question is answered twice in a submission.
    DuplicateAnswer,
    /// The selection is none of the choices.
    NotAChoice,
    /// More than one selection where one is taken.
    OneSelection,
    /// One choice is selected twice.
    DuplicateSelection,
    /// Neither `true` nor `false`.
    NotABoolean,
    /// Not a number as JSON writes it, or beyond what can be sent.
    NotANumber,
    /// A number with a fraction where none is taken.
    NotAnInteger,
    /// Below the least number.
    Minimum,
    /// Above the greatest number.
    Maximum,
    /// Shorter than the shortest text.
    MinLength,
    /// Longer than the longest text.
    MaxLength,
    /// No match of the pattern.
    Pattern,
    /// Not of the format.
    Format,
    /// Fewer selections than the fewest.
    MinItems,
    /// More selections than the most.
    MaxItems,
    /// Unanswered, but must be answered.
    Required,
    /// Text and a selection where only one of them is taken.
    TextWithSelection,
    /// Text where only a selection is taken.
    NoText,
    /// All answers together are too large.
    TooLarge,
}

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Self] = &[
        Self::UnknownQuestion,
        Self::DuplicateAnswer,
        Self::NotAChoice,
        Self::OneSelection,
        Self::DuplicateSelection,
        Self::NotABoolean,
        Self::NotANumber,
        Self::NotAnInteger,
        Self::Minimum,
        Self::Maximum,
        Self::MinLength,
        Self::MaxLength,
        Self::Pattern,
        Self::Format,
        Self::MinItems,
        Self::MaxItems,
        Self::Required,
        Self::TextWithSelection,
        Self::NoText,
        Self::TooLarge,
    ];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownQuestion => "unknown_question",
            Self::DuplicateAnswer => "duplicate_answer",
            Self::NotAChoice => "not_a_choice",
            Self::OneSelection => "one_selection",
            Self::DuplicateSelection => "duplicate_selection",
            Self::NotABoolean => "not_a_boolean",
            Self::NotANumber => "not_a_number",
            Self::NotAnInteger => "not_an_integer",
            Self::Minimum => "minimum",
            Self::Maximum => "maximum",
            Self::MinLength => "min_length",
            Self::MaxLength => "max_length",
            Self::Pattern => "pattern",
            Self::Format => "format",
            Self::MinItems => "min_items",
            Self::MaxItems => "max_items",
            Self::Required => "required",
            Self::TextWithSelection => "text_with_selection",
            Self::NoText => "no_text",
            Self::TooLarge => "too_large",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
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
