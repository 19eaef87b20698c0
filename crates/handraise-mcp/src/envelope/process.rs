//! What all connections of one process share: settings, the switch, and the bytes in flight.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::frame::{NoFrame, ServerFrame};
use crate::refusal::Rules;

/// Settings of the envelope. All have the contract's defaults.
#[derive(Debug, Clone)]
pub struct EnvelopeConfig {
    /// Which refusals become questions.
    pub rules: Rules,
    /// How long a pushed question may wait, counted from the arrival of its call (`HANDRAISE_ASK_TIMEOUT_MS`).
    pub ask_timeout: Duration,
    /// What is answered faster was not shown to a human (`HANDRAISE_ASK_MIN_HUMAN_MS`).
    pub min_human: Duration,
    /// Bounds.
    pub limits: Limits,
}

impl Default for EnvelopeConfig {
    fn default() -> Self {
        Self {
            rules: Rules::presets(),
            ask_timeout: Duration::from_secs(20),
            min_human: Duration::from_millis(400),
            limits: Limits::default(),
        }
    }
}

/// Bounds of the envelope (S37).
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests that one client may have open. One more is answered with an error.
    pub open_requests: usize,
    /// Bytes that calls and withheld results may occupy in this process. A call that does not fit is forwarded, and
    /// never asked about.
    pub bytes_in_flight: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { open_requests: 65_536, bytes_in_flight: 256 << 20 }
    }
}

/// What all connections of one process share.
#[derive(Debug)]
pub struct Process {
    pub(super) config: EnvelopeConfig,
    asks: AtomicBool,
    bytes: AtomicU64,
}

impl Process {
    /// A process without connections, which asks.
    pub fn new(config: EnvelopeConfig) -> Self {
        Self { config, asks: AtomicBool::new(true), bytes: AtomicU64::new(0) }
    }

    /// Switches the questions that handraise adds on or off. Calls read it when their result arrives.
    pub fn set_elicitation(&self, is_on: bool) {
        self.asks.store(is_on, Ordering::Relaxed);
    }

    /// Whether handraise adds questions.
    pub fn elicitation(&self) -> bool {
        self.asks.load(Ordering::Relaxed)
    }

    /// Bytes that calls and withheld results occupy now.
    pub fn bytes_in_flight(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Reads a frame of the upstream, and tests whether it may be a refusal. It needs no envelope, and so no lock.
    ///
    /// # Errors
    /// [`NoFrame`]: the line is noise.
    pub fn read_server_frame<'a>(&self, bytes: &'a [u8]) -> Result<ServerFrame<'a>, NoFrame> {
        ServerFrame::read(bytes, |bytes| self.config.rules.may_match(bytes))
    }

    /// Makes room for `bytes`; false when there is none.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let reserved = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if reserved > self.config.limits.bytes_in_flight {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Gives room back.
    pub(super) fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
