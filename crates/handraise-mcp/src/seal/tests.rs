//! States.

use handraise_core::Moment;

use super::*;

const CLOCK: ClockId = ClockId([7; 16]);
const NOW: Now = Now { boot: Moment::from_millis(5_000), wall_ms: 1_800_000_000_000 };
const CALLER: Bound<'static> = Bound { principal: "stdio", session: None };

fn keyring() -> Keyring {
    Keyring::single(&[1; 32])
}

fn state() -> RefusalState {
    RefusalState {
        upstream: "devices".into(),
        refusal: "ambiguous_device_target".into(),
        tool: "tapOn".into(),
        arguments_sha256: [3; 32],
        offered: vec![
            Offered { value: "a".into(), whole: r#"{"deviceId":"a"}"#.into() },
            Offered { value: "b".into(), whole: r#"{"deviceId":"b"}"#.into() },
        ],
        result: r#"{"content":[],"isError":true}"#.into(),
        expiry: Expiry::from_now(NOW, CLOCK),
        nonce: [9; 16],
        upstream_state: Some("theirs".into()),
    }
}

fn open_with(text: &str, keyring: &Keyring) -> Result<RefusalState, Fault> {
    RefusalState::open(text, keyring, CALLER, "devices", NOW, CLOCK)
}

#[test]
fn what_was_sealed_comes_back() {
    let text = state().seal(&keyring(), CALLER).unwrap();
    assert!(is_ours(&text));
    assert_eq!(open_with(&text, &keyring()), Ok(state()));
}
