//! When an operator was last there to answer, as far as the inbox has said.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use handraise_api::frame::Presence;

/// Nobody was there, or nobody knows.
const NEVER: i64 = i64::MIN;
/// Somebody is there.
const LIVE: i64 = i64::MAX;

/// Milliseconds of our own boot clock, or one of the words above. The connection's task writes, everybody reads without
/// waiting. A moment may lie before the boot of this machine: the inbox's may have run for longer.
#[derive(Debug)]
pub(crate) struct Operators {
    /// What is known now: nothing while there is no connection.
    now: AtomicI64,
    /// The last moment at which somebody was there, whatever connection said so.
    last: AtomicI64,
}

impl Default for Operators {
    fn default() -> Self {
        Self { now: AtomicI64::new(NEVER), last: AtomicI64::new(NEVER) }
    }
}

impl Operators {
    /// The welcome's word; an inbox that has none is one where nobody is known to be. One that was started anew knows less
    /// than we do.
    pub(crate) fn welcomed(&self, word: Option<Presence>, now: u64) {
        match word {
            Some(word) => self.said(word, now),
            None => self.now.store(NEVER, Ordering::Relaxed),
        }
    }

    /// The inbox's word. Whoever was there until now has left now at the latest.
    pub(crate) fn said(&self, word: Presence, now: u64) {
        let now = signed(now);
        self.keep(now);
        if word.live {
            self.now.store(LIVE, Ordering::Relaxed);
            return;
        }
        let left = word.ago_ms.map_or(NEVER, |ago| now.saturating_sub(signed(ago)).max(NEVER + 1));
        let last = self.last.fetch_max(left, Ordering::Relaxed).max(left);
        self.now.store(last, Ordering::Relaxed);
    }

    /// The connection is lost.
    pub(crate) fn lost(&self, now: u64) {
        self.keep(signed(now));
        self.now.store(NEVER, Ordering::Relaxed);
    }

    /// How long ago somebody was last there.
    pub(crate) fn ago(&self, now: u64) -> Option<Duration> {
        match self.now.load(Ordering::Relaxed) {
            NEVER => None,
            LIVE => Some(Duration::ZERO),
            last => Some(Duration::from_millis(u64::try_from(signed(now).saturating_sub(last)).unwrap_or(0))),
        }
    }

    fn keep(&self, now: i64) {
        if self.now.load(Ordering::Relaxed) == LIVE {
            self.last.fetch_max(now, Ordering::Relaxed);
        }
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(LIVE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Presence = Presence { live: false, ago_ms: None };
    const HERE: Presence = Presence { live: true, ago_ms: None };

    fn gone_for(ms: u64) -> Presence {
        Presence { live: false, ago_ms: Some(ms) }
    }

    #[test]
    fn the_time_since_somebody_left_runs_on_our_own_clock() {
        let operators = Operators::default();
        assert_eq!(operators.ago(5), None);
        operators.welcomed(Some(gone_for(30_000)), 100_000);
        assert_eq!(operators.ago(110_000), Some(Duration::from_secs(40)));
        operators.said(HERE, 120_000);
        assert_eq!(operators.ago(500_000), Some(Duration::from_secs(0)));
        operators.said(gone_for(0), 600_000);
        assert_eq!(operators.ago(601_000), Some(Duration::from_secs(1)));
    }

    #[test]
    fn without_a_connection_nobody_is_known_and_what_was_known_is_not_forgotten() {
        let operators = Operators::default();
        operators.welcomed(Some(HERE), 100_000);
        operators.lost(110_000);
        assert_eq!(operators.ago(111_000), None);
        // The inbox was started anew and has seen nobody yet.
        operators.welcomed(Some(GONE), 120_000);
        assert_eq!(operators.ago(130_000), Some(Duration::from_secs(20)));
        // Somebody left it a while ago, and was with us later than that.
        operators.welcomed(Some(gone_for(60_000)), 130_000);
        assert_eq!(operators.ago(130_000), Some(Duration::from_secs(20)));
        operators.welcomed(None, 131_000);
        assert_eq!(operators.ago(131_000), None, "an inbox of an earlier version");
    }

    #[test]
    fn an_inbox_that_ran_for_longer_than_we_did_is_understood_and_no_number_is_too_large() {
        let operators = Operators::default();
        operators.welcomed(Some(gone_for(600_000)), 60_000);
        assert_eq!(operators.ago(60_000), Some(Duration::from_secs(600)));
        for (ago, now) in [(u64::MAX, 0), (u64::MAX, u64::MAX), (0, u64::MAX)] {
            let operators = Operators::default();
            operators.said(gone_for(ago), now);
            assert!(operators.ago(now).is_some());
            assert!(operators.ago(0).is_some());
        }
    }
}
