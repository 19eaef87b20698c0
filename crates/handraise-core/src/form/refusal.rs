//! Why a request is not asked at all, and what of it is not asked.

/// Why a request cannot become an ask: it is declined, logged and counted (form.md, "Size limits"; AC-18).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing in the schema can be asked.
    #[error("the schema holds no property that can be asked")]
    NoQuestions,
    /// The schema is not an object.
    #[error("the schema is not a JSON object")]
    NotAnObject,
    /// The schema's text is too large.
    #[error("the schema has more than {limit} bytes")]
    SchemaTooLarge {
        /// The most it may have.
        limit: usize,
    },
    /// The schema is nested too deeply.
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep {
        /// The most it may have.
        limit: usize,
    },
    /// The schema has too many properties.
    #[error("the schema has {found} properties; the most is {limit}")]
    TooManyProperties {
        /// How many it has.
        found: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A question has too many choices.
    #[error("question {question:?} has {found} choices; the most is {limit}")]
    TooManyChoices {
        /// The question's key, shortened.
        question: String,
        /// How many it has.
        found: usize,
        /// The most it may have.
        limit: usize,
    },
    /// The request's message is too long.
    #[error("the message has {found} bytes; the most is {limit}")]
    MessageTooLarge {
        /// How many it has.
        found: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A question of `ask_user_question` has too few or too many choices (AC-57).
    #[error("question {question:?} has {found} choices; it takes {least} to {most}")]
    ChoiceCount {
        /// The question's key, shortened.
        question: String,
        /// How many it has.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Two questions of a form made by hand have one id.
    #[error("question {question:?} stands twice")]
    DuplicateQuestion {
        /// The question's key, shortened.
        question: String,
    },
}

impl Refusal {
    /// A short word for counters and records; never holds what the agent wrote.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoQuestions => "no_questions",
            Self::NotAnObject => "not_an_object",
            Self::SchemaTooLarge { .. } => "schema_too_large",
            Self::TooDeep { .. } => "too_deep",
            Self::TooManyProperties { .. } => "too_many_properties",
            Self::TooManyChoices { .. } => "too_many_choices",
            Self::MessageTooLarge { .. } => "message_too_large",
            Self::ChoiceCount { .. } => "choice_count",
            Self::DuplicateQuestion { .. } => "duplicate_question",
        }
    }
}

/// Something of a schema that does not reach the human.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("property {key:?}: {part}")]
pub struct Ignored {
    /// The property's key, shortened.
    pub key: String,
    /// What of it, and why.
    pub part: IgnoredPart,
}

/// What of a property is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredPart {
    /// The whole property: no mapping rule takes it (rule 9).
    #[error("its shape cannot be asked")]
    Property,
    /// A companion whose question does not exist (AC-12e), or takes no free text beside its number.
    #[error("it is the companion of no question in this form that takes one")]
    StrayCompanion,
    /// A second companion of one question (D2).
    #[error("its question has another companion, whose key sorts first")]
    SecondCompanion,
    /// Choices without a usable const, and repeated ones.
    #[error("choices that repeat another or have no value were left out")]
    Choices,
    /// A default that is no answer to its question, or is a secret.
    #[error("its default is not shown")]
    Default,
    /// A pattern that is too long or does not compile.
    #[error("its pattern cannot be checked here")]
    Pattern,
}

/// A stranger's words in few characters, for a message: cut, and with control and bidi characters made visible
/// (S26, S42).
pub(super) fn shorten(text: &str) -> String {
    const MOST: usize = 80;
    let mut out = String::with_capacity(text.len().min(MOST));
    for (at, c) in text.chars().enumerate() {
        if at == MOST {
            out.push('…');
            break;
        }
        match c {
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
