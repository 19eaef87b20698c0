//! What a hash binds.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::super::*;
use crate::canonical::Unbindable;

const ARGUMENTS: &str = r#"{"id":"item-42","note":"bye","$where":{"$gt":1}}"#;
const PAYLOAD: &str = r#"{"subject":"Hello","$type":"draft"}"#;

fn hash(payload: &str, arguments: &str) -> String {
    payload_hash(payload, arguments).unwrap()
}

#[test]
fn a_hash_is_over_both_with_dollars_doubled() {
    let text = r#"{"args":{"$$where":{"$$gt":1},"id":"item-42","note":"bye"},"payload":{"$$type":"draft","subject":"Hello"}}"#;
    assert_eq!(hash(PAYLOAD, ARGUMENTS), URL_SAFE_NO_PAD.encode(Sha256::digest(text)));
}

#[test]
fn the_order_of_arguments_and_the_token_do_not_count() {
    let expected = hash(PAYLOAD, ARGUMENTS);
    for arguments in [
        r#"{"note":"bye","$where":{"$gt":1},"id":"item-42"}"#,
        r#"{"confirmToken":"mcpu.token.v1.x.y","note":"bye","$where":{"$gt":1.0},"id":"item-42"}"#,
        r#"{"confirm\u0054oken":null,"note":"b\u0079e","$where":{"$gt":1e0},"id":"item-42"}"#,
    ] {
        assert_eq!(hash(PAYLOAD, arguments), expected, "{arguments}");
    }
}

