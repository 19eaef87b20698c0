//! States: none that we have not sealed is opened, and what a sealed one says is written in one way only.

use std::sync::LazyLock;

use handraise_core::Moment;
use handraise_mcp::Now;
use handraise_mcp::seal::{
    Bound, ClockId, ConfirmState, Expected, Expiry, Fault, Header, Keyring, Purpose, RefusalState, open,
    purpose_said, seal,
};

const UPSTREAM: &str = "devices";
const NOW: Now = Now { boot: Moment::from_millis(5_000), wall_ms: 1_800_000_000_000 };
const CLOCK: ClockId = ClockId([7; 16]);
const CALLER: Bound<'static> = Bound { principal: "stdio", session: None };

/// Its keys take their time.
static KEYRING: LazyLock<Keyring> = LazyLock::new(|| Keyring::single(&[1; 32]));

/// Reads bytes as a state, and as the body of one that is rightly sealed.
pub(crate) fn check(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = purpose_said(text);
        for purpose in [Purpose::Refusal, Purpose::Confirm, Purpose::Parked] {
            let expected = Expected { purpose, upstream: UPSTREAM, now: NOW, clock: CLOCK };
            assert!(open(&KEYRING, CALLER, &expected, text).is_err(), "nobody has sealed this");
        }
    }
    let sealed = |purpose| {
        let expiry = Expiry::from_now(NOW, CLOCK);
        let header = Header { purpose, upstream: UPSTREAM, expiry, nonce: [9; 16] };
        seal(&KEYRING, CALLER, &header, bytes)
    };
    let text = sealed(Purpose::Refusal);
    match RefusalState::open(&text, &KEYRING, CALLER, UPSTREAM, NOW, CLOCK) {
        Ok(state) => {
            assert!(state.seal(&KEYRING, CALLER).is_ok_and(|again| again == text) || is_long(&state));
        }
        Err(fault) => assert_eq!(fault, Fault::Malformed),
    }
    let text = sealed(Purpose::Confirm);
    match ConfirmState::open(&text, &KEYRING, CALLER, UPSTREAM, NOW, CLOCK) {
        Ok(state) => assert_eq!(state.seal(&KEYRING, CALLER), text),
        Err(fault) => assert_eq!(fault, Fault::Malformed),
    }
}

/// Such a state is opened, and none is made.
fn is_long(state: &RefusalState) -> bool {
    state.result.len() > handraise_mcp::seal::MAX_RESULT_BYTES
}
