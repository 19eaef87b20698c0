//! States: what comes back as it went out, and everything that does not.

use std::sync::LazyLock;
use std::time::Duration;

use handraise_core::Moment;
use proptest::prelude::*;

use super::*;

const CLOCK: ClockId = ClockId([7; 16]);
const ELSEWHERE: ClockId = ClockId([8; 16]);
const NOW: Now = Now { boot: Moment::from_millis(5_000), wall_ms: 1_800_000_000_000 };
const CALLER: Bound<'static> = Bound { principal: "stdio", session: None };
const TEN_MINUTES: u64 = 600_000;

/// One ring for all tests: without optimisation its keys take their time.
static KEYRING: LazyLock<Keyring> = LazyLock::new(|| Keyring::single(&[1; 32]));

fn keyring() -> Keyring {
    KEYRING.clone()
}

fn state() -> RefusalState {
    RefusalState {
        upstream: "devices".into(),
        refusal: "ambiguous_device_target".into(),
        tool: "tapOn".into(),
        arguments_sha256: [3; 32],
        offered: vec![
            Offered { value: "a".into(), whole: r#"{"deviceId":"a"}"#.into() },
            Offered { value: "é".into(), whole: r#"{"deviceId":"é"}"#.into() },
        ],
        result: r#"{"content":[{"type":"text","text":"…"}],"isError":true}"#.into(),
        expiry: Expiry::from_now(NOW, CLOCK),
        nonce: [9; 16],
        upstream_state: Some("theirs".into()),
        approval: Some(Approval { strips_token: true }),
    }
}

fn sealed() -> String {
    state().seal(&keyring(), CALLER).unwrap()
}

fn open_with(text: &str, keyring: &Keyring) -> Result<RefusalState, Fault> {
    RefusalState::open(text, keyring, CALLER, "devices", NOW, CLOCK)
}

fn open_as(bound: Bound<'_>) -> Result<RefusalState, Fault> {
    RefusalState::open(&sealed(), &keyring(), bound, "devices", NOW, CLOCK)
}

fn open_at(boot_ms: u64, wall_ms: u64, clock: ClockId) -> Result<RefusalState, Fault> {
    let now =
        Now { boot: NOW.boot + Duration::from_millis(boot_ms), wall_ms: NOW.wall_ms.saturating_add(wall_ms) };
    RefusalState::open(&sealed(), &keyring(), CALLER, "devices", now, clock)
}

#[test]
fn what_was_sealed_comes_back() {
    assert_eq!(open_with(&sealed(), &keyring()), Ok(state()));
    let bare = RefusalState { offered: Vec::new(), upstream_state: None, result: String::new(), ..state() };
    assert_eq!(open_with(&bare.seal(&keyring(), CALLER).unwrap(), &keyring()), Ok(bare));
}

#[test]
fn a_state_has_four_parts_in_base64url() {
    let text = sealed();
    assert!(is_ours(&text));
    assert!(!is_ours("hr2.x") && !is_ours("HR1.x") && !is_ours("rs1.hr1."));
    let parts: Vec<_> = text.split('.').collect();
    assert_eq!(parts.len(), 4);
    assert_eq!((parts[0], parts[1].len(), parts[3].len()), ("hr1", 8, 43));
    let is_base64url =
        |part: &&str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    assert!(parts.iter().all(is_base64url), "{text}");
    // Signed, not encrypted; but it holds no secret.
    let payload = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
    assert!(!payload.windows(CALLER.principal.len()).any(|part| part == CALLER.principal.as_bytes()));
}

/// The bits of a part's last character that no byte has, and that must be zero.
fn spare_bits(part: &str) -> u32 {
    match part.len() % 4 {
        2 => 4,
        3 => 2,
        _ => 0,
    }
}

#[test]
fn every_changed_character_is_refused_with_its_fault() {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let offered = Vec::new();
    let small =
        RefusalState { upstream: "u".into(), refusal: "r".into(), offered, upstream_state: None, ..state() };
    let text = small.seal(&keyring(), CALLER).unwrap();
    let keyring = keyring();
    let dots: Vec<_> = text.match_indices('.').map(|(at, _)| at).collect();
    for (at, original) in text.char_indices() {
        let part = dots.iter().filter(|dot| **dot < at).count();
        let is_last = dots.get(part) == Some(&(at + 1)) || at + 1 == text.len();
        let others = ALPHABET.chars().chain("+/=. \n%é\0".chars()).filter(|other| *other != original);
        for other in others {
            let changed = format!("{}{other}{}", &text[..at], &text[at + original.len_utf8()..]);
            let value = ALPHABET.find(other).unwrap_or_default() as u32;
            let spare = spare_bits(text.split('.').nth(part).unwrap());
            let has_spare_bits_set = is_last && value & ((1 << spare) - 1) != 0;
            let expected = if original == '.' || part == 0 || !ALPHABET.contains(other) || has_spare_bits_set
            {
                Fault::Malformed
            } else if part == 1 {
                Fault::UnknownKey
            } else {
                Fault::BadMac
            };
            assert_eq!(open_with(&changed, &keyring), Err(expected), "{other:?} at {at} of {text}");
        }
    }
}

#[test]
fn cut_stretched_and_reordered_states_are_refused() {
    let (text, keyring) = (sealed(), keyring());
    for end in 0..text.len() {
        assert!(open_with(&text[..end], &keyring).is_err(), "{}", &text[..end]);
    }
    let parts: Vec<_> = text.split('.').collect();
    let [prefix, id, payload, mac] = parts[..] else { panic!("{text}") };
    for changed in [
        format!("{text}."),
        format!("{text}.{mac}"),
        format!("{text}="),
        format!("{text}A"),
        format!(" {text}"),
        format!("{text} "),
        format!("{prefix}.{payload}.{mac}"),
        format!("{prefix}.{id}.{mac}.{payload}"),
        format!("{prefix}.{id}.{payload}."),
        format!("{prefix}..{payload}.{mac}"),
        format!("{prefix}.{id}{payload}.{mac}"),
        format!("{prefix}.{id}.{payload}.{}", &mac[..42]),
        format!("{prefix}.{id}.{payload}.{mac}{mac}"),
        "hr1.".into(),
        "hr1...".into(),
        String::new(),
        "A".repeat(MAX_STATE_BYTES + 1),
    ] {
        assert_eq!(open_with(&changed, &keyring), Err(Fault::Malformed), "{changed}");
    }
    for changed in [format!("{prefix}.{id}.{payload}AAAA.{mac}"), format!("{prefix}.{id}..{mac}")] {
        assert_eq!(open_with(&changed, &keyring), Err(Fault::BadMac), "{changed}");
    }
}

#[test]
fn s10_a_state_is_bound_to_its_principal_and_session() {
    for bound in [
        Bound { principal: "other", session: None },
        Bound { principal: "", session: None },
        Bound { principal: "stdio", session: Some("") },
        Bound { principal: "stdio", session: Some("b7a1") },
        Bound { principal: "stdi", session: Some("o") },
    ] {
        assert_eq!(open_as(bound), Err(Fault::BadMac), "{bound:?}");
    }
    assert!(open_as(CALLER).is_ok());
    let keyed = Bound { principal: "stdio", session: Some("b7a1") };
    let text = state().seal(&keyring(), keyed).unwrap();
    assert_eq!(open_with(&text, &keyring()), Err(Fault::BadMac));
    assert!(RefusalState::open(&text, &keyring(), keyed, "devices", NOW, CLOCK).is_ok());
}

#[test]
fn s22_a_state_of_another_purpose_or_upstream_is_refused() {
    let (text, keyring) = (sealed(), keyring());
    let expected = |purpose, upstream| Expected { purpose, upstream, now: NOW, clock: CLOCK };
    for purpose in [Purpose::Confirm, Purpose::Parked] {
        // Another purpose's key does not even verify it.
        assert_eq!(open(&keyring, CALLER, &expected(purpose, "devices"), &text), Err(Fault::BadMac));
    }
    for upstream in ["", "device", "devices ", "Devices"] {
        let opened = open(&keyring, CALLER, &expected(Purpose::Refusal, upstream), &text);
        assert_eq!(opened, Err(Fault::OtherUpstream));
    }
    assert!(open(&keyring, CALLER, &expected(Purpose::Refusal, "devices"), &text).is_ok());
}

/// A state with whatever payload, correctly signed: what only a holder of the key could write.
fn signed(payload: &[u8]) -> String {
    let keyring = keyring();
    let key = keyring.signing();
    let text = format!("{PREFIX}{}.{}", key.id(), URL_SAFE_NO_PAD.encode(payload));
    let mac = mac(key.mac(Purpose::Refusal), CALLER, &text);
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(mac))
}

fn payload_of(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.split('.').nth(2).unwrap()).unwrap()
}