#[test]
fn any_change_counts() {
    let expected = hash(PAYLOAD, ARGUMENTS);
    for arguments in [
        "{}",
        r#"{"id":"item-42","note":"bye"}"#,
        r#"{"id":"item-42","note":"bye ","$where":{"$gt":1}}"#,
        r#"{"id":"item-42","note":"bye","$where":{"$gt":"1"}}"#,
        r#"{"id":"item-42","note":"bye","$where":{"$gt":1,"confirmToken":"x"}}"#,
        r#"{"id":"item-42","note":"bye","$$where":{"$gt":1}}"#,
        r#"{"id":"item-42","note":"bye","$where":{"$gt":1},"cc":null}"#,
    ] {
        assert_ne!(hash(PAYLOAD, arguments), expected, "{arguments}");
    }
    assert_ne!(hash("null", ARGUMENTS), expected);
    assert_ne!(hash(r#"{"subject":"Hello!","$type":"draft"}"#, ARGUMENTS), expected);
    // The token's name means nothing in a payload.
    assert_ne!(hash(r#"{"subject":"Hello","$type":"draft","confirmToken":1}"#, ARGUMENTS), expected);
}

#[test]
fn s4_what_cannot_be_bound_has_no_hash() {
    assert_eq!(payload_hash("null", r#"{"a":1,"a":1}"#), Err(Unbindable::DuplicateKey));
    assert_eq!(payload_hash("null", r#"{"confirmToken":9007199254740993}"#), Err(Unbindable::InexactNumber));
    assert_eq!(payload_hash(r#""\ud800""#, "{}"), Err(Unbindable::UnpairedSurrogate));
}

#[test]
fn a_payload_names_upstream_tool_and_preview() {
    let preview: &RawValue = serde_json::from_str(r#"{"to": "a", "n":1.0}"#).unwrap();
    assert_eq!(
        gateway_payload("mail@staging", "sha256:ab", Some(preview)),
        r#"{"aud":"mail@staging","tool":"sha256:ab","preview":{"to": "a", "n":1.0}}"#
    );
    assert_eq!(gateway_payload("x\"", "", None), r#"{"aud":"x\"","tool":"","preview":null}"#);
}

/// JSON as a reader sees it that takes the first or the last of duplicate members, and keeps numbers as exact decimals.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Word(String),
    Text(String),
    /// Digits without zeros at the end, and the power of ten behind them.
    Decimal(i128, i32),
    List(Vec<Seen>),
    Members(Vec<(String, Seen)>),
}

/// A spelling of JSON from which each reader takes something else.
#[derive(Debug, Clone)]
enum Spelt {
    Word(&'static str),
    Text(&'static str, &'static str),
    Number(i128, i32, String),
    List(Vec<Spelt>),
    Members(Vec<(&'static str, &'static str, Spelt)>),
}

impl Spelt {
    fn json(&self) -> String {
        match self {
            Self::Word(json) | Self::Text(json, _) => (*json).to_owned(),
            Self::Number(_, _, json) => json.clone(),
            Self::List(items) => format!("[{}]", items.iter().map(Self::json).collect::<Vec<_>>().join(",")),
            Self::Members(members) => {
                let member = |(key, _, value): &(_, _, Self)| format!("{key}:{}", value.json());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }

    fn seen(&self, last_wins: bool) -> Seen {
        match self {
            Self::Word(json) => Seen::Word((*json).to_owned()),
            Self::Text(_, text) => Seen::Text((*text).to_owned()),
            Self::Number(0, ..) => Seen::Decimal(0, 0),
            Self::Number(digits, power, _) => {
                let (mut digits, mut power) = (*digits, *power);
                while digits % 10 == 0 {
                    (digits, power) = (digits / 10, power + 1);
                }
                Seen::Decimal(digits, power)
            }
            Self::List(items) => Seen::List(items.iter().map(|item| item.seen(last_wins)).collect()),
            Self::Members(members) => {
                let mut seen = std::collections::BTreeMap::new();
                for (_, key, value) in members {
                    if last_wins || !seen.contains_key(*key) {
                        seen.insert((*key).to_owned(), value.seen(last_wins));
                    }
                }
                Seen::Members(seen.into_iter().collect())
            }
        }
    }
}

/// Few values in many spellings, so that equal hashes are common.
fn spelt() -> impl Strategy<Value = Spelt> {
    let number = prop::sample::select(vec![1, 10, 9_007_199_254_740_992, 9_007_199_254_740_993])
        .prop_flat_map(|digits: i128| {
            prop_oneof![
                Just(Spelt::Number(digits, 0, digits.to_string())),
                Just(Spelt::Number(digits, 0, format!("{digits}.0"))),
                Just(Spelt::Number(digits, 1, format!("{digits}e1"))),
                Just(Spelt::Number(digits, 0, format!("{digits}0E-1"))),
            ]
        });
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true"]).prop_map(Spelt::Word),
        prop::sample::select(vec![(r#""a""#, "a"), (r#""\u0061""#, "a"), (r#""$a""#, "$a")])
            .prop_map(|(json, text)| Spelt::Text(json, text)),
        number,
    ];
    let key = prop::sample::select(vec![
        (r#""a""#, "a"),
        (r#""\u0061""#, "a"),
        (r#""$a""#, "$a"),
        (r#""$$a""#, "$$a"),
        (r#""\u0024a""#, "$a"),
    ]);
    leaf.prop_recursive(2, 6, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Spelt::List),
            prop::collection::vec((key.clone(), inner), 0..3).prop_map(|members| {
                Spelt::Members(members.into_iter().map(|((json, key), value)| (json, key, value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever hashes equal is equal to readers who take the first of duplicate members, to those who take the last, and
    /// to those with big integers; or it has no hash. And what is equal to all of them and can be bound hashes equal.
    #[test]
    fn s4_what_hashes_equal_is_equal_to_every_reader(one in spelt(), two in spelt()) {
        let hash = |spelt: &Spelt| payload_hash("null", &format!("{{\"x\":{}}}", spelt.json()));
        if let (Ok(hash_one), Ok(hash_two)) = (hash(&one), hash(&two)) {
            prop_assert_eq!(one.seen(true), one.seen(false), "no reader differs about what has a hash");
            prop_assert_eq!(hash_one == hash_two, one.seen(true) == two.seen(true));
        }
    }
}
