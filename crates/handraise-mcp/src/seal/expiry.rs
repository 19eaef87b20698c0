//! When a state ends, on both clocks.

use std::time::Duration;

use handraise_core::Moment;

use super::Fault;
use super::wire::{Reader, Writer};
use crate::Now;

/// How long a state lives.
pub const TTL: Duration = Duration::from_secs(10 * 60);

/// How far the wall clocks of two machines may be apart. A state from a clock that is further ahead is not taken.
const MAX_SKEW: Duration = Duration::from_secs(30);

/// Which clock a [`Moment`] is from. Moments of two clocks do not compare: another machine's, or one before a reboot.
///
/// Random bytes that a process draws once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockId(pub [u8; 16]);

/// The end of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The end on the wall clock, in milliseconds since 1970.
    pub wall_ms: u64,
    /// The end on the clock that never steps.
    pub boot: Moment,
    /// Which clock that is.
    pub clock: ClockId,
}

impl Expiry {
    /// [`TTL`] from now.
    pub fn from_now(now: Now, clock: ClockId) -> Self {
        let ttl_ms = u64::try_from(TTL.as_millis()).unwrap_or(u64::MAX);
        Self { wall_ms: now.wall_ms.saturating_add(ttl_ms), boot: now.boot + TTL, clock }
    }

    /// Whether it is over on either clock. The wall clock may end it early, never late: a process that does not share the
    /// clock of `boot` also refuses a state that would live longer than any can.
    pub fn is_over(self, now: Now, clock: ClockId) -> bool {
        if now.wall_ms >= self.wall_ms {
            return true;
        }
        if clock == self.clock {
            return now.boot >= self.boot;
        }
        Duration::from_millis(self.wall_ms - now.wall_ms) > TTL + MAX_SKEW
    }

    pub(super) fn write(self, writer: &mut Writer) {
        writer.number(self.wall_ms);
        writer.number(self.boot.as_millis());
        writer.raw(&self.clock.0);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self {
            wall_ms: reader.number()?,
            boot: Moment::from_millis(reader.number()?),
            clock: ClockId(reader.array()?),
        })
    }
}
