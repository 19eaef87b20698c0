//! S40: nothing answers a card in its first 350 ms after it appeared, moved or changed. A value: every call is told the
//! time, in milliseconds.

/// How long a card must have stood still before it takes an answer.
pub(super) const STILL: u64 = 350;
/// Within this long the same key again may be one that is held down: a terminal does not tell, and the first repeat of a
/// held key comes after up to so long.
const HELD: u64 = 700;
/// Further repeats come at least this often. Choosing, which sends nothing, bears the first one.
const REPEAT: u64 = 120;
/// Watches over the card that is on screen.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    /// When what changed last was painted.
    changed: u64,
    /// Whether what is on screen is not yet what there is.
    is_unpainted: bool,
    run_began: u64,
    last_key: Option<u64>,
    /// How long after the same key the last one came.
    same_after: Option<u64>,
}

impl Guard {
    /// A card appeared, moved, or says something else, from the next paint on; what the person scrolls is their own doing.
    /// Until then nothing answers it.
    pub(super) fn changed(&mut self) {
        self.is_unpainted = true;
    }

    /// What there is is on screen now.
    pub(super) fn painted(&mut self, now: u64) {
        if std::mem::take(&mut self.is_unpainted) {
            self.changed = now;
        }
    }

    /// To be told of every key, and whether it is the one before again.
    pub(super) fn key(&mut self, now: u64, is_same: bool) {
        let gap = self.last_key.map(|last| now.saturating_sub(last));
        if gap.is_none_or(|gap| gap >= STILL) {
            self.run_began = now;
        }
        self.same_after = gap.filter(|_| is_same);
        self.last_key = Some(now);
    }

    /// What the key pressed last may do.
    pub(super) fn allows(&self) -> Allowed {
        let is_still = !self.is_unpainted && self.run_began >= self.changed.saturating_add(STILL);
        let is_after = |least: u64| self.same_after.is_none_or(|gap| gap >= least);
        Allowed { choosing: is_still && is_after(REPEAT), sending: is_still && is_after(HELD) }
    }
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Pick a choice, or take the pick back.
    pub(super) choosing: bool,
    /// Send an answer or a skip.
    pub(super) sending: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(changed: u64) -> Guard {
        let mut guard = Guard::default();
        guard.changed();
        guard.painted(changed);
        guard
    }

    #[track_caller]
    fn check(guard: &mut Guard, now: u64, is_same: bool, allows: bool) {
        guard.key(now, is_same);
        assert_eq!(guard.allows().sending, allows, "at {now}");
    }

    #[test]
    fn s40_a_card_must_have_stood_still_for_350_ms() {
        check(&mut at(1_000), 1_349, false, false);
        check(&mut at(1_000), 1_350, false, true);
    }

    #[test]
    fn s40_the_time_counts_from_the_paint() {
        let mut guard = at(0);
        guard.changed();
        check(&mut guard, 1_000, false, false);
        guard.painted(2_000);
        // Read before the paint, and taken after it.
        check(&mut guard, 1_400, false, false);
        check(&mut guard, 2_349, false, false);
        // Painting the same again is no change.
        guard.painted(2_600);
        check(&mut guard, 2_700, false, true);
    }

    #[test]
    fn s40_a_run_of_keys_that_began_before_does_not_answer() {
        let mut guard = at(1_000);
        for now in [900, 1_200, 1_500, 1_800] {
            check(&mut guard, now, false, false);
        }
        check(&mut guard, 2_150, false, true);
    }

    #[test]
    fn s40_a_key_that_is_held_down_never_counts() {
        let mut guard = at(0);
        check(&mut guard, 1_000, false, true);
        check(&mut guard, 1_660, true, false);
        for now in [1_690, 1_720, 1_750] {
            check(&mut guard, now, true, false);
        }
        check(&mut guard, 2_500, true, true);
    }

    proptest! {
        #[test]
        fn s40_no_key_within_350_ms_of_a_change_answers(
            steps in prop::collection::vec((0u64..500, any::<bool>(), any::<bool>()), 1..60)
        ) {
            let (mut guard, mut now, mut changed) = (at(0), 0, 0);
            for (gap, is_change, is_same) in steps {
                now += gap;
                if is_change {
                    guard.changed();
                    guard.painted(now);
                    changed = now;
                } else {
                    guard.key(now, is_same);
                    let Allowed { choosing, sending } = guard.allows();
                    prop_assert!(!(choosing || sending) || now >= changed + STILL);
                    prop_assert!(choosing || !sending);
                }
            }
        }
    }
}
