//! Tokens: the published vector, and one test for each check.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::super::*;
use crate::canonical::{Dialect, canonical};

const SECRET: &str = "correct horse battery staple";
const EXPIRES_MS: u64 = 1_800_000_600_000;
const BEFORE_MS: u64 = EXPIRES_MS - 1;
const HASH: &str = "mpSgSQfB3JBIRLh2B62n-8c6K2hE21K_WJWh_cvZcQg";
const CALL: Call<'static> = Call { tool: "thing_delete", account: Some("me@example.com"), target: "item-42" };
const FRESH: Fresh<'static> = Fresh { revision: Some("etag-7"), hash: HASH };

fn key() -> TokenKey {
    TokenKey::of_secret(SECRET)
}

fn claims() -> Claims {
    Claims {
        tool: "thing_delete".into(),
        account: Some("me@example.com".into()),
        target: "item-42".into(),
        revision: Some("etag-7".into()),
        hash: HASH.into(),
        expires_ms: EXPIRES_MS,
        nonce: std::array::from_fn(|at| at as u8),
    }
}

fn rejection(token: &str) -> Rejection {
    verify(token, &key(), CALL).unwrap_err()
}

/// A token with those claims as JSON, signed with the right key.
fn signed(json: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use sha2::{Digest, Sha256};
    let body = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json));
    let key = Sha256::digest(SECRET);
    let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap().chain_update(&body).finalize().into_bytes();
    format!("{body}.{}", URL_SAFE_NO_PAD.encode(mac))
}

#[test]
fn the_published_vector_is_reproduced_byte_for_byte() {
    let payload = r#"{"tags":["a","b"],"id":"item-42","note":"bye"}"#;
    let digest = canonical(payload.as_bytes(), None, Dialect::DoubledDollar).unwrap().sha256();
    assert_eq!(URL_SAFE_NO_PAD.encode(digest), HASH);
    let json = r#"{"t":"thing_delete","a":"me@example.com","g":"item-42","r":"etag-7","h":"mpSgSQfB3JBIRLh2B62n-8c6K2hE21K_WJWh_cvZcQg","exp":1800000600000,"n":"AAECAwQFBgcICQoLDA0ODw"}"#;
    let token =
        format!("mcpu.token.v1.{}.ANZcZ7foSdJBxLJWv0vHhbcpf8G3-1JhMe4SEc4zyd4", URL_SAFE_NO_PAD.encode(json));
    assert_eq!(sign(&claims(), &key()), token);
    assert_eq!(verify(&token, &key(), CALL), Ok(claims()));
    assert_eq!(claims().check(Spent::No, BEFORE_MS, FRESH), Ok(()));
}

