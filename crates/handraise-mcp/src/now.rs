//! What time it is, on both clocks.

use handraise_core::Moment;

/// Both clocks, read together by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The clock that runs through suspend and never steps: deadlines are measured with it.
    pub boot: Moment,
    /// The wall clock, in milliseconds since 1970-01-01T00:00:00Z. It may step.
    pub wall_ms: u64,
}
