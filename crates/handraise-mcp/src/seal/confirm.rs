//! What the question about a guarded call needs to know when its answer comes back.

use super::wire::Writer;
use super::{Bound, ClockId, Expected, Expiry, Fault, Header, Keyring, Purpose, open_body, seal};
use crate::Now;

/// Everything about one confirmation's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmState {
    /// The identity of the upstream.
    pub upstream: String,
    /// The tool that was called.
    pub tool: String,
    /// The SHA-256 of the canonical arguments that were shown.
    pub arguments_sha256: [u8; 32],
    /// The revision that was shown, where there is one.
    pub revision: Option<String>,
    /// The hash over all that was shown.
    pub hash: String,
    /// Whether it was asked a second time, because what was shown first had changed.
    pub was_asked_again: bool,
    /// When the question ends.
    pub expiry: Expiry,
    /// Random bytes, for the store of spent nonces.
    pub nonce: [u8; 16],
}

impl ConfirmState {
    /// Seals the state for a caller.
    pub fn seal(&self, keyring: &Keyring, bound: Bound<'_>) -> String {
        let header = Header {
            purpose: Purpose::Confirm,
            upstream: &self.upstream,
            expiry: self.expiry,
            nonce: self.nonce,
        };
        let mut writer = Writer::with_capacity(self.tool.len() + self.hash.len() + 128);
        writer.text(&self.tool);
        writer.raw(&self.arguments_sha256);
        writer.optional(self.revision.as_deref());
        writer.text(&self.hash);
        writer.byte(u8::from(self.was_asked_again));
        seal(keyring, bound, &header, &writer.finish())
    }

    /// Opens a state that a caller brings to an upstream.
    pub fn open(
        state: &str,
        keyring: &Keyring,
        bound: Bound<'_>,
        upstream: &str,
        now: Now,
        clock: ClockId,
    ) -> Result<Self, Fault> {
        let expected = Expected { purpose: Purpose::Confirm, upstream, now, clock };
        open_body(keyring, bound, &expected, state, |opened, reader| {
            Ok(Self {
                upstream: upstream.to_owned(),
                tool: reader.text()?.to_owned(),
                arguments_sha256: reader.array()?,
                revision: reader.optional()?.map(str::to_owned),
                hash: reader.text()?.to_owned(),
                was_asked_again: match reader.byte()? {
                    0 => false,
                    1 => true,
                    _ => return Err(Fault::Malformed),
                },
                expiry: opened.expiry,
                nonce: opened.nonce,
            })
        })
    }
}
