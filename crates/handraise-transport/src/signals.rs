//! Which signals are one, wherever we end in order on the first and at once on the second.

use std::time::Duration;

/// How long signals after the first one count as the same: `timeout` and shells signal a process and then its group.
pub const SAME: Duration = Duration::from_millis(500);
