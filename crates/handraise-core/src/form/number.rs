//! Numbers as people type them: JSON's syntax, strictly; integers exactly or not at all.

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

/// Why a text is no answer to an `integer` question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoInteger {
    /// Not JSON's grammar, or not finite.
    Syntax,
    /// It has a fraction.
    Fraction,
    /// Whole, but more than 64 bits hold.
    TooLarge,
}

/// Reads a number for an `integer` question by its digits, so that nothing is rounded: `30.0` and `3e1` are 30.
pub(super) fn parse_integer(text: &str) -> Result<Number, NoInteger> {
    parse(text).ok_or(NoInteger::Syntax)?;
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Ok(Number::from(0));
    }
    // An exponent that no i64 holds is far below zero: otherwise the number were not finite.
    let point =
        exponent.parse::<i64>().ok().and_then(|exponent| exponent.checked_add_unsigned(whole.len() as u64));
    let zeros = point.and_then(|point| usize::try_from(point).ok()?.checked_sub(significant.len()));
    let zeros = zeros.ok_or(NoInteger::Fraction)?;
    // 64 bits have at most 20 digits.
    let exact = [sign, significant, &"0".repeat(zeros.min(20))].concat();
    let number = exact.parse::<i64>().map(Number::from);
    number.or_else(|_| exact.parse::<u64>().map(Number::from)).map_err(|_| NoInteger::TooLarge)
}

/// A JSON number as an integer, if it has no fraction and is exact.
pub(super) fn to_integer(number: &Number) -> Option<Number> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone());
    }
    let value = number.as_f64()?;
    // From 2^53 on a float may stand for its neighbours.
    (value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0).then(|| {
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
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    integer.or_else(|| {
        let value = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "checked to be an integer that fits")]
        (value.fract() == 0.0 && value.abs() < 1e30).then_some(value as i128)
    })
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
        for text in ["30", "30.0", "3e1", "3E+1", "0.3e2", "300e-1", "30.000e0"] {
            assert_eq!(parse_integer(text), Ok(30.into()), "{text}");
        }
        for text in ["0", "-0", "-0.0", "0e999", "0e-99999999999999999999"] {
            assert_eq!(parse_integer(text), Ok(0.into()), "{text}");
        }
        for text in ["30.5", "1e-1", "1e-400", "5e-99999999999999999999", "30.00000000000000000001"] {
            assert_eq!(parse_integer(text), Err(NoInteger::Fraction), "{text}");
        }
        assert_eq!(parse_integer("30x"), Err(NoInteger::Syntax));
    }

    #[test]
    fn f10_an_integer_is_exact_or_refused() {
        for text in ["9007199254740993", "-9223372036854775808", "18446744073709551615"] {
            let exactly = parse_integer(text).unwrap();
            assert_eq!(exactly.to_string(), text);
            assert_eq!(parse_integer(&format!("{text}.0")), Ok(exactly));
        }
        assert_eq!(parse_integer("9007199254740991.4"), Err(NoInteger::Fraction));
        for text in ["18446744073709551616", "-9223372036854775809", "1e20", "1e300"] {
            assert_eq!(parse_integer(text), Err(NoInteger::TooLarge), "{text}");
        }
    }

    #[test]
    fn large_integers_compare_exactly() {
        let number = |text: &str| parse(text).unwrap();
        assert_eq!(compare(&number("9007199254740993"), &number("9007199254740992")), Ordering::Greater);
        assert_eq!(compare(&number("-1"), &number("18446744073709551615")), Ordering::Less);
        assert_eq!(compare(&number("9007199254740993"), &number("9007199254740992.0")), Ordering::Greater);
        assert_eq!(compare(&number("18446744073709551615"), &number("18446744073709551616")), Ordering::Less);
        assert_eq!(compare(&number("0.5"), &number("1")), Ordering::Less);
        assert_eq!(compare(&number("-1e308"), &number("-1")), Ordering::Less);
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
