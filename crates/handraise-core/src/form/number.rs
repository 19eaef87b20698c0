//! Numbers as people type them: JSON's syntax, strictly, and nothing that would arrive as another number.

use std::cmp::Ordering;

use serde_json::Number;

/// Reads a number for a `number` question: exactly JSON's grammar and finite.
pub(super) fn parse(text: &str) -> Option<Number> {
    if text.len() > 64 || !is_json_number(text.as_bytes()) {
        return None;
    }
    let number: Number = serde_json::from_str(text).ok()?;
    number.as_f64().is_some_and(f64::is_finite).then_some(number)
}

/// The same number as an integer, if it has no fraction and can be sent exactly: `30.0` and `3e1` are 30.
pub(super) fn to_integer(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let value = number.as_f64()?;
    // Beyond 2^53 a float is no longer the number that was typed.
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then(|| {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be an integer within 2^53")]
        Number::from(value as i64)
    })
}

/// Compares by value; integers exactly, whatever their size.
pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    match (exact(a), exact(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a
            .as_f64()
            .unwrap_or(f64::NAN)
            .partial_cmp(&b.as_f64().unwrap_or(f64::NAN))
            .unwrap_or(Ordering::Equal),
    }
}

fn exact(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// `-? (0 | [1-9][0-9]*) (\.[0-9]+)? ([eE][+-]?[0-9]+)?`, and nothing around it.
fn is_json_number(bytes: &[u8]) -> bool {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let bytes = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let whole = digits(bytes);
    if whole == 0 || (whole > 1 && bytes[0] == b'0') {
        return false;
    }
    let mut rest = &bytes[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', unsigned @ ..] => unsigned,
            _ => exponent,
        };
        let count = digits(exponent);
        if count == 0 {
            return false;
        }
        rest = &exponent[count..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn f10_number_syntax_is_strict() {
        for bad in [
            "", "123abc", "NaN", "Infinity", "1e999", "-1e999", "+5", ".5", "5.", "05", "0x10", "1_000",
            "1,5", "1e", "1e+", "--1", "- 1", "1 2", "٣", "１", "1\0", "e5", "null", "-",
        ] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        for good in ["0", "-0", "30", "30.0", "30.5", "-1.5e-3", "1E5", "9007199254740993"] {
            assert!(parse(good).is_some(), "{good:?}");
        }
    }

    #[test]
    fn f10_thirty_is_an_integer_however_it_is_written() {
        let integer = |text: &str| parse(text).and_then(|number| to_integer(&number)).map(|n| n.to_string());
        assert_eq!(integer("30").as_deref(), Some("30"));
        assert_eq!(integer("30.0").as_deref(), Some("30"));
        assert_eq!(integer("3e1").as_deref(), Some("30"));
        assert_eq!(integer("-0.0").as_deref(), Some("0"));
        assert_eq!(integer("30.5"), None);
        assert_eq!(integer("18446744073709551615").as_deref(), Some("18446744073709551615"));
        assert_eq!(integer("1e300"), None, "it could not be sent as an integer");
        assert_eq!(integer("123456789012345678901234567890"), None);
    }

    #[test]
    fn large_integers_compare_exactly() {
        let number = |text: &str| parse(text).unwrap();
        assert_eq!(compare(&number("9007199254740993"), &number("9007199254740992")), Ordering::Greater);
        assert_eq!(compare(&number("-1"), &number("18446744073709551615")), Ordering::Less);
        assert_eq!(compare(&number("0.5"), &number("1")), Ordering::Less);
    }

    proptest! {
        #[test]
        fn every_number_that_json_writes_is_read(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(parse(&text).and_then(|n| n.as_f64()), Some(value));
        }

        #[test]
        fn only_what_json_reads_is_read(text in "[-+0-9.eE x]{0,8}") {
            if let Some(number) = parse(&text) {
                prop_assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
            }
        }
    }
}
