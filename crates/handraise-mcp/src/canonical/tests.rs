//! Canonical text: published examples, refusals, and properties against a naive second writer.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn text(json: &str) -> Result<String, Unbindable> {
    text_without(json, None)
}

fn text_without(json: &str, omit: Option<&str>) -> Result<String, Unbindable> {
    canonical(json.as_bytes(), omit, Dialect::Plain).map(|canonical| canonical.as_str().to_owned())
}

fn doubled(json: &str) -> String {
    canonical(json.as_bytes(), None, Dialect::DoubledDollar).unwrap().as_str().to_owned()
}

#[test]
fn rfc8785_examples_are_written_as_published() {
    for (input, output) in [
        // Section 3.2.2, but for its first number, which is another decimal value in canonical form (S4).
        (
            r#"{
              "numbers": [1E30, 4.50, 2e-3, 0.000000000000000000000000001],
              "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
              "literals": [null, true, false]
            }"#,
            r#"{"literals":[null,true,false],"numbers":[1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#,
        ),
        // Section 3.2.3.
        (
            r#"{
              "\u20ac": "Euro Sign",
              "\r": "Carriage Return",
              "\ufb33": "Hebrew Letter Dalet With Dagesh",
              "1": "One",
              "\ud83d\ude00": "Emoji: Grinning Face",
              "\u0080": "Control",
              "\u00f6": "Latin Small Letter O With Diaeresis"
            }"#,
            "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        ),
        // The author's test data: structures, french, unicode, arrays.
        (
            r#"{"1": {"f": {"f": "hi","F": 5} ,"\n": 56.0}, "10": { }, "": "empty", "a": { }, "111": [ {"e": "yes","E": "no" } ], "A": { }}"#,
            r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
        ),
        (
            r#"{"peach": "This sorting order", "péché": "is wrong according to French", "pêche": "but canonicalization MUST", "sin": "ignore locale"}"#,
            r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
        ),
        (r#"{"Unnormalized Unicode":"A\u030a"}"#, "{\"Unnormalized Unicode\":\"A\u{30a}\"}"),
        (r#"[56, {"d": true, "10": null, "1": [ ]}]"#, r#"[56,{"1":[],"10":null,"d":true}]"#),
    ] {
        assert_eq!(text(input).as_deref(), Ok(output));
        assert_eq!(text(output).as_deref(), Ok(output), "canonical text is its own canonical text");
    }
    assert_eq!(text("[333333333.33333329]"), Err(Unbindable::InexactNumber));
}

#[test]
fn a_digest_is_that_of_the_text() {
    let canonical = canonical(br#"{ "a" : 1.0 }"#, None, Dialect::Plain).unwrap();
    let published = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862";
    let byte = |at: usize| u8::from_str_radix(&published[2 * at..2 * at + 2], 16).unwrap();
    // Of `{"a":1}`.
    assert_eq!(canonical.sha256(), std::array::from_fn(byte));
}

#[test]
fn arguments_stay_out_of_debug_output() {
    let canonical = canonical(br#"{"password":"hunter2"}"#, None, Dialect::Plain).unwrap();
    assert_eq!(format!("{canonical:?}"), "Canonical(22 bytes)");
}

#[test]
fn one_top_level_key_is_left_out_however_it_is_spelt() {
    let omit = Some("deviceId");
    assert_eq!(text_without(r#"{"b":1,"deviceId":"x","a":2}"#, omit).unwrap(), r#"{"a":2,"b":1}"#);
    assert_eq!(text_without(r#"{"\u0064eviceId":{"deviceId":1}}"#, omit).unwrap(), "{}");
    assert_eq!(text_without(r#"{"DeviceId":1}"#, omit).unwrap(), r#"{"DeviceId":1}"#);
    assert_eq!(text_without(r#"{"a":{"deviceId":1}}"#, omit).unwrap(), r#"{"a":{"deviceId":1}}"#);
    assert_eq!(text_without(r#"[{"deviceId":1}]"#, omit).unwrap(), r#"[{"deviceId":1}]"#);
    assert_eq!(text_without("{\"\\\"\\n\":1,\"b\":2}", Some("\"\n")).unwrap(), r#"{"b":2}"#);
    // What cannot be bound cannot be hidden in what is left out.
    assert_eq!(text_without(r#"{"deviceId":9007199254740993}"#, omit), Err(Unbindable::InexactNumber));
    assert_eq!(text_without(r#"{"deviceId":1,"deviceId":2}"#, omit), Err(Unbindable::DuplicateKey));
}

#[test]
fn the_confirm_dialect_doubles_a_leading_dollar() {
    assert_eq!(
        doubled(r#"{"$a":1,"b$":{"$":2,"$$":3},"c":"$"}"#),
        r#"{"$$a":1,"b$":{"$$":2,"$$$":3},"c":"$"}"#
    );
    assert_eq!(doubled(r#"{"\u0024ref":1}"#), r#"{"$$ref":1}"#);
    assert_eq!(text(r#"{"$a":1}"#).unwrap(), r#"{"$a":1}"#);
    let omitted = canonical(br#"{"$a":1,"b":2}"#, Some("$a"), Dialect::DoubledDollar).unwrap();
    assert_eq!(omitted.as_str(), r#"{"b":2}"#);
    let kept = canonical(br#"{"$a":1}"#, Some("$$a"), Dialect::DoubledDollar).unwrap();
    assert_eq!(kept.as_str(), r#"{"$$a":1}"#);
}

#[test]
fn s4_duplicate_keys_at_any_depth_cannot_be_bound() {
    for json in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"b":2,"\u0061":3}"#,
        r#"[{"x":{"y":[{"k":1,"k":2}]}}]"#,
        r#"{"":1,"":2}"#,
        "{\"\u{e000}\":1,\"😀\":2,\"\\ud83d\\ude00\":3}",
    ] {
        assert_eq!(text(json), Err(Unbindable::DuplicateKey), "{json}");
    }
    assert!(text(r#"{"a":{"a":{"a":1}}}"#).is_ok());
}

#[test]
fn s4_unpaired_surrogates_cannot_be_bound() {
    for json in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\u0041""#,
        r#""\ud800\ud800""#,
        r#""\ud83d x""#,
        r#"{"\udfff":1}"#,
        r#""\udc00\ud800""#,
    ] {
        assert_eq!(text(json), Err(Unbindable::UnpairedSurrogate), "{json}");
    }
    assert_eq!(text(r#""\ud83d\ude00\uD83D\uDE00""#).unwrap(), r#""😀😀""#);
}

#[test]
fn s4_invalid_utf8_cannot_be_bound() {
    for bytes in [&b"\"\xff\""[..], b"\"\xc3\"", b"\"\xed\xa0\x80\"", b"{\"\xc0\xaf\":1}"] {
        assert_eq!(canonical(bytes, None, Dialect::Plain), Err(Unbindable::InvalidUtf8));
    }
}

#[test]
fn s4_nesting_over_64_cannot_be_bound() {
    let nested = |depth: usize, open: &str, close: &str| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let levels = open.matches(['[', '{']).count();
        assert!(text(&nested(MAX_DEPTH / levels, open, close)).is_ok());
        assert_eq!(text(&nested(MAX_DEPTH / levels + 1, open, close)), Err(Unbindable::TooDeep));
    }
    assert_eq!(text(&"[".repeat(1_000_000)), Err(Unbindable::TooDeep));
}

#[test]
fn s4_numbers_that_a_double_does_not_hold_cannot_be_bound() {
    for number in [
        "9007199254740993",
        "-9007199254740993",
        "0.1000000000000000055511151231257827",
        "1e400",
        "-1e400",
        "1e-400",
        "123456789012345678",
        "1.0000000000000001",
        "2.5e-324",
        "1e99999999999999999999999999999999999999999",
        "1e-99999999999999999999999999999999999999999",
    ] {
        assert_eq!(text(number), Err(Unbindable::InexactNumber), "{number}");
    }
    for (number, written) in [
        ("9007199254740992", "9007199254740992"),
        ("9007199254740994.0", "9007199254740994"),
        ("-0", "0"),
        ("-0.0e5", "0"),
        ("0e99999999999999999999999", "0"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("123456789012345680000", "123456789012345680000"),
        ("1.5e-7", "1.5e-7"),
        ("0.000001", "0.000001"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("100e-2", "1"),
        ("1424953923781206.2", "1424953923781206.2"),
    ] {
        assert_eq!(text(number).as_deref(), Ok(written), "{number}");
    }
}

#[test]
fn what_is_no_json_cannot_be_bound() {
    for json in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "nul",
        "truex",
        "01",
        "1.",
        "+1",
        "NaN",
        "Infinity",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\u{1}\"",
        "1 1",
        "{} x",
        "'a'",
        "[1]]",
        "\u{feff}1",
        "\"\\u+123\"",
    ] {
        assert_eq!(text(json), Err(Unbindable::Malformed), "{json:?}");
    }
}

/// A naive second writer: sorts by code units, and leaves strings and literals to `serde_json`, whose escapes are those of
/// `JSON.stringify`.
fn naive(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.encode_utf16().collect::<Vec<_>>());
            let members: Vec<_> = members
                .into_iter()
                .map(|(key, value)| format!("{}:{}", serde_json::to_string(key).unwrap(), naive(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(naive).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// Any character, those at the borders of the encodings often.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        any::<char>(),
        prop::char::range('\u{0}', '\u{7f}'),
        prop::sample::select(vec![
            '"',
            '\\',
            '/',
            '$',
            '\u{7f}',
            '\u{80}',
            '\u{d7ff}',
            '\u{e000}',
            '\u{fb33}',
            '\u{ffff}',
            '\u{10000}',
            '😀',
            '\u{10ffff}',
            '\u{2028}'
        ]),
    ]
}

fn string() -> impl Strategy<Value = String> {
    prop::collection::vec(character(), 0..6).prop_map(String::from_iter)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991..=9_007_199_254_740_991_i64).prop_map(Value::from),
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((string(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The value as text with its members in another order, with spaces, and with characters escaped that need no escape.
fn respelt(value: &Value, whim: &mut impl FnMut() -> usize) -> String {
    let space = |whim: &mut dyn FnMut() -> usize| [" ", "", "\n", "\t\r "][whim() % 4];
    match value {
        Value::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(key, value)| {
                    let key = respelt(&Value::from(key.as_str()), whim);
                    format!("{key}{}:{}{}", space(whim), space(whim), respelt(value, whim))
                })
                .collect();
            if !members.is_empty() {
                let by = whim() % members.len();
                members.rotate_left(by);
            }
            format!("{{{}{}}}", space(whim), members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| respelt(item, whim)).collect();
            format!("[{}{}]", space(whim), items.join(" ,"))
        }
        Value::String(text) => {
            let mut json = String::from("\"");
            for character in text.chars() {
                if whim().is_multiple_of(3) {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        write!(json, "\\u{unit:04X}").unwrap();
                    }
                } else {
                    let written = serde_json::to_string(&character).unwrap();
                    json += &written[1..written.len() - 1];
                }
            }
            json + "\""
        }
        Value::Number(number) => match whim() % 3 {
            0 => format!("{number}.0"),
            1 => format!("{number}e0"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

proptest! {
    /// However a value is spelt, its canonical text is the one that a second writer gives.
    #[test]
    fn every_spelling_of_a_value_has_one_text(value in value(), seed in any::<u64>()) {
        let mut state = seed;
        let mut whim = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let spelt = respelt(&value, &mut whim);
        prop_assert_eq!(text(&spelt), Ok(naive(&value)), "{}", spelt);
    }

    /// Values that differ have texts that differ: the text reads back as the value.
    #[test]
    fn a_text_reads_back_as_its_value(value in value()) {
        let text = text(&value.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    /// In the confirm dialect as well: no two values share a text.
    #[test]
    fn doubling_keeps_keys_apart(keys in prop::collection::btree_set("[$a]{0,4}", 0..6)) {
        let members: Map<_, _> = keys.iter().map(|key| (key.clone(), json!(1))).collect();
        let text = doubled(&Value::Object(members).to_string());
        let read: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let undoubled: std::collections::BTreeSet<_> = read
            .keys()
            .map(|key| key.strip_prefix('$').filter(|_| key.starts_with("$$")).unwrap_or(key).to_owned())
            .collect();
        prop_assert_eq!(undoubled, keys);
    }

    /// Every double is written so that it reads back as itself, and can be bound as it is written.
    #[test]
    fn a_double_reads_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let mut written = String::new();
        number::ecma(value, &mut written);
        let read: f64 = written.parse().unwrap();
        prop_assert_eq!(read.abs().to_bits(), value.abs().to_bits());
        prop_assert_eq!(read.total_cmp(&0.0), (value + 0.0).total_cmp(&0.0));
        prop_assert_eq!(text(&written), Ok(written));
    }

    /// A decimal of up to 17 digits is bound exactly when the double that it reads as has that decimal value.
    #[test]
    fn a_decimal_is_bound_or_not_by_its_value(digits in 1_u64..100_000_000_000_000_000, exponent in -330_i32..310) {
        let source = format!("{digits}e{exponent}");
        let mut written = String::new();
        let value: f64 = source.parse().unwrap();
        let is_exact = value.is_finite() && {
            number::ecma(value, &mut written);
            decimal::Decimal::of(&written) == decimal::Decimal::of(&source)
        };
        prop_assert_eq!(text(&source), if is_exact { Ok(written) } else { Err(Unbindable::InexactNumber) });
    }

    /// Anything at all has a text or a reason, and a text only when it is JSON.
    #[test]
    fn arbitrary_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bound = canonical(&bytes, Some("a"), Dialect::DoubledDollar);
        prop_assert!(bound.is_err() || serde_json::from_slice::<Value>(&bytes).is_ok());
    }

    /// The same for what almost is JSON: what `serde_json` refuses is refused, what it reads is bound or has an S4 reason.
    #[test]
    fn broken_json_is_survived(json in r#"[\[\]{}",:\\u0-9a-fA-F.eE+\- tnrls]{0,24}"#) {
        let is_json = serde_json::from_str::<Value>(&json).is_ok();
        match text(&json) {
            Ok(_) => prop_assert!(is_json),
            Err(Unbindable::Malformed) => prop_assert!(!is_json, "{}", json),
            Err(_) => {}
        }
    }

    /// Cut anywhere, JSON is no JSON, or has another reason.
    #[test]
    fn a_cut_text_is_survived(value in value(), at in any::<prop::sample::Index>()) {
        let spelt = Value::from(vec![value]).to_string();
        let cut = &spelt.as_bytes()[..at.index(spelt.len())];
        prop_assert!(canonical(cut, None, Dialect::Plain).is_err());
    }
}
