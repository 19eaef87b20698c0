//! States that travel through the client and come back: sealed, so that nobody else can have written them (mcp.md §5).
//!
//! On the wire a state is `hr1.<key id>.<payload>.<mac>`, each part in strict base64url (no padding, no set trailing
//! bits). It is signed, not encrypted. The MAC is HMAC-SHA256 under a key that HKDF derives for one [`Purpose`]; it covers
//! the text before it and the caller's [`Bound`], so that a state of another purpose, principal or session does not verify
//! (S10, S22). The payload names its purpose, its upstream and its expiry, and these are compared as well.

mod confirm;
mod expiry;
mod keyring;
mod refusal;
#[cfg(test)]
mod tests;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac as _;
use subtle::ConstantTimeEq as _;

pub use confirm::ConfirmState;
pub use expiry::{ClockId, Expiry, TTL};
pub use keyring::{Keyring, KeyringError, MIN_SECRET_CHARACTERS};
pub use refusal::{Approval, MAX_RESULT_BYTES, Offered, RefusalState, TooLarge};

use crate::Now;
use wire::{Reader, Writer};

/// What every state of ours begins with.
pub const PREFIX: &str = "hr1.";

/// The longest state, in bytes.
pub const MAX_STATE_BYTES: usize = 64 * 1024;

/// The layout of payloads.
const VERSION: u8 = 1;

/// What a state is for. Each purpose has its own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The question about a refusal's candidates.
    Refusal,
    /// The confirmation of a guarded call.
    Confirm,
    /// An upstream's question that waits for the retry which brings its answer.
    Parked,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Refusal, Self::Confirm, Self::Parked];

    /// The purpose's name, in payloads and under its key.
    const fn name(self) -> &'static str {
        match self {
            Self::Refusal => "refusal",
            Self::Confirm => "confirm",
            Self::Parked => "parked",
        }
    }
}

/// Whom a state is bound to: it verifies for this caller alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound<'a> {
    /// Who calls, by proof.
    pub principal: &'a str,
    /// The session header of the request; callers without one share the principal's unkeyed binding.
    pub session: Option<&'a str>,
}

impl Bound<'_> {
    /// Feeds both parts to a MAC, each after its length, so that no two callers feed the same bytes.
    fn update(self, mac: &mut keyring::Keyed) {
        let parts = [Some(self.principal), self.session];
        for part in parts {
            mac.update(&[u8::from(part.is_some())]);
            let part = part.unwrap_or_default();
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
    }
}

/// Why a state is not taken. To the client all of them are one error; records may say which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// Not written as a state is: its prefix, its parts, their encoding, its length, its payload's layout.
    #[error("the state is malformed")]
    Malformed,
    /// Signed with a key that this keyring does not have.
    #[error("the state is signed with an unknown key")]
    UnknownKey,
    /// Changed, or not this caller's: another principal or session, or another purpose's key.
    #[error("the state's MAC does not verify for this caller")]
    BadMac,
    /// A state of another kind.
    #[error("the state is for another purpose")]
    OtherPurpose,
    /// A state about another upstream.
    #[error("the state is about another upstream")]
    OtherUpstream,
    /// Its time is over, on either clock.
    #[error("the state has expired")]
    Expired,
}

impl Fault {
    /// The fault's one spelling, in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "state-malformed",
            Self::UnknownKey => "state-unknown-key",
            Self::BadMac => "state-bad-mac",
            Self::OtherPurpose => "state-other-purpose",
            Self::OtherUpstream => "state-other-upstream",
            Self::Expired => "state-expired",
        }
    }
}

/// What every payload begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// What the state is for.
    pub purpose: Purpose,
    /// The identity of the upstream that the state is about.
    pub upstream: &'a str,
    /// When it ends.
    pub expiry: Expiry,
    /// Random bytes that tell this state from every other.
    pub nonce: [u8; 16],
}

/// What a state must be to be opened.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The purpose that it is read for.
    pub purpose: Purpose,
    /// The upstream that the request goes to.
    pub upstream: &'a str,
    /// What time it is.
    pub now: Now,
    /// Which clock `now.boot` is from.
    pub clock: ClockId,
}

/// A state that verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// When it ends.
    pub expiry: Expiry,
    /// Random bytes that tell this state from every other.
    pub nonce: [u8; 16],
    payload: Vec<u8>,
    /// Where the body begins.
    from: usize,
}

impl Opened {
    /// What was sealed.
    pub fn body(&self) -> &[u8] {
        &self.payload[self.from..]
    }
}

/// Whether a `requestState` is written like one of ours.
pub fn is_ours(state: &str) -> bool {
    state.starts_with(PREFIX)
}

