//! The time, as envelopes take it.

use handraise_core::Moment;
use handraise_mcp::Now;
use handraise_transport::clock::{Clock as _, SystemClock};

/// Both clocks.
pub(crate) fn now() -> Now {
    Now { boot: Moment::from_millis(SystemClock.boot_millis()), wall_ms: SystemClock.wall_millis() }
}
