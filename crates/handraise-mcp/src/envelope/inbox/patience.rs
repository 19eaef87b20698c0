//! How long the calls of a session wait for the inbox.

use std::time::Duration;

use handraise_core::Moment;

use super::turns::Turns;
use super::{AGAIN_AFTER, LEAST_WAIT, Waits};

/// What a session has waited so far.
#[derive(Debug, Default)]
pub(in crate::envelope) struct Patience {
    /// How many calls wait, and since when any does.
    waiting: usize,
    turns: Turns,
    since: Moment,
    /// For how long some call has waited before that.
    spent: Duration,
    /// When a wait last ended that nobody ended.
    unanswered: Option<Moment>,
    now: Moment,
}

impl Patience {
    /// It is this late.
    pub(in crate::envelope) fn at(&mut self, now: Moment) {
        self.now = now;
    }

    /// For how long one more call may wait. `Err`: it does not, and why.
    pub(in crate::envelope) fn left(&self, waits: Waits) -> Result<Duration, &'static str> {
        if self.unanswered.is_some_and(|since| self.now < since + AGAIN_AFTER) {
            return Err("inbox-unanswered");
        }
        let current = if self.waiting > 0 { self.since.until(self.now) } else { Duration::ZERO };
        let left = waits.in_all.saturating_sub(self.spent + current);
        // Scraps would be questions that nobody can answer.
        let is_scrap = left.is_zero() || left < LEAST_WAIT.min(waits.in_all);
        if is_scrap { Err("waited-enough") } else { Ok(left) }
    }

    /// Why no further question of this session may be opened, if so.
    pub(in crate::envelope) fn turn_bar(&mut self) -> Option<&'static str> {
        self.turns.bar(self.now)
    }

    /// A call waits.
    pub(in crate::envelope) fn begin(&mut self) {
        if self.waiting == 0 {
            self.since = self.now;
        }
        self.waiting += 1;
        self.turns.open(self.now);
    }

    /// A call waits no more.
    pub(in crate::envelope) fn end(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.turns.close();
        if self.waiting == 0 {
            self.spent += self.since.until(self.now);
        }
    }

    /// Somebody has answered.
    pub(in crate::envelope) fn answered(&mut self) {
        self.unanswered = None;
    }

    /// A wait has ended, and nobody has ended it.
    pub(in crate::envelope) fn unanswered(&mut self) {
        self.unanswered = Some(self.now);
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

    fn left(patience: &mut Patience, now: Moment) -> Result<Duration, &'static str> {
        patience.at(now);
        patience.left(WAITS)
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_millis(seconds * 1000)
    }

    #[test]
    fn waits_at_the_same_time_count_once() {
        let mut patience = Patience::default();
        patience.at(at(10));
        patience.begin();
        patience.at(at(20));
        patience.begin();
        assert_eq!(left(&mut patience, at(40)), Ok(Duration::from_secs(70)));
        patience.at(at(50));
        patience.end();
        assert_eq!(left(&mut patience, at(60)), Ok(Duration::from_secs(50)));
        patience.at(at(70));
        patience.end();
        assert_eq!(left(&mut patience, at(500)), Ok(Duration::from_secs(40)));
        patience.at(at(500));
        patience.begin();
        assert_eq!(left(&mut patience, at(540)), Err("waited-enough"));
        patience.at(at(540));
        patience.end();
        assert_eq!(left(&mut patience, at(5_000)), Err("waited-enough"));
    }

    #[test]
    fn scraps_of_what_may_be_waited_are_no_wait() {
        let mut patience = Patience::default();
        patience.at(at(0));
        patience.begin();
        assert_eq!(left(&mut patience, at(95)), Ok(Duration::from_secs(5)));
        patience.at(at(95) + Duration::from_millis(1));
        patience.end();
        assert_eq!(left(&mut patience, at(200)), Err("waited-enough"));
        // Whoever allows less than that in all has it.
        let little = Waits { in_all: Duration::from_secs(1), ..WAITS };
        assert_eq!(Patience::default().left(little), Ok(Duration::from_secs(1)));
    }

    #[test]
    fn after_a_wait_that_nobody_ended_none_begins_until_somebody_answers() {
        let mut patience = Patience::default();
        patience.at(at(10));
        patience.unanswered();
        assert_eq!(left(&mut patience, at(11)), Err("inbox-unanswered"));
        patience.answered();
        assert!(left(&mut patience, at(11)).is_ok());
        patience.at(at(20));
        patience.unanswered();
        assert_eq!(left(&mut patience, at(20 + 15 * 60 - 1)), Err("inbox-unanswered"));
        assert!(left(&mut patience, at(20 + 15 * 60)).is_ok());
    }
}
