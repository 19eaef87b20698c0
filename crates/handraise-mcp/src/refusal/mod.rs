//! Typed refusals that offer candidates: which results they are, and what they offer (mcp.md §3).
//!
//! A [`Rule`] says where a refusal's code and its candidates stand. Reading never guesses: where a path is missing, where
//! fewer than two candidates differ, where something is no JSON, the refusal is nobody's question and passes through.

mod read;
mod rule;
mod scan;
mod template;

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::canonical::{self, Dialect};

pub use read::{MAX_CANDIDATES, MAX_REFUSAL_BYTES, MAX_VALUE_BYTES};
pub use rule::{CandidatesTool, PRESET, Rule, RuleError, RuleSource};

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
    /// False is certain: a code in it is never missed, however it is escaped. True means that it is worth reading. More
    /// than [`MAX_REFUSAL_BYTES`] are not looked at, so that large results cost nothing.
    pub fn may_match(&self, bytes: &[u8]) -> bool {
        bytes.len() <= MAX_REFUSAL_BYTES && self.scan.may_match(bytes)
    }

    /// Reads a result (the JSON of `result`) as one of the refusals.
    ///
    /// `carries` says whether the call's arguments have a key, whatever its value. `None` when no rule matches, when the
    /// call carries the argument, or when there is nothing to choose between; results over [`MAX_REFUSAL_BYTES`] and
    /// lists over [`MAX_CANDIDATES`] are not read.
    pub fn read(&self, result: &str, carries: impl Fn(&str) -> bool) -> Option<Ambiguity> {
        if !self.may_match(result.as_bytes()) {
            return None;
        }
        let documents = read::Documents::of(result)?;
        self.rules.iter().filter(|rule| !carries(rule.argument())).find_map(|rule| {
            let candidates = documents.candidates(rule)?;
            Some(Ambiguity { rule: Arc::clone(rule), candidates })
        })
    }
}

#[cfg(test)]
mod rule_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