#[test]
fn what_there_is_none_of_is_left_out() {
    let bare = Claims { account: None, revision: None, target: String::new(), ..claims() };
    let token = sign(&bare, &key());
    let json = URL_SAFE_NO_PAD.decode(token.split('.').nth(3).unwrap()).unwrap();
    assert!(json.starts_with(br#"{"t":"thing_delete","g":"","h":""#));
    let call = Call { account: None, target: "", ..CALL };
    assert_eq!(verify(&token, &key(), call), Ok(bare));
}

#[test]
fn check_1_what_is_no_token_is_invalid() {
    let token = sign(&claims(), &key());
    for text in [
        "",
        "mcpu.token.v1.",
        &token["mcpu.".len()..],
        &token.replace("v1", "v2"),
        &token.replace("mcpu", "MCPU"),
        &format!(" {token}"),
        &format!("{token} "),
        &format!("{token}="),
        &format!("{token}.x"),
        &format!("{PREFIX}{}", "A".repeat(20_000)),
        "hr1.a.b.c",
    ] {
        assert_eq!(rejection(text), Rejection::Malformed, "{text}");
    }
    assert_eq!(Rejection::Malformed.code(), "TOKEN_INVALID");
}

#[test]
fn check_2_every_changed_character_is_refused() {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+ ";
    let token = sign(&claims(), &key());
    let key = key();
    for at in 0..token.len() {
        for other in ALPHABET.chars().filter(|other| !token[at..].starts_with(*other)) {
            let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
            let rejection = verify(&changed, &key, CALL).unwrap_err();
            assert!(matches!(rejection, Rejection::Malformed | Rejection::BadMac), "{rejection:?} {changed}");
            assert_eq!(rejection.code(), "TOKEN_INVALID");
        }
    }
    for end in 0..token.len() {
        assert!(verify(&token[..end], &key, CALL).is_err());
    }
}

#[test]
fn check_2_another_key_does_not_verify() {
    let token = sign(&claims(), &key());
    for other in [TokenKey::of_secret("correct horse battery stapl"), TokenKey::of_bytes(&[0; 32])] {
        assert_eq!(verify(&token, &other, CALL), Err(Rejection::BadMac));
    }
    let (signed, mac) = token.rsplit_once('.').unwrap();
    for mac in ["", &mac[..40], &format!("{mac}AAAA")] {
        assert_eq!(rejection(&format!("{signed}.{mac}")), Rejection::BadMac);
    }
}

#[test]
fn check_3_claims_are_a_json_object_of_the_right_members() {
    let right = r#"{"t":"thing_delete","a":"me@example.com","g":"item-42","h":"x","exp":1,"n":"AAECAwQFBgcICQoLDA0ODw"}"#;
    assert!(verify(&signed(right), &key(), CALL).is_ok());
    for json in [
        "",
        "null",
        "[]",
        "\"x\"",
        "{",
        "{}",
        &right.replace(r#""t":"thing_delete","#, ""),
        &right.replace(r#""g":"item-42","#, ""),
        &right.replace(r#""h":"x","#, ""),
        &right.replace(r#""a":"me@example.com""#, r#""a":null"#),
        &right.replace(r#""exp":1"#, r#""exp":"1""#),
        &right.replace(r#""exp":1"#, r#""exp":-1"#),
        &right.replace(r#""exp":1"#, r#""exp":1.5"#),
        &right.replace(r#""exp":1"#, r#""exp":9007199254740992"#),
        &right.replace("DA0ODw", "DA0O"),
        &right.replace("DA0ODw", "DA0ODx"),
    ] {
        assert_eq!(rejection(&signed(json)), Rejection::BadClaims, "{json}");
    }
    assert_eq!(Rejection::BadClaims.code(), "TOKEN_INVALID");
}

#[test]
fn check_4_a_token_is_for_its_tool_account_and_target() {
    let token = sign(&claims(), &key());
    for (call, expected) in [
        (Call { tool: "thing_send", ..CALL }, Rejection::OtherTool),
        (Call { account: None, ..CALL }, Rejection::OtherAccount),
        (Call { account: Some("you@example.com"), ..CALL }, Rejection::OtherAccount),
        (Call { target: "item-43", ..CALL }, Rejection::OtherTarget),
        (Call { target: "", ..CALL }, Rejection::OtherTarget),
        // In that order.
        (Call { tool: "x", account: None, target: "" }, Rejection::OtherTool),
        (Call { account: None, target: "", ..CALL }, Rejection::OtherAccount),
    ] {
        assert_eq!(verify(&token, &key(), call), Err(expected));
        assert_eq!((expected.code(), expected.reason()), ("TOKEN_INVALID", None));
    }
    let without = sign(&Claims { account: None, ..claims() }, &key());
    assert_eq!(verify(&without, &key(), CALL), Err(Rejection::OtherAccount));
}

#[test]
fn checks_5_to_8_are_made_in_their_order() {
    let other = Fresh { revision: Some("etag-8"), hash: "other" };
    for (spent, now_ms, fresh, expected, code, reason) in [
        (Spent::Unknown, EXPIRES_MS, other, Rejection::StoreUnavailable, "SPENT_STORE_UNAVAILABLE", None),
        (Spent::Yes, EXPIRES_MS, other, Rejection::Reused, "TOKEN_REUSED", None),
        (Spent::No, EXPIRES_MS, other, Rejection::Expired, "TOKEN_EXPIRED", None),
        (Spent::No, u64::MAX, FRESH, Rejection::Expired, "TOKEN_EXPIRED", None),
        (Spent::No, BEFORE_MS, other, Rejection::RevisionChanged, "DRAFT_CHANGED", Some("revision-changed")),
        (
            Spent::No,
            BEFORE_MS,
            Fresh { revision: None, ..FRESH },
            Rejection::RevisionChanged,
            "DRAFT_CHANGED",
            Some("revision-changed"),
        ),
        (
            Spent::No,
            BEFORE_MS,
            Fresh { hash: "other", ..FRESH },
            Rejection::PayloadChanged,
            "DRAFT_CHANGED",
            Some("payload-changed"),
        ),
    ] {
        assert_eq!(claims().check(spent, now_ms, fresh), Err(expected));
        assert_eq!((expected.code(), expected.reason()), (code, reason));
    }
    assert_eq!(claims().check(Spent::Yes, BEFORE_MS, FRESH), Err(Rejection::Reused));
    assert_eq!(claims().check(Spent::No, 0, FRESH), Ok(()));
}

#[test]
fn check_9_only_one_claim_wins() {
    assert_eq!(claimed(Spent::No), Ok(()));
    assert_eq!(claimed(Spent::Yes), Err(Rejection::Reused));
    // A store that cannot say so lets nothing run.
    assert_eq!(claimed(Spent::Unknown), Err(Rejection::StoreUnavailable));
}

#[test]
fn an_end_stays_a_number_that_every_reader_holds() {
    let token = sign(&Claims { expires_ms: u64::MAX, ..claims() }, &key());
    assert_eq!(verify(&token, &key(), CALL).map(|claims| claims.expires_ms), Ok(9_007_199_254_740_991));
}

#[test]
fn keys_stay_out_of_debug_output() {
    assert_eq!(format!("{:?}", key()), "TokenKey(•)");
}
