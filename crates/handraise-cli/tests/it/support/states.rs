//! States of the modern era, as whoever has the secret seals them.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use handraise_core::Moment;
use handraise_mcp::{
    Now,
    seal::{Bound, ClockId, Keyring, RefusalState},
};
use handraise_transport::clock::{Clock as _, SystemClock};

/// The same state as it is after this time, for a caller without a session.
pub(crate) fn aged(state: &str, secret: &str, principal: &str, by: Duration) -> String {
    let payload = URL_SAFE_NO_PAD.decode(state.split('.').nth(2).unwrap()).unwrap();
    // A version, what the state is for, what it is about.
    let (_, rest) = text(&payload[1..]);
    let (upstream, _) = text(rest);
    let keyring = Keyring::parse(secret).unwrap();
    let bound = Bound { principal, session: None };
    // Whose clock does not count here reads the wall clock.
    let now = Now { boot: Moment::from_millis(0), wall_ms: SystemClock.wall_millis() };
    let mut opened = RefusalState::open(state, &keyring, bound, upstream, now, ClockId([0; 16])).unwrap();
    let millis = u64::try_from(by.as_millis()).unwrap();
    opened.expiry.wall_ms -= millis;
    opened.expiry.boot = Moment::from_millis(opened.expiry.boot.as_millis().saturating_sub(millis));
    opened.seal(&keyring, bound).unwrap()
}

/// A text behind its length, and what follows it.
fn text(bytes: &[u8]) -> (&str, &[u8]) {
    let (length, rest) = bytes.split_first_chunk::<4>().unwrap();
    let (text, rest) = rest.split_at(usize::try_from(u32::from_be_bytes(*length)).unwrap());
    (std::str::from_utf8(text).unwrap(), rest)
}
