//! Time as a value.

use std::time::Duration;

/// A point on a clock that runs through suspend and never steps (`CLOCK_BOOTTIME`), in milliseconds.
///
/// Only differences mean anything. Wall-clock times are for people and are kept outside the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The moment `millis` after the clock's zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the clock's zero.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long until `later`; zero when it has passed.
    pub const fn until(self, later: Self) -> Duration {
        Duration::from_millis(later.0.saturating_sub(self.0))
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_saturates_instead_of_wrapping() {
        let late = Moment::from_millis(u64::MAX - 1);
        assert_eq!(late + Duration::from_secs(3600), Moment::from_millis(u64::MAX));
        assert_eq!(late.until(Moment::from_millis(5)), Duration::ZERO);
    }
}
