//! Bytes in flight: what bodies, queues and answers occupy, counted where they are held (S37).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// A bound on bytes, within a wider one where there is one.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    wider: Option<Arc<Budget>>,
}

/// Bytes that count for as long as this lives.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), wider: None })
    }

    /// A part of this budget. What is charged to it is charged to the whole as well.
    pub(crate) fn part(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), wider: Some(Arc::clone(self)) })
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether more is charged than there should be, here and in the whole.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() > self.limit && self.wider.as_ref().is_none_or(|wider| wider.is_exhausted())
    }

    /// Whether more is charged than there should be, here or in the whole.
    fn is_over(&self) -> bool {
        self.used() > self.limit || self.wider.as_ref().is_some_and(|wider| wider.is_over())
    }

    /// Charges bytes that may be refused; `None`: there is no room for them.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let mut charge = self.force(0);
        charge.grow(bytes).then_some(charge)
    }

    /// Charges bytes that are here already.
    pub(crate) fn force(self: &Arc<Self>, bytes: usize) -> Charge {
        self.add(bytes);
        Charge { budget: Arc::clone(self), bytes }
    }

    fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(wider) = &self.wider {
            wider.add(bytes);
        }
    }

    fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(wider) = &self.wider {
            wider.remove(bytes);
        }
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
    fn s37_a_part_is_exhausted_only_when_the_whole_is() {
        let whole = Budget::new(100);
        let (one, other) = (whole.part(10), whole.part(10));
        let _held = one.force(50);
        assert!(!one.is_exhausted(), "the whole has room");
        let _more = one.force(51);
        assert!(one.is_exhausted());
        assert!(!other.is_exhausted(), "it holds nothing");
        assert_eq!(whole.used(), 101);
    }
}
