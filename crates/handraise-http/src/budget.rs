//! Bytes in flight: what bodies, queues and answers occupy, counted where they are held (S37).
//!
//! Where there are several callers, half of the whole is theirs in equal shares, as places are (`front::shares`): what a
//! caller holds beyond its share has to fit into the other half, and what is within it is there whatever the others hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

/// What of an answer is not counted once it is on its way out: a connection takes little of it at once.
const SMALL: usize = 16 * 1024;
/// What may be charged to a part while the whole is full, so that those who hold little are served on.
const LITTLE: usize = 64 * 1024;

/// A bound on bytes, within a wider one where there is one.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    wider: Option<Arc<Budget>>,
    /// The limit is a share: what is charged beyond it is charged here, and is too much only where that is full.
    beyond: Option<Arc<Budget>>,
}

/// The budget of everybody, and those of callers who have a share of it.
#[derive(Debug)]
pub(crate) struct Budgets {
    whole: Arc<Budget>,
    callers: BTreeMap<Box<str>, Arc<Budget>>,
}

impl Budgets {
    /// So many bytes, for callers with these names. One alone may have them all.
    pub(crate) fn new(limit: usize, names: &BTreeSet<&str>) -> Self {
        let whole = Budget::new(limit);
        let share = limit / 2 / names.len().max(1);
        let beyond = Budget::new(limit - share * names.len());
        let budget = |name: &&str| {
            let budget = Budget {
                limit: share,
                used: AtomicUsize::new(0),
                wider: Some(Arc::clone(&whole)),
                beyond: Some(Arc::clone(&beyond)),
            };
            (Box::from(*name), Arc::new(budget))
        };
        let callers = names.iter().filter(|_| names.len() > 1).map(budget).collect();
        Self { whole, callers }
    }

    /// What a caller's are part of.
    pub(crate) fn of(&self, caller: &str) -> &Arc<Budget> {
        self.callers.get(caller).unwrap_or(&self.whole)
    }

    /// Bytes that are held.
    pub(crate) fn used(&self) -> usize {
        self.whole.used()
    }
}

/// Bytes that count for as long as this lives.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), wider: None, beyond: None })
    }

    /// A part of this budget. What is charged to it is charged to the whole as well.
    pub(crate) fn part(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), wider: Some(Arc::clone(self)), beyond: None })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How much of the whole is there for its holder, whatever others hold.
    pub(crate) fn share(&self) -> usize {
        if self.beyond.is_some() { self.limit } else { 0 }
    }

    pub(crate) fn used(&self) -> usize {
        let used = self.used.load(Ordering::Relaxed);
        // What one thread gives back may be heard of before what another one has taken: for a moment that is less than nothing.
        if used > usize::MAX / 2 { 0 } else { used }
    }

    /// Whether whoever fills it has to wait: more is charged here than there should be, or in the whole while more than a
    /// little is charged here.
    pub(crate) fn is_exhausted(&self) -> bool {
        let used = self.used();
        used > self.limit || (used > LITTLE && self.wider.as_ref().is_some_and(|wider| wider.is_over()))
    }

    /// Whether more is charged than there should be, here or in the whole.
    fn is_over(&self) -> bool {
        let is_full = self.used() > self.limit;
        match &self.beyond {
            Some(beyond) => is_full && beyond.is_over(),
            None => is_full || self.wider.as_ref().is_some_and(|wider| wider.is_over()),
        }
    }

    /// Charges bytes that may be refused; `None`: there is no room for them.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let mut charge = Charge { budget: Arc::clone(self), bytes: 0 };
        charge.grow(bytes).then_some(charge)
    }

    /// Charges bytes that are here already.
    pub(crate) fn force(self: &Arc<Self>, bytes: usize) -> Charge {
        self.add(bytes);
        Charge { budget: Arc::clone(self), bytes }
    }

    fn add(&self, bytes: usize) {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(beyond) = &self.beyond {
            beyond.add(self.excess(before, before + bytes));
        }
        if let Some(wider) = &self.wider {
            wider.add(bytes);
        }
    }

    fn remove(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(beyond) = &self.beyond {
            beyond.remove(self.excess(before - bytes, before));
        }
        if let Some(wider) = &self.wider {
            wider.remove(bytes);
        }
    }

    /// How much more there is beyond the limit with the larger number than with the smaller one.
    fn excess(&self, smaller: usize, larger: usize) -> usize {
        larger.saturating_sub(self.limit) - smaller.saturating_sub(self.limit)
    }
}

impl Charge {
    /// How many bytes it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges so many from now on, which may be refused when it is more; false: there is no room, and nothing changed.
    #[must_use]
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            return self.grow(bytes - self.bytes);
        }
        self.budget.remove(self.bytes - bytes);
        self.bytes = bytes;
        true
    }

    /// Charges more; false: there is no room for it, and nothing was charged.
    #[must_use]
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        self.budget.add(bytes);
        if self.budget.is_over() {
            self.budget.remove(bytes);
            return false;
        }
        self.bytes += bytes;
        true
    }
}