/// What a state says that it is for. Nobody has verified it: the key that does follows from it.
pub fn purpose_said(state: &str) -> Option<Purpose> {
    let payload = state.strip_prefix(PREFIX).filter(|_| state.len() <= MAX_STATE_BYTES)?.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let mut reader = Reader::new(&payload);
    reader.byte().ok()?;
    let name = reader.text().ok()?;
    Purpose::ALL.into_iter().find(|purpose| purpose.name() == name)
}

/// Seals a body. What comes out is longer than [`MAX_STATE_BYTES`] for a large one: that is the caller's to look at.
pub fn seal(keyring: &Keyring, bound: Bound<'_>, header: &Header<'_>, body: &[u8]) -> String {
    let mut writer = Writer::with_capacity(body.len() + header.upstream.len() + 128);
    writer.byte(VERSION);
    writer.text(header.purpose.name());
    writer.text(header.upstream);
    header.expiry.write(&mut writer);
    writer.raw(&header.nonce);
    writer.raw(body);
    let payload = writer.finish();

    let key = keyring.signing();
    let mut state = String::with_capacity(sealed_length(payload.len()));
    state.push_str(PREFIX);
    state.push_str(key.id());
    state.push('.');
    URL_SAFE_NO_PAD.encode_string(&payload, &mut state);
    let mac = mac(key.mac(header.purpose), bound, &state);
    state.push('.');
    URL_SAFE_NO_PAD.encode_string(mac, &mut state);
    state
}

/// How long a state with a payload of that many bytes is.
const fn sealed_length(payload: usize) -> usize {
    PREFIX.len() + keyring::ID_LENGTH + 1 + encoded_length(payload) + 1 + encoded_length(32)
}

const fn encoded_length(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}

/// Opens a state: verifies it, then compares what it says with what is expected.
///
/// # Errors
///
/// The first [`Fault`] found, in the order in which that enum has them.
pub fn open(
    keyring: &Keyring,
    bound: Bound<'_>,
    expected: &Expected<'_>,
    state: &str,
) -> Result<Opened, Fault> {
    if state.len() > MAX_STATE_BYTES {
        return Err(Fault::Malformed);
    }
    let (signed, mac_text) = state.rsplit_once('.').ok_or(Fault::Malformed)?;
    let (id, payload) =
        signed.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.')).ok_or(Fault::Malformed)?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| Fault::Malformed);
    let payload = decode(payload)?;
    let claimed = decode(mac_text)?;
    if decode(id)?.len() != keyring::ID_BYTES || claimed.len() != 32 {
        return Err(Fault::Malformed);
    }
    let key = keyring.named(id).ok_or(Fault::UnknownKey)?;
    let right = mac(key.mac(expected.purpose), bound, signed);
    if !bool::from(right.as_slice().ct_eq(&claimed)) {
        return Err(Fault::BadMac);
    }
    let mut reader = Reader::new(&payload);
    let opened = read(&mut reader)?;
    if opened.purpose != expected.purpose.name() {
        return Err(Fault::OtherPurpose);
    }
    if opened.upstream != expected.upstream {
        return Err(Fault::OtherUpstream);
    }
    if opened.expiry.is_over(expected.now, expected.clock) {
        return Err(Fault::Expired);
    }
    let (expiry, nonce, from) = (opened.expiry, opened.nonce, payload.len() - reader.rest().len());
    Ok(Opened { expiry, nonce, payload, from })
}

/// Opens a state and reads its body, all of it.
fn open_body<T>(
    keyring: &Keyring,
    bound: Bound<'_>,
    expected: &Expected<'_>,
    state: &str,
    read: impl FnOnce(&Opened, &mut Reader<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let opened = open(keyring, bound, expected, state)?;
    let mut reader = Reader::new(opened.body());
    let read = read(&opened, &mut reader)?;
    if reader.is_done() { Ok(read) } else { Err(Fault::Malformed) }
}

struct Read<'a> {
    purpose: &'a str,
    upstream: &'a str,
    expiry: Expiry,
    nonce: [u8; 16],
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<Read<'a>, Fault> {
    if reader.byte()? != VERSION {
        return Err(Fault::Malformed);
    }
    Ok(Read {
        purpose: reader.text()?,
        upstream: reader.text()?,
        expiry: Expiry::read(reader)?,
        nonce: reader.array()?,
    })
}

/// The MAC of a state's text for one caller.
fn mac(keyed: &keyring::Keyed, bound: Bound<'_>, signed: &str) -> [u8; 32] {
    let mut mac = keyed.clone();
    bound.update(&mut mac);
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().into()
}
