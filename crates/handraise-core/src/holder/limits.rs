//! What an inbox takes from one holder, and why an ask is turned away (acp.md, "Holder stream"; S37).

use std::{collections::VecDeque, time::Duration};

use crate::time::Moment;

/// What an inbox takes from one holder. It arrives with every welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Open asks in all.
    pub open_asks: u32,
    /// Bytes of the announcements of all open asks.
    pub open_bytes: u64,
    /// Open asks of one session.
    pub session_open_asks: u32,
    /// Parked asks of one session.
    pub session_parked_asks: u32,
    /// Asks opened within any one second.
    pub asks_per_second: u32,
}

impl Default for Limits {
    /// 1,000 open asks of 64 MiB, 50 open and 16 parked a session, 10 a second.
    fn default() -> Self {
        Self {
            open_asks: 1_000,
            open_bytes: 64 * 1024 * 1024,
            session_open_asks: 50,
            session_parked_asks: 16,
            asks_per_second: 10,
        }
    }
}

/// Why an ask was not opened. The asking side is to be declined, with this as the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refused {
    /// The holder has no inbox.
    #[error("no inbox is configured, so nobody can be asked")]
    NoInbox,
    /// The holder is going down.
    #[error("the holder is shutting down")]
    ShuttingDown,
    /// The id is in use, or was.
    #[error("an ask with this id exists already")]
    KnownId,
    /// [`Limits::open_asks`].
    #[error("too many asks are open in this process")]
    OpenAsks,
    /// [`Limits::open_bytes`].
    #[error("the open asks of this process are too large together")]
    OpenBytes,
    /// [`Limits::session_open_asks`].
    #[error("too many asks are open in this session")]
    SessionOpenAsks,
    /// [`Limits::session_parked_asks`].
    #[error("too many asks are parked in this session")]
    SessionParkedAsks,
    /// [`Limits::asks_per_second`].
    #[error("asks come faster than the inbox takes them")]
    Rate,
    /// The ask does not fit a frame.
    #[error("the ask is too large for one frame of the holder stream")]
    TooLarge,
}

impl Refused {
    /// A short word for settlements, counters and records.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoInbox => "no_inbox",
            Self::ShuttingDown => "shutting_down",
            Self::KnownId => "known_id",
            Self::OpenAsks => "open_asks",
            Self::OpenBytes => "open_bytes",
            Self::SessionOpenAsks => "session_open_asks",
            Self::SessionParkedAsks => "session_parked_asks",
            Self::Rate => "rate",
            Self::TooLarge => "too_large",
        }
    }
}

/// Counts what happened within the last second. One entry per millisecond at most, so it stays small at any rate.
#[derive(Debug, Default)]
pub(super) struct RateWindow {
    counts: VecDeque<(Moment, u64)>,
    total: u64,
}

impl RateWindow {
    const SPAN: Duration = Duration::from_secs(1);

    /// Counts one more, unless that would exceed `limit` within a second.
    pub(super) fn try_take(&mut self, now: Moment, limit: u32) -> bool {
        while let Some((at, count)) = self.counts.front().copied()
            && at + Self::SPAN <= now
        {
            self.total -= count;
            self.counts.pop_front();
        }
        if self.total >= u64::from(limit) {
            return false;
        }
        self.total += 1;
        match self.counts.back_mut() {
            Some((at, count)) if *at == now => *count += 1,
            _ => self.counts.push_back((now, 1)),
        }
        true
    }
}
