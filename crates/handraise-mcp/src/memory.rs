//! What was declined on a connection, so that it is not asked again (mcp.md §4).

use std::collections::VecDeque;

use handraise_core::words::{Outcome, Provenance};
use sha2::{Digest, Sha256};

use crate::refusal::Ambiguity;

/// The most sets of candidates that a connection remembers; the oldest goes first.
pub const MAX_SETS: usize = 256;

/// The declined questions of one connection: a refusal's name and a set of candidates each.
#[derive(Debug, Clone, Default)]
pub struct DeclineMemory {
    /// Digests, oldest first.
    declined: VecDeque<[u8; 32]>,
}

impl DeclineMemory {
    /// Whether the same question was declined before.
    pub fn remembers(&self, ambiguity: &Ambiguity) -> bool {
        !self.declined.is_empty() && self.declined.contains(&digest(ambiguity))
    }

    /// Takes note of how a question ended.
    ///
    /// A decline or a cancel is remembered, unless nobody was shown the question; nothing else is.
    pub fn note(&mut self, ambiguity: &Ambiguity, outcome: Outcome, provenance: Provenance) {
        let is_word = matches!(outcome, Outcome::Decline | Outcome::Cancel);
        let is_somebody = matches!(provenance, Provenance::Human | Provenance::Client);
        if !is_word || !is_somebody || self.remembers(ambiguity) {
            return;
        }
        if self.declined.len() == MAX_SETS {
            self.declined.pop_front();
        }
        self.declined.push_back(digest(ambiguity));
    }
}

/// The question's identity: the refusal's name and its candidates' values in order, each after its length.
fn digest(ambiguity: &Ambiguity) -> [u8; 32] {
    let mut values: Vec<&str> =
        ambiguity.candidates.iter().map(|candidate| candidate.value.as_str()).collect();
    values.sort_unstable();
    values.dedup();
    let mut digest = Sha256::new();
    for part in std::iter::once(ambiguity.rule.name()).chain(values) {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::{Refusal, Rules};

    fn ambiguity(values: &[&str]) -> Ambiguity {
        let devices: Vec<_> = values.iter().map(|value| serde_json::json!({"deviceId": value})).collect();
        let result = serde_json::json!({
            "structuredContent": {"code": "ambiguous_device_target", "devices": devices},
        });
        Rules::presets().read(&result.to_string(), |_| false).and_then(Refusal::ambiguity).unwrap()
    }

    #[test]
    fn a_set_is_remembered_whatever_its_order() {
        let mut memory = DeclineMemory::default();
        memory.note(&ambiguity(&["a", "b"]), Outcome::Decline, Provenance::Client);
        assert!(memory.remembers(&ambiguity(&["b", "a", "b"])));
        assert!(!memory.remembers(&ambiguity(&["a", "b", "c"])));
        assert!(!memory.remembers(&ambiguity(&["ab", "c"])));
    }

    #[test]
    fn another_refusal_with_the_same_candidates_is_another_question() {
        let mut memory = DeclineMemory::default();
        let declined = ambiguity(&["a", "b"]);
        memory.note(&declined, Outcome::Decline, Provenance::Client);
        let mut source = crate::refusal::testing::source();
        source.name = "other".into();
        let rule = crate::refusal::Rule::new(source).unwrap();
        assert!(!memory.remembers(&Ambiguity { rule: rule.into(), ..declined }));
    }

    #[test]
    fn only_somebodys_decline_or_cancel_is_remembered() {
        for outcome in Outcome::ALL {
            for provenance in Provenance::ALL {
                let mut memory = DeclineMemory::default();
                memory.note(&ambiguity(&["a", "b"]), *outcome, *provenance);
                let is_remembered = matches!(outcome, Outcome::Decline | Outcome::Cancel)
                    && matches!(provenance, Provenance::Human | Provenance::Client);
                assert_eq!(
                    memory.remembers(&ambiguity(&["a", "b"])),
                    is_remembered,
                    "{outcome} {provenance}"
                );
            }
        }
    }

    #[test]
    fn the_oldest_of_257_sets_is_forgotten() {
        let mut memory = DeclineMemory::default();
        let set = |index: usize| ambiguity(&["a", &format!("b{index}")]);
        for index in 0..=MAX_SETS {
            memory.note(&set(index), Outcome::Cancel, Provenance::Client);
        }
        assert!(!memory.remembers(&set(0)));
        assert!(memory.remembers(&set(1)));
        assert!(memory.remembers(&set(MAX_SETS)));
    }
}
