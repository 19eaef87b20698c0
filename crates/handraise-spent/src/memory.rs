//! Spent nonces of one process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{KEPT_MS, Was};

/// The most nonces. Beyond it nothing is spent any more, and so nothing runs: forgetting one would let it run twice.
const MOST: usize = 262_144;

/// Nonces, each with until when it is remembered.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    until: Mutex<BTreeMap<[u8; 16], u64>>,
}

impl Memory {
    pub(crate) fn look(&self, nonce: [u8; 16], now_ms: u64) -> Was {
        if self.remembered(now_ms).contains_key(&nonce) { Was::Spent } else { Was::Unspent }
    }

    pub(crate) fn claim(&self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> Was {
        let mut until = self.remembered(now_ms);
        if until.contains_key(&nonce) {
            return Was::Spent;
        }
        if until.len() >= MOST {
            return Was::Unknown;
        }
        until.insert(nonce, expires_ms.saturating_add(KEPT_MS));
        Was::Unspent
    }

    /// What is remembered at a time.
    fn remembered(&self, now_ms: u64) -> MutexGuard<'_, BTreeMap<[u8; 16], u64>> {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        // Most of the time there is little: a walk is cheap beside what it stands before.
        until.retain(|_, until| *until > now_ms);
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_a_nonce_is_spent_once_until_a_day_after_its_end() {
        let memory = Memory::default();
        assert_eq!(memory.claim([1; 16], 1_000, 0), Was::Unspent);
        assert_eq!(memory.claim([1; 16], 1_000, 0), Was::Spent);
        assert_eq!(memory.look([2; 16], 0), Was::Unspent);
        assert_eq!(memory.look([1; 16], 1_000 + KEPT_MS - 1), Was::Spent);
        assert_eq!(memory.look([1; 16], 1_000 + KEPT_MS), Was::Unspent);
    }

    #[test]
    fn a_full_memory_accepts_nothing() {
        let until: BTreeMap<_, _> =
            (0..MOST as u128).map(|number| (number.to_be_bytes(), u64::MAX)).collect();
        let memory = Memory { until: Mutex::new(until) };
        assert_eq!(memory.claim([0xff; 16], 1, 0), Was::Unknown);
    }
}
