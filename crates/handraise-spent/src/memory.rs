//! Spent nonces of one process.

use std::collections::BTreeMap;

use crate::{KEPT_MS, Was};

/// The most nonces. Beyond it nothing is spent any more, and so nothing runs: forgetting one would let it run twice.
const MOST: usize = 262_144;

/// Nonces, each with until when it is remembered.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    until: BTreeMap<[u8; 16], u64>,
}

impl Memory {
    pub(crate) fn look(&mut self, nonce: [u8; 16], now_ms: u64) -> Was {
        self.prune(now_ms);
        if self.until.contains_key(&nonce) { Was::Spent } else { Was::Unspent }
    }

    pub(crate) fn claim(&mut self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> Was {
        match self.look(nonce, now_ms) {
            Was::Unspent if self.until.len() >= MOST => Was::Unknown,
            Was::Unspent => {
                self.until.insert(nonce, expires_ms.saturating_add(KEPT_MS));
                Was::Unspent
            }
            was => was,
        }
    }

    fn prune(&mut self, now_ms: u64) {
        // Most of the time there is little: a walk is cheap beside what it stands before.
        self.until.retain(|_, until| *until > now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_nonce_is_spent_once_until_a_day_after_its_end() {
        let mut memory = Memory::default();
        assert_eq!(memory.claim([1; 16], 1_000, 0), Was::Unspent);
        assert_eq!(memory.claim([1; 16], 1_000, 0), Was::Spent);
        assert_eq!(memory.look([2; 16], 0), Was::Unspent);
        assert_eq!(memory.look([1; 16], 1_000 + KEPT_MS - 1), Was::Spent);
        assert_eq!(memory.look([1; 16], 1_000 + KEPT_MS), Was::Unspent);
    }

    #[test]
    fn a_full_memory_accepts_nothing() {
        let until = (0..MOST as u128).map(|number| (number.to_be_bytes(), u64::MAX)).collect();
        let mut memory = Memory { until };
        assert_eq!(memory.claim([0xff; 16], 1, 0), Was::Unknown);
    }
}
