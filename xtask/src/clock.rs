//! How long things take.

/// Nanoseconds of a clock that never steps.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Nanoseconds since an earlier [`now`].
pub(crate) fn since(start: u64) -> u64 {
    now().saturating_sub(start)
}
