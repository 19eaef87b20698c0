//! How long the calls of a session wait for the inbox.

use std::time::Duration;

use handraise_core::Moment;

use super::{AGAIN_AFTER, Waits};

/// What a session has waited so far.
#[derive(Debug, Default)]
pub(in crate::envelope) struct Patience {
    /// How many calls wait, and since when any does.
    waiting: usize,
    since: Moment,
    /// For how long some call has waited before that.
    spent: Duration,
    /// When a wait last ended that nobody ended.
    unanswered: Option<Moment>,
}

impl Patience {
    /// For how long one more call may wait. `Err`: it does not, and why.
    pub(in crate::envelope) fn left(&self, waits: Waits, now: Moment) -> Result<Duration, &'static str> {
        if self.unanswered.is_some_and(|since| now < since + AGAIN_AFTER) {
            return Err("inbox-unanswered");
        }
        let current = if self.waiting > 0 { self.since.until(now) } else { Duration::ZERO };
        let left = waits.in_all.saturating_sub(self.spent + current);
        if left.is_zero() { Err("waited-enough") } else { Ok(left) }
    }

    /// A call waits.
    pub(in crate::envelope) fn begin(&mut self, now: Moment) {
        if self.waiting == 0 {
            self.since = now;
        }
        self.waiting += 1;
    }

    /// A call waits no more.
    pub(in crate::envelope) fn end(&mut self, now: Moment) {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting == 0 {
            self.spent += self.since.until(now);
        }
    }

    /// Somebody has answered.
    pub(in crate::envelope) fn answered(&mut self) {
        self.unanswered = None;
    }

    /// A wait has ended, and nobody has ended it.
    pub(in crate::envelope) fn unanswered(&mut self, now: Moment) {
        self.unanswered = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: Waits = Waits {
        plain: Duration::from_secs(45),
        with_progress: Duration::from_secs(600),
        in_all: Duration::from_secs(100),
    };

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn waits_at_the_same_time_count_once() {
        let mut patience = Patience::default();
        patience.begin(at(10));
        patience.begin(at(20));
        assert_eq!(patience.left(WAITS, at(40)), Ok(Duration::from_secs(70)));
        patience.end(at(50));
        assert_eq!(patience.left(WAITS, at(60)), Ok(Duration::from_secs(50)));
        patience.end(at(70));
        assert_eq!(patience.left(WAITS, at(500)), Ok(Duration::from_secs(40)));
        patience.begin(at(500));
        assert_eq!(patience.left(WAITS, at(540)), Err("waited-enough"));
        patience.end(at(540));
        assert_eq!(patience.left(WAITS, at(5_000)), Err("waited-enough"));
    }

    #[test]
    fn after_a_wait_that_nobody_ended_none_begins_until_somebody_answers() {
        let mut patience = Patience::default();
        patience.unanswered(at(10));
        assert_eq!(patience.left(WAITS, at(11)), Err("inbox-unanswered"));
        patience.answered();
        assert!(patience.left(WAITS, at(11)).is_ok());
        patience.unanswered(at(20));
        assert_eq!(patience.left(WAITS, at(20 + 15 * 60 - 1)), Err("inbox-unanswered"));
        assert!(patience.left(WAITS, at(20 + 15 * 60)).is_ok());
    }
}
