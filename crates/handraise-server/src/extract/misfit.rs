//! What does not fit a call in what it was given: where it stands, what it is, and what would do.

use std::fmt::{self, Write as _};

use handraise_transport::escape;
use serde::de;

/// How many characters of a value or a name are quoted.
const QUOTED: usize = 64;

/// Why something given cannot be taken.
#[derive(Debug)]
pub(super) struct Misfit {
    /// From the inside out.
    path: Vec<Step>,
    wrong: Wrong,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Element(usize),
}

#[derive(Debug)]
enum Wrong {
    /// The field at the end of the path is not there.
    Missing,
    /// The field at the end of the path is there more than once.
    Twice,
    /// There is no field like the one at the end of the path.
    Unknown { known: String },
    /// It is something else than what is taken. What it is, is not known before [`Misfit::of`].
    Takes { given: Option<String>, takes: String, quotes: bool },
}

impl Misfit {
    /// It is something else than what is taken. Its value is not repeated: it may be somebody's answer.
    pub(super) fn takes(takes: impl Into<String>) -> Self {
        Self::wrong(Wrong::Takes { given: None, takes: takes.into(), quotes: false })
    }

    fn wrong(wrong: Wrong) -> Self {
        Self { path: Vec::new(), wrong }
    }

    fn at(field: &str, wrong: Wrong) -> Self {
        Self { path: vec![Step::Field(field.to_owned())], wrong }
    }

    /// Adds what was given, where that is not known yet: what kind of thing, and its text if that may be repeated.
    pub(super) fn of(mut self, kind: &str, text: Option<&str>) -> Self {
        if let Wrong::Takes { given: given @ None, quotes, .. } = &mut self.wrong {
            *given = Some(match text {
                Some(text) if *quotes => quoted(text),
                _ => kind.to_owned(),
            });
        }
        self
    }

    /// As it is seen from what has it as a field.
    pub(super) fn in_field(mut self, name: &str) -> Self {
        self.path.push(Step::Field(name.to_owned()));
        self
    }

    /// As it is seen from the list that has it.
    pub(super) fn in_list(mut self, index: usize) -> Self {
        self.path.push(Step::Element(index));
        self
    }

    /// The sentence for whoever called, about the whole that this is a part of.
    pub(super) fn said_of(&self, whole: &str) -> String {
        if self.path.is_empty() { format!("the {whole} {self}") } else { format!("in the {whole}, {self}") }
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for step in self.path.iter().rev() {
            match step {
                Step::Field(name) => {
                    if !place.is_empty() {
                        place.push('.');
                    }
                    place.push_str(name);
                }
                Step::Element(index) => {
                    let _ = write!(place, "[{index}]");
                }
            }
        }
        escape::shortened(&place, QUOTED)
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        if !place.is_empty() {
            write!(f, "'{place}' ")?;
        }
        match &self.wrong {
            Wrong::Missing => f.write_str("is missing"),
            Wrong::Twice => f.write_str("is there more than once"),
            Wrong::Unknown { known } => write!(f, "is not known; {known} are"),
            Wrong::Takes { given, takes, .. } => {
                write!(f, "is {}; it takes {takes}", given.as_deref().unwrap_or("something else"))
            }
        }
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    /// What a type of ours says that it takes.
    fn custom<T: fmt::Display>(takes: T) -> Self {
        Self::wrong(Wrong::Takes { given: None, takes: takes.to_string(), quotes: true })
    }

    fn invalid_type(_: de::Unexpected<'_>, takes: &dyn de::Expected) -> Self {
        Self::takes(takes.to_string())
    }

    fn invalid_value(_: de::Unexpected<'_>, takes: &dyn de::Expected) -> Self {
        Self::takes(takes.to_string())
    }

    fn invalid_length(_: usize, takes: &dyn de::Expected) -> Self {
        Self::takes(takes.to_string())
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::custom(listed(known, "or"))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::at(field, Wrong::Unknown { known: listed(known, "and") })
    }

    fn missing_field(field: &'static str) -> Self {
        Self::at(field, Wrong::Missing)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::at(field, Wrong::Twice)
    }
}

/// A text from outside, short and harmless to show.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", escape::shortened(text, QUOTED))
}

/// `a, b or c`.
pub(super) fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => "none".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
