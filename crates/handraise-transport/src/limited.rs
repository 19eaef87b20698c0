//! A bound on how often something is logged, for what a child could repeat without end.

use crate::clock::SharedClock;

/// How many are let through in a window.
const BURST: u32 = 20;
/// How long a window is, in milliseconds.
const WINDOW: u64 = 10_000;

/// Lets a burst through per window and counts the rest.
#[derive(Debug)]
pub struct Limited {
    clock: SharedClock,
    burst: u32,
    window_start: u64,
    admitted: u32,
    left_out: u64,
}

impl Limited {
    /// Lets 20 through in ten seconds.
    pub fn new(clock: SharedClock) -> Self {
        Self::with_burst(clock, BURST)
    }

    /// Lets so many through in ten seconds.
    pub fn with_burst(clock: SharedClock, burst: u32) -> Self {
        let window_start = clock.boot_millis();
        Self { clock, burst, window_start, admitted: 0, left_out: 0 }
    }

    /// Whether one more may be logged; then with how many were left out since the last one.
    pub fn admit(&mut self) -> Option<u64> {
        let now = self.clock.boot_millis();
        if now.saturating_sub(self.window_start) >= WINDOW {
            self.window_start = now;
            self.admitted = 0;
        }
        if self.admitted == self.burst {
            self.left_out += 1;
            return None;
        }
        self.admitted += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn a_burst_is_let_through_and_the_rest_is_counted() {
        let clock = ManualClock::new();
        let mut limited = Limited::new(Arc::new(clock.clone()));
        assert_eq!((0..100).filter(|_| limited.admit().is_some()).count(), 20);
        clock.advance(Duration::from_millis(9_999));
        assert_eq!(limited.admit(), None);
        clock.advance(Duration::from_millis(1));
        assert_eq!(limited.admit(), Some(81));
        assert_eq!(limited.admit(), Some(0));
    }
}
