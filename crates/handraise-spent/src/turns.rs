//! Whose question is next: each caller's questions one after the other, the callers in turns.
//!
//! Who asks much waits behind what they asked themselves, and keeps nobody else. What settles a nonce and what asks about
//! it later come from the same caller: they are never answered at the same time, nor in another order.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The questions that wait, of all callers.
#[derive(Debug)]
pub(crate) struct Turns<Q> {
    /// Of callers of whom something waits or is being answered.
    waiting: BTreeMap<Arc<str>, VecDeque<Q>>,
    /// Callers of whom something waits and nothing is being answered.
    order: VecDeque<Arc<str>>,
}

impl<Q> Default for Turns<Q> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<Q> Turns<Q> {
    /// Adds a question of a caller, unless `most` of theirs wait; returns whether somebody can answer more than before.
    pub(crate) fn add(&mut self, caller: &str, question: Q, most: usize) -> Result<bool, TooMany> {
        if let Some(waiting) = self.waiting.get_mut(caller) {
            if waiting.len() >= most {
                return Err(TooMany);
            }
            waiting.push_back(question);
            return Ok(false);
        }
        let caller: Arc<str> = caller.into();
        self.waiting.insert(Arc::clone(&caller), VecDeque::from([question]));
        self.order.push_back(caller);
        Ok(true)
    }

    /// The next question and whose it is. Nothing more of theirs comes until it is [answered](Self::answered).
    pub(crate) fn next(&mut self) -> Option<(Arc<str>, Q)> {
        let caller = self.order.pop_front()?;
        let question = self.waiting.get_mut(&caller)?.pop_front()?;
        Some((caller, question))
    }

    /// The caller's question is answered; returns whether somebody can answer more than before.
    pub(crate) fn answered(&mut self, caller: Arc<str>) -> bool {
        if self.waiting.get(&caller).is_none_or(VecDeque::is_empty) {
            self.waiting.remove(&caller);
            return false;
        }
        self.order.push_back(caller);
        true
    }
}

/// Too many questions of one caller wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

#[cfg(test)]
mod tests {
    use super::*;

    fn next(turns: &mut Turns<u32>) -> Option<(String, u32)> {
        turns.next().map(|(caller, question)| (caller.to_string(), question))
    }

    #[test]
    fn callers_take_turns_and_each_is_answered_in_order() {
        let (busy, other): (Arc<str>, Arc<str>) = ("busy".into(), "other".into());
        let mut turns = Turns::default();
        assert_eq!(turns.add(&busy, 1, 9), Ok(true));
        assert_eq!(turns.add(&busy, 2, 9), Ok(false));
        assert_eq!(turns.add(&busy, 3, 9), Ok(false));
        assert_eq!(turns.add(&other, 1, 9), Ok(true));
        assert_eq!(next(&mut turns), Some(("busy".to_owned(), 1)));
        assert_eq!(next(&mut turns), Some(("other".to_owned(), 1)));
        // Whose question is being answered has no second one answered meanwhile.
        assert_eq!(next(&mut turns), None);
        assert!(turns.answered(Arc::clone(&busy)));
        assert_eq!(turns.add(&other, 2, 9), Ok(false));
        assert!(turns.answered(Arc::clone(&other)));
        assert_eq!(next(&mut turns), Some(("busy".to_owned(), 2)));
        assert!(turns.answered(busy));
        assert_eq!(next(&mut turns), Some(("other".to_owned(), 2)));
        assert!(!turns.answered(Arc::clone(&other)));
        assert_eq!(next(&mut turns), Some(("busy".to_owned(), 3)));
        // Who has nothing left is forgotten, and begins anew.
        assert_eq!(turns.waiting.len(), 1);
        assert_eq!(turns.add(&other, 3, 9), Ok(true));
    }

    #[test]
    fn who_has_too_many_waiting_adds_none_and_keeps_nobody_else() {
        let (busy, other): (Arc<str>, Arc<str>) = ("busy".into(), "other".into());
        let mut turns = Turns::default();
        assert_eq!(turns.add(&busy, 1, 2), Ok(true));
        assert_eq!(turns.add(&busy, 2, 2), Ok(false));
        assert_eq!(turns.add(&busy, 3, 2), Err(TooMany));
        assert_eq!(turns.add(&other, 1, 2), Ok(true));
        assert_eq!(next(&mut turns), Some(("busy".to_owned(), 1)));
        assert_eq!(turns.add(&busy, 3, 2), Ok(false));
    }
}