#[test]
fn s22_the_payload_names_its_purpose_and_is_read_to_its_end() {
    let payload = payload_of(&sealed());
    assert_eq!(open_with(&signed(&payload), &keyring()), Ok(state()));
    let purpose = payload.windows(7).position(|part| part == b"refusal").unwrap();
    let mut other = payload.clone();
    other[purpose..purpose + 7].copy_from_slice(b"confirm");
    assert_eq!(open_with(&signed(&other), &keyring()), Err(Fault::OtherPurpose));
    let mut newer = payload.clone();
    newer[0] += 1;
    assert_eq!(open_with(&signed(&newer), &keyring()), Err(Fault::Malformed));
    for end in 0..payload.len() {
        assert_eq!(open_with(&signed(&payload[..end]), &keyring()), Err(Fault::Malformed), "{end} bytes");
    }
    assert_eq!(open_with(&signed(&[&payload[..], b"\0"].concat()), &keyring()), Err(Fault::Malformed));
}

#[test]
fn a_state_expires_on_either_clock() {
    assert!(open_at(TEN_MINUTES - 1, TEN_MINUTES - 1, CLOCK).is_ok());
    assert_eq!(open_at(TEN_MINUTES, 0, CLOCK), Err(Fault::Expired));
    assert_eq!(open_at(0, TEN_MINUTES, CLOCK), Err(Fault::Expired));
    assert_eq!(open_at(u64::MAX, u64::MAX, CLOCK), Err(Fault::Expired));
}

