//! How much one asker may have the inbox asked (S37): what the inbox takes of a gateway is one pot for all of its callers, and
//! nobody's questions may use it up.

use std::collections::VecDeque;
use std::time::Duration;

use handraise_core::Moment;

/// The most questions of one session that may be open: what the inbox takes of a session.
const OPEN_OF_SESSION: usize = 50;

/// The most questions of one session in a second.
const SECOND_OF_SESSION: usize = 5;

/// What is opened within any of these is counted together.
const WINDOW: Duration = Duration::from_secs(1);

/// The questions of one session, or of one caller.
#[derive(Debug)]
pub(in crate::envelope) struct Turns {
    most_open: usize,
    a_second: usize,
    open: usize,
    /// When those of the last second were opened.
    last: VecDeque<Moment>,
}

impl Default for Turns {
    fn default() -> Self {
        Self::of_at_most(OPEN_OF_SESSION, SECOND_OF_SESSION)
    }
}

impl Turns {
    /// At most so many open, and so many a second.
    pub(in crate::envelope) fn of_at_most(most_open: usize, a_second: usize) -> Self {
        Self { most_open, a_second, open: 0, last: VecDeque::new() }
    }

    /// Those of one of so many callers with names, each of which gets a part of what the inbox takes (1,000 open, ten a second).
    /// One alone may use most of it.
    pub(in crate::envelope) fn of_one_of(callers: usize) -> Self {
        match callers {
            0 | 1 => Self::of_at_most(800, 8),
            _ => Self::of_at_most((800 / callers).max(1), 5),
        }
    }

    /// Why not one more, if so.
    pub(in crate::envelope) fn bar(&mut self, now: Moment) -> Option<&'static str> {
        while self.last.front().is_some_and(|at| *at + WINDOW <= now) {
            self.last.pop_front();
        }
        if self.open >= self.most_open {
            return Some("asks-too-many");
        }
        (self.last.len() >= self.a_second).then_some("asks-too-fast")
    }

    /// One more is opened.
    pub(in crate::envelope) fn open(&mut self, now: Moment) {
        self.open += 1;
        self.last.push_back(now);
        if self.last.len() > self.a_second {
            self.last.pop_front();
        }
    }

    /// One less is open.
    pub(in crate::envelope) fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_more_or_faster_than_its_part() {
        let mut turns = Turns::of_at_most(3, 2);
        let at = Moment::from_millis;
        for now in [0, 10] {
            assert_eq!(turns.bar(at(now)), None);
            turns.open(at(now));
        }
        assert_eq!(turns.bar(at(999)), Some("asks-too-fast"));
        assert_eq!(turns.bar(at(1_000)), None);
        turns.open(at(1_000));
        assert_eq!(turns.bar(at(9_000)), Some("asks-too-many"));
        turns.close();
        assert_eq!(turns.bar(at(9_000)), None);
    }

    #[test]
    fn all_callers_together_ask_no_more_than_the_inbox_takes() {
        for callers in [2, 3, 20, 800] {
            let turns = Turns::of_one_of(callers);
            assert!(turns.most_open * callers <= 1_000, "{callers}");
        }
        assert!(Turns::of_one_of(2).a_second < 10 && Turns::of_one_of(1).a_second < 10);
    }
}