/// A piece that is worth counting wherever it goes.
pub(crate) fn is_large(piece: &Bytes) -> bool {
    piece.len() > SMALL
}

/// A piece that counts for as long as anybody has it, such as a connection that its client does not read.
pub(crate) fn held(piece: Bytes, charge: Option<Charge>) -> Bytes {
    match charge {
        Some(charge) if is_large(&piece) => Bytes::from_owner(Held { piece, _charge: charge }),
        Some(_) | None => piece,
    }
}

struct Held {
    piece: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.remove(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_what_does_not_fit_is_not_charged_and_what_is_dropped_is_free_again() {
        let budget = Budget::new(100);
        let mut first = budget.charge(60).unwrap();
        assert!(budget.charge(41).is_none());
        assert!(first.grow(40) && !first.grow(1));
        assert_eq!(budget.used(), 100);
        assert!(!first.set(101) && first.set(7));
        assert_eq!((budget.used(), first.bytes()), (7, 7));
        drop(first);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn s37_a_flood_of_one_caller_leaves_every_other_its_share_of_the_bytes() {
        for callers in [2, 3, 10] {
            let names: Vec<String> = (0..callers).map(|number| number.to_string()).collect();
            let budgets = Budgets::new(600, &names.iter().map(String::as_str).collect());
            let take = |caller: &str| -> Vec<Charge> {
                let part = budgets.of(caller).part(1000);
                std::iter::from_fn(|| part.charge(1)).take(1000).collect()
            };
            let share = 300 / callers;
            let flood = take("0");
            assert_eq!(flood.len(), 300 + share, "of {callers}");
            let mut others: Vec<_> = names[1..].iter().map(|name| take(name)).collect();
            assert!(others.iter().all(|taken| taken.len() == share), "of {callers}");
            assert_eq!(budgets.used(), 600);
            // What is given back within a share is that caller's again, and what is given back beyond it everybody's.
            others[0].truncate(share - 7);
            assert_eq!((take("0").len(), take("1").len()), (0, 7));
            drop(flood);
            assert_eq!((budgets.used(), take("1").len()), (300 - share - 7, 300 + 7));
            drop(others);
            assert_eq!((budgets.used(), take("1").len()), (0, 300 + share));
        }
    }

    #[test]
    fn s37_who_has_its_share_waits_for_nobody_and_who_has_more_waits_for_those_who_have_less() {
        let budgets = Budgets::new(40 * LITTLE, &BTreeSet::from(["ada", "bob"]));
        let (ada, bob) = (budgets.of("ada").part(100 * LITTLE), budgets.of("bob").part(100 * LITTLE));
        // What is here already is counted, however much it is.
        let held = ada.force(50 * LITTLE);
        assert!(ada.is_exhausted() && budgets.used() > 40 * LITTLE);
        let mut charge = bob.charge(10 * LITTLE).unwrap();
        assert!(!bob.is_exhausted() && !charge.grow(1));
        drop(held);
        assert!(charge.grow(1) && !ada.is_exhausted());
    }

    #[test]
    fn s37_who_is_alone_may_have_every_byte() {
        for names in [&[][..], &["ada"]] {
            let budgets = Budgets::new(100, &names.iter().copied().collect());
            let part = budgets.of("ada").part(1000);
            assert!(part.charge(100).is_some() && part.charge(101).is_none());
        }
    }

    #[test]
    fn s37_a_large_piece_counts_until_the_last_who_has_it_lets_it_go() {
        let budget = Budget::new(10 * SMALL);
        let piece = |length| Bytes::from(vec![b'x'; length]);
        let counted = held(piece(SMALL + 1), Some(budget.force(SMALL + 1)));
        let small = held(piece(SMALL), Some(budget.force(SMALL)));
        assert_eq!(budget.used(), SMALL + 1);
        let slice = counted.slice(5..);
        drop((counted, small));
        assert_eq!((budget.used(), slice.len()), (SMALL + 1, SMALL - 4));
        drop(slice);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn s37_a_full_part_waits_alone_and_a_full_whole_lets_those_go_on_that_hold_little() {
        let whole = Budget::new(10 * LITTLE);
        let (one, other) = (whole.part(3 * LITTLE), whole.part(3 * LITTLE));
        let held = one.force(3 * LITTLE + 1);
        assert!(one.is_exhausted() && !other.is_exhausted(), "the whole has room");
        let _more = one.force(7 * LITTLE);
        let little = other.force(LITTLE);
        assert!(!other.is_exhausted(), "it holds little");
        let _much = other.force(1);
        assert!(other.is_exhausted());
        drop((held, little));
        assert_eq!(whole.used(), 7 * LITTLE + 1);
    }
}
