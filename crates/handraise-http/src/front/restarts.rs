//! When a server that serves modern requests is started again after it ended by itself (mcp.md §1): at once after one end,
//! later and later when it keeps ending, so that a server that cannot run costs nobody more than a start now and then.

use std::time::Duration;

use handraise_core::Moment;

/// How long is waited after the second end in a row.
const FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const MOST: Duration = Duration::from_secs(60);
/// A server that has lived for so long has not failed to run.
const LIVED: Duration = Duration::from_secs(60);

/// The ends of one principal's servers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restarts {
    /// How many have ended in a row.
    ends: u32,
    /// When the next one may be started.
    not_before: Moment,
}

impl Restarts {
    /// A server that was started then has ended by itself. `random` spreads those that wait for the same thing. Returns how
    /// long none is started.
    pub(crate) fn ended(&mut self, started: Moment, now: Moment, random: u8) -> Duration {
        self.ends = if started.until(now) >= LIVED { 1 } else { self.ends.saturating_add(1) };
        let wait = match self.ends {
            0 | 1 => Duration::ZERO,
            ends => FIRST.saturating_mul(2_u32.saturating_pow(ends - 2)).min(MOST),
        };
        // Half of it for certain, and a part of the other half.
        let wait = wait / 2 + wait / 2 * u32::from(random) / u32::from(u8::MAX);
        self.not_before = now + wait;
        wait
    }

    /// For how many seconds no server is started; `None`: one may be.
    pub(crate) fn wait(&self, now: Moment) -> Option<u64> {
        let millis = now.until(self.not_before).as_millis();
        (millis > 0).then(|| u64::try_from(millis.div_ceil(1000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits after ends at once, with that much chance.
    fn waits(count: usize, random: u8) -> Vec<u64> {
        let mut restarts = Restarts::default();
        let mut now = Moment::from_millis(5);
        let end = |_| {
            let wait = restarts.ended(now, now, random);
            now = now + wait;
            wait.as_millis().try_into().unwrap()
        };
        (0..count).map(end).collect()
    }

    #[test]
    fn waits_begin_with_none_double_and_are_bounded() {
        assert_eq!(waits(10, 255), [0, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
        assert_eq!(waits(4, 0), [0, 500, 1000, 2000], "chance takes half of a wait at the most");
        assert_eq!(waits(200, 255).last(), Some(&60_000));
    }

    #[test]
    fn who_comes_too_soon_is_told_how_many_seconds_are_left() {
        let at = Moment::from_millis;
        let mut restarts = Restarts::default();
        assert_eq!(restarts.wait(at(0)), None);
        restarts.ended(at(1000), at(1000), 255);
        assert_eq!(restarts.wait(at(1000)), None, "one end is an accident");
        restarts.ended(at(1001), at(2000), 255);
        assert_eq!(restarts.wait(at(2000)), Some(1));
        assert_eq!(restarts.wait(at(2999)), Some(1));
        assert_eq!(restarts.wait(at(3000)), None);
    }

    #[test]
    fn a_server_that_has_run_for_a_minute_is_forgiven_what_was_before() {
        let at = Moment::from_millis;
        let mut restarts = Restarts::default();
        for _ in 0..5 {
            restarts.ended(at(0), at(100), 255);
        }
        restarts.ended(at(100), at(60_100), 255);
        assert_eq!(restarts.wait(at(60_100)), None);
        restarts.ended(at(60_100), at(60_200), 255);
        assert_eq!(restarts.wait(at(60_200)), Some(1));
    }
}
