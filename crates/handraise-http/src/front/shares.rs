//! Who may take the next of a bounded number of places (S37): nobody keeps another caller out.
//!
//! Half of the places are kept for the configured callers in equal shares, of one place at least. Whoever has less than its
//! share takes the next one; whoever has it takes one that no share of another still needs.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use super::lock;

/// Places, and who has how many.
#[derive(Debug)]
pub(crate) struct Shares {
    most: usize,
    callers: usize,
    taken: BTreeMap<Arc<str>, usize>,
}

/// A place that is taken, until this is gone.
#[derive(Debug)]
pub(crate) struct Taken {
    shares: Arc<Mutex<Shares>>,
    caller: Arc<str>,
}

impl Taken {
    /// Takes a place for a caller; `None`: there is none for it.
    pub(crate) fn of(shares: &Arc<Mutex<Shares>>, caller: &Arc<str>) -> Option<Self> {
        let is_taken = lock(shares).take(caller);
        is_taken.then(|| Self { shares: Arc::clone(shares), caller: Arc::clone(caller) })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        lock(&self.shares).give_back(&self.caller);
    }
}

impl Shares {
    /// So many places, for so many callers.
    pub(crate) fn new(most: usize, callers: usize) -> Self {
        Self { most, callers, taken: BTreeMap::new() }
    }

    /// Takes a place for a caller; false: there is none for it.
    pub(crate) fn take(&mut self, caller: &Arc<str>) -> bool {
        let free = self.most.saturating_sub(self.count());
        let own = self.taken.get(caller).copied().unwrap_or(0);
        let needed = if self.callers > 1 && own >= self.share() { self.needed_beside(caller) } else { 0 };
        let is_free = free > needed;
        if is_free {
            *self.taken.entry(Arc::clone(caller)).or_default() += 1;
        }
        is_free
    }

    /// A caller gives a place back.
    pub(crate) fn give_back(&mut self, caller: &Arc<str>) {
        if let Some(taken) = self.taken.get_mut(caller) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(caller);
            }
        }
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> usize {
        self.taken.values().sum()
    }

    fn share(&self) -> usize {
        (self.most / 2 / self.callers).max(1)
    }

    /// How many places the shares of all others still need.
    fn needed_beside(&self, caller: &Arc<str>) -> usize {
        let share = self.share();
        let others = self.taken.iter().filter(|(other, _)| *other != caller);
        let (known, lacking) = others
            .fold((0, 0), |(known, lacking), (_, taken)| (known + 1, lacking + share.saturating_sub(*taken)));
        lacking + self.callers.saturating_sub(1 + known) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Arc<str> {
        name.into()
    }

    /// How many a caller gets that takes all it can.
    fn flood(shares: &mut Shares, name: &str) -> usize {
        (0..1000).filter(|_| shares.take(&caller(name))).count()
    }

    #[test]
    fn s37_who_is_alone_takes_every_place_and_no_more() {
        let mut shares = Shares::new(8, 1);
        assert_eq!((flood(&mut shares, "local"), shares.count()), (8, 8));
        shares.give_back(&caller("local"));
        assert_eq!(flood(&mut shares, "local"), 1);
    }

    #[test]
    fn s37_a_flood_of_one_caller_leaves_every_other_its_share() {
        for (most, callers, first, each) in [(8, 2, 6, 2), (64, 4, 40, 8), (256, 3, 172, 42), (3, 3, 1, 1)] {
            let mut shares = Shares::new(most, callers);
            assert_eq!(flood(&mut shares, "0"), first, "{most} for {callers}");
            for number in 1..callers {
                assert_eq!(flood(&mut shares, &number.to_string()), each, "{most} for {callers}");
            }
            assert_eq!(shares.count(), first + each * (callers - 1));
            // What is given back goes to whose share lacks it, and not to the flood.
            shares.give_back(&caller("1"));
            assert_eq!((flood(&mut shares, "0"), flood(&mut shares, "1")), (0, 1));
        }
    }

    #[test]
    fn s37_with_fewer_places_than_callers_those_who_come_first_have_one_each() {
        let mut shares = Shares::new(2, 5);
        assert_eq!((flood(&mut shares, "a"), flood(&mut shares, "b"), flood(&mut shares, "c")), (1, 1, 0));
    }
}
