//! What the question about a refusal needs to know when its answer comes back.

use super::wire::{Reader, Writer};
use super::{
    Bound, ClockId, Expected, Expiry, Fault, Header, Keyring, MAX_STATE_BYTES, Purpose, open_body, seal,
};
use crate::Now;
use crate::refusal::{Candidate, is_same};

/// The longest result that a state carries, in bytes. A longer one is not asked about in the retry era.
pub const MAX_RESULT_BYTES: usize = 16 * 1024;

/// Everything about one refusal's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalState {
    /// The identity of the upstream that refused.
    pub upstream: String,
    /// The refusal's name.
    pub refusal: String,
    /// The tool that was called.
    pub tool: String,
    /// The SHA-256 of the canonical arguments without the top-level argument that the choice fills.
    pub arguments_sha256: [u8; 32],
    /// What was offered.
    pub offered: Vec<Offered>,
    /// The refusal's `result`, byte for byte.
    pub result: String,
    /// When the question ends.
    pub expiry: Expiry,
    /// Random bytes, for the ledger of spent states.
    pub nonce: [u8; 16],
    /// The upstream's own `requestState`, where its result carried one.
    pub upstream_state: Option<String>,
    /// What the call had been confirmed as, where it is a guarded one: it runs again under that approval.
    pub approval: Option<Approval>,
}

/// A call that was confirmed before it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approval {
    /// Whether its `confirmToken` is ours, and goes to nobody.
    pub strips_token: bool,
}

/// A candidate as it was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// What goes into the argument.
    pub value: String,
    /// The whole candidate, byte for byte.
    pub whole: String,
}

impl Offered {
    /// Whether it is among the candidates of a later reading, with all that was said about it unchanged.
    pub fn is_still_in(&self, candidates: &[Candidate]) -> bool {
        let same_value = candidates.iter().find(|candidate| candidate.value == self.value);
        same_value.is_some_and(|candidate| is_same(&self.whole, candidate.whole.get()))
    }
}

impl From<&Candidate> for Offered {
    fn from(candidate: &Candidate) -> Self {
        Self { value: candidate.value.clone(), whole: candidate.whole.get().to_owned() }
    }
}

/// Why a refusal cannot be carried by a state, and is not asked about in the retry era.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// A result over [`MAX_RESULT_BYTES`].
    #[error("the result is larger than a state carries")]
    Result,
    /// A state over [`MAX_STATE_BYTES`].
    #[error("the state is larger than a client takes")]
    State,
}

impl TooLarge {
    /// The reason's one spelling, in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result-too-large",
            Self::State => "state-too-large",
        }
    }
}

impl RefusalState {
    /// Seals the state for a caller.
    pub fn seal(&self, keyring: &Keyring, bound: Bound<'_>) -> Result<String, TooLarge> {
        if self.result.len() > MAX_RESULT_BYTES {
            return Err(TooLarge::Result);
        }
        let header = Header {
            purpose: Purpose::Refusal,
            upstream: &self.upstream,
            expiry: self.expiry,
            nonce: self.nonce,
        };
        let body = self.body();
        // The body alone must fit before anything is signed.
        if body.len() > MAX_STATE_BYTES {
            return Err(TooLarge::State);
        }
        let state = seal(keyring, bound, &header, &body);
        if state.len() <= MAX_STATE_BYTES { Ok(state) } else { Err(TooLarge::State) }
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
        let expected = Expected { purpose: Purpose::Refusal, upstream, now, clock };
        open_body(keyring, bound, &expected, state, |opened, reader| {
            Ok(Self {
                upstream: upstream.to_owned(),
                refusal: text(reader)?,
                tool: text(reader)?,
                arguments_sha256: reader.array()?,
                offered: offered(reader)?,
                result: text(reader)?,
                expiry: opened.expiry,
                nonce: opened.nonce,
                upstream_state: reader.optional()?.map(str::to_owned),
                approval: match reader.byte()? {
                    0 => None,
                    1 => Some(Approval { strips_token: false }),
                    2 => Some(Approval { strips_token: true }),
                    _ => return Err(Fault::Malformed),
                },
            })
        })
    }

    fn body(&self) -> Vec<u8> {
        let offered: usize =
            self.offered.iter().map(|offered| offered.value.len() + offered.whole.len() + 8).sum();
        let own = self.upstream_state.as_ref().map_or(0, String::len);
        let texts = self.refusal.len() + self.tool.len() + self.result.len();
        let mut writer = Writer::with_capacity(texts + offered + own + 64);
        writer.text(&self.refusal);
        writer.text(&self.tool);
        writer.raw(&self.arguments_sha256);
        writer.number(self.offered.len() as u64);
        for offered in &self.offered {
            writer.text(&offered.value);
            writer.text(&offered.whole);
        }
        writer.text(&self.result);
        writer.optional(self.upstream_state.as_deref());
        writer.byte(self.approval.map_or(0, |approval| 1 + u8::from(approval.strips_token)));
        writer.finish()
    }
}

fn text(reader: &mut Reader<'_>) -> Result<String, Fault> {
    reader.text().map(str::to_owned)
}

fn offered(reader: &mut Reader<'_>) -> Result<Vec<Offered>, Fault> {
    let count = reader.number()?;
    // Nothing is reserved by a number that comes from outside.
    (0..count).map(|_| Ok(Offered { value: text(reader)?, whole: text(reader)? })).collect()
}
