//! What a process remembers about the states of a caller: which were spent, and which are not ours although they look like it. A
//! state is its principal's only (S10), so that nobody's are anybody else's to spend.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use handraise_core::Moment;
use sha2::{Digest, Sha256};

use crate::seal::TTL;

/// The most spent states of all callers. Beyond it none is accepted any more: forgetting one would let it run twice.
const MAX_SPENT: usize = 262_144;

/// The most of one caller's, however many there are.
const MAX_SPENT_OF_ONE: usize = 16_384;

/// The most states of the upstream that are remembered; the oldest goes first.
const MAX_PASSED_ON: usize = 4_096;

/// How long a spent state is remembered: no state lives that long.
const KEPT: Duration = Duration::from_secs(2 * TTL.as_secs());

/// The states whose acceptance has run a call (S5).
#[derive(Debug)]
pub(super) struct Spent {
    most: usize,
    nonces: BTreeMap<[u8; 16], Moment>,
    order: VecDeque<(Moment, [u8; 16])>,
    turned_away: u64,
}

impl Spent {
    /// Those of one of so many callers.
    pub(super) fn of_one_of(callers: usize) -> Self {
        let most = (MAX_SPENT / callers.max(1)).max(MAX_SPENT_OF_ONE);
        Self { most, nonces: BTreeMap::new(), order: VecDeque::new(), turned_away: 0 }
    }

    /// How many states were refused for want of room.
    pub(super) fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Whether a state is spent already.
    pub(super) fn contains(&self, nonce: &[u8; 16]) -> bool {
        self.nonces.contains_key(nonce)
    }

    /// Spends a state; false when it is spent already, or when no more can be remembered.
    pub(super) fn claim(&mut self, nonce: [u8; 16], now: Moment) -> bool {
        while let Some(&(until, old)) = self.order.front().filter(|(until, _)| *until <= now) {
            self.order.pop_front();
            if self.nonces.get(&old) == Some(&until) {
                self.nonces.remove(&old);
            }
        }
        if self.nonces.contains_key(&nonce) {
            return false;
        }
        if self.nonces.len() >= self.most {
            self.turned_away += 1;
            return false;
        }
        let until = now + KEPT;
        self.nonces.insert(nonce, until);
        self.order.push_back((until, nonce));
        true
    }
}

/// States of the upstream that begin as ours do: those of another handraise behind this one.
#[derive(Debug, Default)]
pub(super) struct PassedOn {
    states: BTreeSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl PassedOn {
    pub(super) fn note(&mut self, state: &str) {
        let digest = Sha256::digest(state.as_bytes()).into();
        if !self.states.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > MAX_PASSED_ON
            && let Some(oldest) = self.order.pop_front()
        {
            self.states.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, state: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(state.as_bytes()).into();
        self.states.contains(&digest)
    }
}

/// The most names of tools that are remembered as harmful. Beyond it every tool is.
const MAX_HARMFUL: usize = 65_536;

/// The tools that a server has listed as such that may do harm: once guarded, always guarded.
#[derive(Debug, Default)]
pub(super) struct Harmful {
    names: BTreeSet<String>,
    is_full: bool,
}

impl Harmful {
    pub(super) fn note(&mut self, names: Vec<String>) {
        for name in names {
            if self.names.len() < MAX_HARMFUL {
                self.names.insert(name);
            } else {
                self.is_full |= !self.names.contains(&name);
            }
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.is_full || self.names.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_state_is_spent_once_for_longer_than_it_lives() {
        let mut spent = Spent::of_one_of(1);
        let start = Moment::from_millis(1);
        assert!(spent.claim([1; 16], start));
        assert!(!spent.claim([1; 16], start));
        assert!(!spent.claim([1; 16], start + TTL));
        assert!(spent.claim([2; 16], start + TTL));
        assert_eq!(spent.nonces.len(), 2);
        assert!(spent.claim([3; 16], start + KEPT));
        assert_eq!(spent.nonces.len(), 2, "the first one is gone");
        assert!(!spent.claim([2; 16], start + KEPT));
    }

    #[test]
    fn a_full_ledger_accepts_nothing() {
        let mut spent = Spent::of_one_of(1);
        let now = Moment::from_millis(1);
        for number in 0..MAX_SPENT as u128 {
            spent.nonces.insert(number.to_be_bytes(), now + KEPT);
        }
        assert!(!spent.claim([0xff; 16], now));
        assert_eq!(spent.turned_away(), 1);
    }

    #[test]
    fn harmful_tools_are_bounded_and_beyond_it_all_are() {
        let mut harmful = Harmful::default();
        harmful.note((0..MAX_HARMFUL).map(|number| number.to_string()).collect());
        assert!(harmful.contains("0") && !harmful.contains("x"));
        harmful.note(vec!["0".to_owned()]);
        assert!(!harmful.contains("x"));
        harmful.note(vec!["y".to_owned()]);
        assert!(harmful.contains("x"));
    }

    #[test]
    fn states_passed_on_are_bounded() {
        let mut passed_on = PassedOn::default();
        for number in 0..=MAX_PASSED_ON {
            passed_on.note(&number.to_string());
            passed_on.note(&number.to_string());
        }
        assert!(!passed_on.contains("0"));
        assert!(passed_on.contains("1"));
        assert_eq!(passed_on.states.len(), MAX_PASSED_ON);
    }
}
