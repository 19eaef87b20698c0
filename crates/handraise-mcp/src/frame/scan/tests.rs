//! JSON as `serde_json` judges it.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::string::plain_run;
use super::*;

fn accepts(bytes: &[u8]) -> bool {
    let mut scanner = Scanner::new(bytes);
    scanner.space();
    scanner.value().is_ok() && scanner.is_at_end()
}

/// The judge: a raw value is skipped, not read, so that numbers and surrogates have no range.
fn judge(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

/// Any JSON value, written with escapes and white space as the seeds say.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|word| word.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        "\"[ -!#-\\[\\]-~éß€😀]{0,90}\"",
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        r#""(\\u[0-9a-fA-F]{4}|\\[bfnrt/"]|[a-z]){0,20}""#,
    ];
    leaf.prop_recursive(6, 60, 8, |inner| {
        let gap = "[ \t\r\n]{0,2}";
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), gap)
                .prop_map(|(items, gap)| format!("[{gap}{}{gap}]", items.join(&format!("{gap},")))),
            (prop::collection::vec(("[a-z]{0,3}", inner), 0..6), gap).prop_map(|(items, gap)| {
                let items: Vec<_> =
                    items.iter().map(|(key, value)| format!("\"{key}\"{gap}:{value}")).collect();
                format!("{{{gap}{}{gap}}}", items.join(&format!(",{gap}")))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn s3_json_is_accepted(text in json()) {
        prop_assert!(judge(text.as_bytes()));
        prop_assert!(accepts(text.as_bytes()));
    }

    #[test]
    fn s3_mutated_json_is_judged_as_serde_json_does(
        text in json(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..4),
    ) {
        let mut bytes = text.into_bytes();
        for (at, kind, byte) in cuts {
            let at = at.index(bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        prop_assert_eq!(accepts(&bytes), judge(&bytes), "{}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn s3_mutated_punctuation_is_judged_as_serde_json_does(
        text in r#"[\[\]{}:,"\\ 0-9eE+.tfnu-]{0,24}"#,
    ) {
        prop_assert_eq!(accepts(text.as_bytes()), judge(text.as_bytes()), "{}", text);
    }

    #[test]
    fn a_string_means_what_serde_json_says(text in any::<String>(), escaped in any::<bool>()) {
        let mut raw = serde_json::to_string(&text).unwrap();
        if escaped {
            let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
            raw = format!("\"{}\"", units.concat());
        }
        let quoted = Scanner::new(raw.as_bytes()).string().unwrap();
        prop_assert!(quoted.is(&text));
        prop_assert_eq!(quoted.text(), text);
    }

    #[test]
    fn a_run_stops_at_the_first_special_byte(length in 0..200_usize, special in 0..0x20_u8, wide in any::<bool>()) {
        for stop in [b'"', b'\\', special] {
            let mut bytes = vec![if wide { 0xe9 } else { b'x' }; length];
            bytes.push(stop);
            bytes.extend([0xff; 9]);
            let mut is_wide = false;
            prop_assert_eq!(plain_run(&bytes, &mut is_wide), length);
            prop_assert_eq!(is_wide, wide && length > 0);
        }
    }
}

#[test]
fn s3_what_lenient_parsers_take_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "}",
        "{\"a\":1,}",
        "[1,]",
        "{,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}{",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":5.}",
        "{\"a\":NaN}",
        "{\"a\":1e}",
        "{\"a\":/**/1}",
        "{\"a\":0x1}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x41\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":True}",
        "{\"a\" 1}",
        "{\"a\":}",
        "\u{feff}{}",
        "{\"a\":1}//",
        "{]",
        "[}",
        "{\"a\":[}]",
    ] {
        assert!(!accepts(text.as_bytes()), "{text}");
        assert!(!judge(text.as_bytes()), "{text}");
    }
    assert!(!accepts(b"\"\xff\""));
    assert!(!accepts(b"\"\xed\xa0\x80\""), "a surrogate in UTF-8");
}

#[test]
fn nesting_has_no_bound_but_the_text() {
    for depth in [1, 63, 64, 65, 127, 128, 129, 200_000] {
        let text = format!("{}{}", "[{\"a\":".repeat(depth) + "1", "}]".repeat(depth));
        assert!(accepts(text.as_bytes()), "{depth}");
        let crossed = format!("{}{}", "[{\"a\":".repeat(depth) + "1", "]}".repeat(depth));
        assert!(!accepts(crossed.as_bytes()), "{depth}");
    }
}

#[test]
fn an_unpaired_surrogate_is_json_and_means_a_replacement() {
    let quoted = Scanner::new(br#""a\ud800b\udc00""#).string().unwrap();
    assert_eq!(quoted.text(), "a\u{fffd}b\u{fffd}");
}
