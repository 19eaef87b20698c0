//! How fast a holder may open asks and append records: the inbox's own count, for holders that do not keep to theirs (S37).

/// A bucket, here of asks that may be opened at once. It is as deep as a holder may have asks open, because one that was cut
/// off tells of all that opened meanwhile, and fills up at the rate that holders keep to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    depth_millis: u64,
    per_second: u64,
    /// What is left, in thousandths of an ask.
    left_millis: u64,
    /// When that was so, on the boot clock.
    at: u64,
}

impl Rate {
    /// A full bucket.
    pub(super) const fn new(depth: u32, per_second: u32, now: u64) -> Self {
        let depth = if depth > per_second { depth } else { per_second };
        let depth_millis = depth as u64 * 1_000;
        Self { depth_millis, per_second: per_second as u64, left_millis: depth_millis, at: now }
    }

    /// Takes one out, if there is one. `now` is in milliseconds on the boot clock.
    pub(super) fn take(&mut self, now: u64) -> bool {
        // Asks a second are thousandths of an ask a millisecond.
        let filled = now.saturating_sub(self.at).saturating_mul(self.per_second);
        self.left_millis = self.left_millis.saturating_add(filled).min(self.depth_millis);
        self.at = self.at.max(now);
        match self.left_millis.checked_sub(1_000) {
            Some(left) => {
                self.left_millis = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_a_bucket_gives_its_depth_at_once_and_then_its_rate() {
        let mut rate = Rate::new(5, 2, 1_000);
        assert_eq!((0..7).filter(|_| rate.take(1_000)).count(), 5);
        assert!(!rate.take(1_499));
        assert!(rate.take(1_500));
        assert!(!rate.take(1_500));
        assert_eq!((0..100).filter(|_| rate.take(3_600_000)).count(), 5, "it overflows");
        assert!(!rate.take(0), "a clock that goes back gives nothing");
        let mut even = Rate::new(1, 10, 0);
        assert_eq!((0..1_000).filter(|n| even.take(n * 10)).count(), 10 + 99);
    }
}