#[test]
fn a_clock_that_steps_ends_a_state_early_or_never_late() {
    let back = |boot_ms: u64, clock| {
        let now = Now { boot: NOW.boot + Duration::from_millis(boot_ms), wall_ms: NOW.wall_ms - 3_600_000 };
        RefusalState::open(&sealed(), &keyring(), CALLER, "devices", now, clock)
    };
    // The wall clock went back an hour: the other clock still ends it after ten minutes.
    assert!(back(TEN_MINUTES - 1, CLOCK).is_ok());
    assert_eq!(back(TEN_MINUTES, CLOCK), Err(Fault::Expired));
    // On another machine nothing but the wall clock counts, and an hour ahead is not believed.
    assert_eq!(back(0, ELSEWHERE), Err(Fault::Expired));
    // The wall clock went on an hour.
    assert_eq!(open_at(1, 3_600_000, CLOCK), Err(Fault::Expired));
}

#[test]
fn a_replica_or_a_restart_goes_by_the_wall_clock() {
    let much_later = TEN_MINUTES * 1_000;
    assert!(open_at(much_later, TEN_MINUTES - 1, ELSEWHERE).is_ok());
    assert_eq!(open_at(0, TEN_MINUTES, ELSEWHERE), Err(Fault::Expired));
    // Wall clocks of two machines may be half a minute apart.
    let behind = |ms: u64| Now { boot: NOW.boot, wall_ms: NOW.wall_ms - ms };
    let open = |now| RefusalState::open(&sealed(), &keyring(), CALLER, "devices", now, ELSEWHERE);
    assert!(open(behind(30_000)).is_ok());
    assert_eq!(open(behind(30_001)), Err(Fault::Expired));
}

#[test]
fn keys_rotate() {
    let (old, new) = ("o".repeat(32), "n".repeat(32));
    let parse = |text: &str| Keyring::parse(text).unwrap();
    let old_state = state().seal(&parse(&old), CALLER).unwrap();
    let rotated = parse(&format!("{new},{old}"));
    assert!(open_with(&old_state, &rotated).is_ok());
    let new_state = state().seal(&rotated, CALLER).unwrap();
    assert!(open_with(&new_state, &parse(&new)).is_ok());
    assert_eq!(open_with(&new_state, &parse(&old)), Err(Fault::UnknownKey));
    assert_eq!(open_with(&old_state, &parse(&new)), Err(Fault::UnknownKey));
    // Spaces around a key are none of it.
    assert!(open_with(&old_state, &parse(&format!(" {new} ,\t{old}\n"))).is_ok());
    // A key from another process's random bits is unknown.
    assert_eq!(open_with(&old_state, &Keyring::single(&[2; 32])), Err(Fault::UnknownKey));
}

#[test]
fn a_key_under_another_keys_id_does_not_verify() {
    let mine = sealed();
    let parts: Vec<_> = mine.split('.').collect();
    let other = Keyring::single(&[2; 32]);
    let forged = [parts[0], other.signing().id(), parts[2], parts[3]].join(".");
    assert_eq!(open_with(&forged, &other), Err(Fault::BadMac));
}

