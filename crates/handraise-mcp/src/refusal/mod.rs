//! Typed refusals that offer candidates: which results they are, and what they offer (mcp.md §3).
//!
//! A [`Rule`] says where a refusal's code and its candidates stand. Reading never guesses: where a path is missing, where
//! fewer than two candidates differ, where something is no JSON, the refusal is nobody's question and passes through. One
//! that offers a choice and is [`Beyond`] a bound passes through as well, and is known all the same.

mod read;
mod rule;
mod scan;
mod template;

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::canonical::{self, Dialect};
use crate::spelled::Characters;

pub use read::{MAX_CANDIDATES, MAX_KNOWN_BYTES, MAX_REFUSAL_BYTES, MAX_VALUE_BYTES};
pub use rule::{CandidatesTool, PRESET, Rule, RuleError, RuleSource};

/// How much of each end of something large is looked at, in bytes. A refusal says there what it is, before or after what
/// it is about; so does a question.
const ENDS: usize = 16 * 1024;

/// The most bytes that are looked at as a whole: the largest refusal that is asked about, and room for what stands around
/// it in its frame.
pub const LARGEST_WHOLE: usize = MAX_REFUSAL_BYTES + ENDS;

/// The same, for the largest refusal that is known.
const LARGEST_KNOWN: usize = MAX_KNOWN_BYTES + ENDS;

/// The ends of something larger than [`LARGEST_WHOLE`].
pub(crate) fn ends(bytes: &[u8]) -> [&[u8]; 2] {
    [&bytes[..ENDS], &bytes[bytes.len() - ENDS..]]
}

/// A refusal that offers a choice.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// It can be asked about.
    Ambiguous(Ambiguity),
    /// It is beyond a bound, and passes through.
    Beyond(Arc<Rule>, Beyond),
}

impl Refusal {
    /// The rule that matched.
    pub fn rule(&self) -> &Arc<Rule> {
        match self {
            Self::Ambiguous(ambiguity) => &ambiguity.rule,
            Self::Beyond(rule, _) => rule,
        }
    }

    /// What can be asked.
    pub fn ambiguity(self) -> Option<Ambiguity> {
        if let Self::Ambiguous(ambiguity) = self { Some(ambiguity) } else { None }
    }
}

/// The bound that a refusal is beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The result has more than [`MAX_REFUSAL_BYTES`].
    ResultTooLarge,
    /// It offers more than [`MAX_CANDIDATES`].
    TooManyCandidates,
    /// A candidate's value has more than [`MAX_VALUE_BYTES`].
    CandidateTooLong,
}

impl Beyond {
    /// The bound's one spelling, in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResultTooLarge => "result-too-large",
            Self::TooManyCandidates => "too-many-candidates",
            Self::CandidateTooLong => "candidate-too-long",
        }
    }
}

/// A refusal that became a question: which rule it matched, and what it offered.
#[derive(Debug, Clone)]
pub struct Ambiguity {
    /// The rule that matched.
    pub rule: Arc<Rule>,
    /// At least two candidates with distinct values, in the order offered.
    pub candidates: Vec<Candidate>,
}

impl Ambiguity {
    /// What the human reads: the rule's message with the tool's name in it.
    pub fn message(&self, tool: &str) -> String {
        self.rule.message_for(tool)
    }
}

/// One of the things that a refusal offered.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What goes into the argument.
    pub value: String,
    /// What the human reads.
    pub title: String,
    /// The candidate as the refusal had it, byte for byte.
    pub whole: Box<RawValue>,
}

impl Candidate {
    /// Whether another reading of the same thing says exactly the same about it: all members equal, in any order.
    ///
    /// False as well where one of the two has no canonical form.
    pub fn is_unchanged_in(&self, other: &Self) -> bool {
        is_same(self.whole.get(), other.whole.get())
    }
}

/// Whether two texts are the same JSON value, and one that has a canonical form.
pub(crate) fn is_same(one: &str, two: &str) -> bool {
    let canonical = |text: &str| canonical::canonical(text.as_bytes(), None, Dialect::Plain).ok();
    matches!((canonical(one), canonical(two)), (Some(one), Some(two)) if one == two)
}

/// What becomes of a preset or of a rule, by its name.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Added, or instead of the preset of that name.
    Rule(Box<Rule>),
    /// The preset of that name is off.
    Disabled(String),
}

/// All rules in force, ready to be tried on results.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Arc<Rule>>,
    scan: scan::Scan,
}

impl Rules {
    /// The presets alone.
    pub fn presets() -> Self {
        Self::new(vec![Rule::ambiguous_device_target()])
    }

    /// The presets, changed and extended by entries; of two entries with one name the later one counts.
    pub fn configured(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut rules = vec![Rule::ambiguous_device_target()];
        for entry in entries {
            match entry {
                Entry::Disabled(name) => rules.retain(|rule| rule.name() != name),
                Entry::Rule(rule) => match rules.iter_mut().find(|known| known.name() == rule.name()) {
                    Some(known) => *known = *rule,
                    None => rules.push(*rule),
                },
            }
        }
        Self::new(rules)
    }

    fn new(rules: Vec<Rule>) -> Self {
        let scan = scan::Scan::new(rules.iter().map(Rule::code));
        Self { rules: rules.into_iter().map(Arc::new).collect(), scan }
    }

    /// Whether no rule is in force.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules, in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }

    /// The rule of that name.
    pub fn named(&self, name: &str) -> Option<&Arc<Rule>> {
        self.rules.iter().find(|rule| rule.name() == name)
    }

    /// Whether a result, or the frame around it, can be one of the refusals: a test on bytes, without reading JSON.
    ///
    /// False is certain where all of it is looked at: a code in it is never missed, however it is escaped. True means that
    /// it is worth reading. What has more than [`LARGEST_WHOLE`] bytes is looked at by its [`ends`], and what has more than
    /// a refusal that is known is not, so that large results cost nothing.
    pub fn may_match(&self, bytes: &[u8]) -> bool {
        if bytes.len() <= LARGEST_WHOLE {
            return self.scan.may_match(bytes);
        }
        bytes.len() <= LARGEST_KNOWN && ends(bytes).iter().any(|end| self.scan.may_match(end))
    }

    /// Whether a code stands in there as it is.
    pub(crate) fn has_plain(&self, bytes: &[u8]) -> bool {
        self.scan.has_plain(bytes)
    }

    /// Of which characters an escape can be part of a hidden code.
    pub(crate) fn hides(&self) -> Characters {
        self.scan.hides()
    }

    /// Reads a result (the JSON of `result`) as one of the refusals.
    ///
    /// `carries` says whether the call's arguments have a key, whatever its value. `None` when no rule matches, when the
    /// call carries the argument, or when there is nothing to choose between; results over [`MAX_KNOWN_BYTES`] are not
    /// read.
    pub fn read(&self, result: &str, carries: impl Fn(&str) -> bool) -> Option<Refusal> {
        if result.len() > MAX_KNOWN_BYTES || !self.scan.may_match(result.as_bytes()) {
            return None;
        }
        let is_large = result.len() > MAX_REFUSAL_BYTES;
        let documents = read::Documents::of(result)?;
        self.rules.iter().filter(|rule| !carries(rule.argument())).find_map(|rule| {
            let rule = Arc::clone(rule);
            Some(match documents.candidates(&rule, is_large)? {
                Ok(candidates) => Refusal::Ambiguous(Ambiguity { rule, candidates }),
                Err(beyond) => Refusal::Beyond(rule, beyond),
            })
        })
    }
}

#[cfg(test)]
mod rule_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
