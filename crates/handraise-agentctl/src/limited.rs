//! A bound on how often something is logged, for what an agent could repeat without end.

use handraise_transport::clock::SharedClock;

/// How many are let through in a window.
const BURST: u32 = 20;
/// How long a window is, in milliseconds.
const WINDOW: u64 = 10_000;

/// Lets a burst through per window and counts the rest.
#[derive(Debug)]
pub(crate) struct Limited {
    clock: SharedClock,
    window_start: u64,
    admitted: u32,
    left_out: u64,
}

impl Limited {
    pub(crate) fn new(clock: SharedClock) -> Self {
        let window_start = clock.boot_millis();
        Self { clock, window_start, admitted: 0, left_out: 0 }
    }

    /// Whether one more may be logged; then with how many were left out since the last one.
    pub(crate) fn admit(&mut self) -> Option<u64> {
        let now = self.clock.boot_millis();
        if now.saturating_sub(self.window_start) >= WINDOW {
            self.window_start = now;
            self.admitted = 0;
        }
        if self.admitted == BURST {
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

    use handraise_transport::clock::ManualClock;

    use super::*;

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
