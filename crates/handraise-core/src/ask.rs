//! What is asked, what a human sent, and how it ended.

use std::fmt;

use serde_json::Value;

use crate::words::{Companion, Kind};

/// An ask's identity: minted once by its holder (UUIDv7) and reused verbatim on every hop (AC-60).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(String);

/// One submission's identity: minted by whoever accepted it from a human, before it is forwarded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubmissionId(String);

/// An id that is empty, too long, or holds something else than letters, digits, `-` and `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 1 to 64 letters, digits, '-' or '_'")]
pub struct InvalidId;

macro_rules! id {
    ($name:ident) => {
        impl $name {
            /// Takes over an id from a wire.
            ///
            /// # Errors
            /// When it is no id: ids are 1 to 64 ASCII letters, digits, `-` or `_`.
            pub fn new(id: impl Into<String>) -> Result<Self, InvalidId> {
                let id = id.into();
                let fits = (1..=64).contains(&id.len())
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
                if fits { Ok(Self(id)) } else { Err(InvalidId) }
            }

            /// The id as it is on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

id!(AskId);
id!(SubmissionId);

/// One property of the requested schema, as a human sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The schema's property key, verbatim.
    pub id: String,
    /// The shape of its answer.
    pub kind: Kind,
    /// A short heading, if the schema has one.
    pub title: Option<String>,
    /// The question itself.
    pub prompt: String,
    /// Whether a submission without an answer to it is invalid.
    pub required: bool,
    /// Pre-fills the surface; never sent unseen.
    pub default: Option<Value>,
    /// Whether free text is taken, beside choices or instead of them.
    pub allows_text: bool,
    /// What free text does to a selection; `None` when the question has no companion property.
    pub companion: Option<Companion>,
    /// Whether the answer looks like a secret: masked on screen, never stored (S33).
    pub secret: bool,
    /// The choices in declaration order; empty for kinds without.
    pub choices: Vec<Choice>,
    /// What the schema demands of the answer.
    pub constraints: Constraints,
}

/// One option of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What identifies it in an answer. Always text; the holder restores the JSON type.
    pub value: String,
    /// What a human reads.
    pub label: String,
    /// One line about it.
    pub description: Option<String>,
    /// What choosing it would look like: plain text, may be long.
    pub preview: Option<String>,
}

/// What the schema demands of an answer, as far as it is understood (form.md).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Constraints {
    /// Shortest text, in Unicode scalar values.
    pub min_length: Option<u64>,
    /// Longest text, in Unicode scalar values.
    pub max_length: Option<u64>,
    /// A regular expression that the text must contain a match of.
    pub pattern: Option<String>,
    /// `email`, `uri`, `date`, `date-time`, or something unknown that is only shown.
    pub format: Option<String>,
    /// Least number.
    pub minimum: Option<serde_json::Number>,
    /// Greatest number.
    pub maximum: Option<serde_json::Number>,
    /// Fewest selections.
    pub min_items: Option<u64>,
    /// Most selections.
    pub max_items: Option<u64>,
}

/// A human's answer to one question.
///
/// `Debug` hides what was said: answers never reach a log.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// Which question.
    pub question_id: String,
    /// Values of the choices picked, in any order.
    pub selected_options: Vec<String>,
    /// Free text; empty when there is none.
    pub custom_text: String,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("question_id", &self.question_id)
            .field("selected_options", &self.selected_options.len())
            .field("custom_text", &if self.custom_text.is_empty() { "" } else { "•" })
            .finish()
    }
}

/// What a human sent for one ask: answers, or a rejection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Minted before it is forwarded.
    pub id: SubmissionId,
    /// One entry per answered question.
    pub answers: Vec<Answer>,
    /// Set by the Skip control: the ask is declined.
    pub rejected: bool,
    /// Why it was skipped, in the human's words; empty when unsaid.
    pub reject_reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        assert!(AskId::new("0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e").is_ok());
        assert_eq!(AskId::new(""), Err(InvalidId));
        assert_eq!(AskId::new("a b"), Err(InvalidId));
        assert_eq!(AskId::new("a".repeat(65)), Err(InvalidId));
    }

    #[test]
    fn debug_of_an_answer_says_nothing_of_it() {
        let answer = Answer {
            question_id: "question_0".into(),
            selected_options: vec!["Postgres".into()],
            custom_text: "hunter2".into(),
        };
        let shown = format!("{answer:?}");
        assert!(!shown.contains("Postgres") && !shown.contains("hunter2"), "{shown}");
    }
}