#[test]
fn results_and_states_are_bounded() {
    let with_result = |bytes: usize| RefusalState { result: "x".repeat(bytes), ..state() };
    let largest = with_result(16_384);
    let text = largest.seal(&keyring(), CALLER).unwrap();
    assert_eq!(open_with(&text, &keyring()), Ok(largest));
    assert_eq!(with_result(16_385).seal(&keyring(), CALLER), Err(TooLarge::Result));

    let own = |bytes: usize| RefusalState { upstream_state: Some("y".repeat(bytes)), ..state() };
    let sealed_with = |bytes: usize| own(bytes).seal(&keyring(), CALLER);
    let mut beyond = 60_000;
    let mut most = 0;
    while most + 1 < beyond {
        let middle = usize::midpoint(most, beyond);
        if sealed_with(middle).is_ok() { most = middle } else { beyond = middle }
    }
    let text = sealed_with(most).unwrap();
    assert!((MAX_STATE_BYTES - 3..=MAX_STATE_BYTES).contains(&text.len()), "{}", text.len());
    assert_eq!(open_with(&text, &keyring()), Ok(own(most)));
    assert_eq!(sealed_with(most + 1), Err(TooLarge::State));
    assert_eq!(sealed_with(1_000_000), Err(TooLarge::State));
}

#[test]
fn an_offer_stands_while_the_whole_candidate_does() {
    let rule = crate::refusal::Rule::new(crate::refusal::testing::source()).unwrap();
    let now = |devices: &str| {
        rule.candidates_now(&format!(r#"{{"structuredContent":{{"devices":{devices}}}}}"#)).unwrap()
    };
    let offered = Offered { value: "a".into(), whole: r#"{"deviceId":"a","platform":"android"}"#.into() };
    assert!(offered.is_still_in(&now(r#"[{"deviceId":"b"},{"platform":"android","deviceId":"a"}]"#)));
    assert!(!offered.is_still_in(&now(r#"[{"deviceId":"a","platform":"ios"}]"#)));
    assert!(!offered.is_still_in(&now(r#"[{"deviceId":"a"}]"#)));
    assert!(!offered.is_still_in(&now("[]")));
}

#[test]
fn no_two_faults_share_a_word() {
    let faults = [
        Fault::Malformed,
        Fault::UnknownKey,
        Fault::BadMac,
        Fault::OtherPurpose,
        Fault::OtherUpstream,
        Fault::Expired,
    ];
    let words: std::collections::BTreeSet<_> = faults.iter().map(|fault| fault.as_str()).collect();
    assert_eq!(words.len(), faults.len());
}

proptest! {
    /// Any state comes back as it went out.
    #[test]
    fn any_state_comes_back(
        texts in prop::array::uniform4(any::<String>()),
        offered in prop::collection::vec((any::<String>(), any::<String>()), 0..4),
        own in any::<Option<String>>(),
        nonce in any::<[u8; 16]>(),
        session in any::<Option<String>>(),
    ) {
        let [upstream, refusal, tool, result] = texts;
        let offered = offered.into_iter().map(|(value, whole)| Offered { value, whole }).collect();
        let state = RefusalState { upstream, refusal, tool, result, offered, nonce, upstream_state: own, ..state() };
        let bound = Bound { principal: "p", session: session.as_deref() };
        let text = state.seal(&keyring(), bound).unwrap();
        let opened = RefusalState::open(&text, &keyring(), bound, &state.upstream, NOW, CLOCK);
        prop_assert_eq!(opened, Ok(state));
    }

    /// Anything at all is refused without a panic, also with our prefix and our key's id before it, and also signed.
    #[test]
    fn arbitrary_states_are_survived(text in any::<String>(), payload in prop::collection::vec(any::<u8>(), 0..100)) {
        let keyring = keyring();
        prop_assert!(open_with(&text, &keyring).is_err());
        let id = keyring.signing().id();
        let prefixed = format!("{PREFIX}{id}.{text}");
        prop_assert!(open_with(&prefixed, &keyring).is_err());
        prop_assert!(open_with(&signed(&payload), &keyring).is_err());
        let known = payload_of(&sealed());
        let broken = [&known[..known.len() - payload.len().min(known.len())], &payload[..]].concat();
        prop_assert!(broken == known || open_with(&signed(&broken), &keyring) != Ok(state()));
    }
}
