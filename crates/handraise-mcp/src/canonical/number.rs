//! Numbers as ECMA-262 writes them.

use std::fmt::Write;

use super::Unbindable;
use super::decimal::{Decimal, Digits};

/// How many bytes of the text are a JSON number; nothing when it begins with none.
pub(super) fn length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// Writes a JSON number canonically.
///
/// # Errors
///
/// [`Unbindable::InexactNumber`] when what is written is another decimal value than the source.
pub(super) fn write(source: &str, out: &mut String) -> Result<(), Unbindable> {
    let decimal = Decimal::of(source);
    if let Some((digits, n)) = decimal.short() {
        if decimal.is_negative {
            out.push('-');
        }
        place(digits, n, out);
        return Ok(());
    }
    let value: f64 = source.parse().map_err(|_| Unbindable::Malformed)?;
    if !value.is_finite() {
        return Err(Unbindable::InexactNumber);
    }
    let from = out.len();
    ecma(value, out);
    if decimal == Decimal::of(&out[from..]) { Ok(()) } else { Err(Unbindable::InexactNumber) }
}

/// `Number::toString` of ECMA-262 for a finite number: the shortest digits that read back as it.
pub(super) fn ecma(value: f64, out: &mut String) {
    if value == 0.0 {
        out.push('0');
        return;
    }
    if value < 0.0 {
        out.push('-');
    }
    let scientific = shortest(value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    place(Digits { whole: first, fraction: rest }, exponent.parse::<i32>().unwrap_or_default() + 1, out);
}

/// The shortest digits that read back as the value, and of several the closest; of two that are equally close, the even
/// ones. The standard library's are the shortest, but it takes the upper ones of such a pair.
fn shortest(value: f64) -> String {
    let shortest = format!("{value:e}");
    let places = shortest.split('e').next().map_or(0, |mantissa| mantissa.len().saturating_sub(2));
    let even = format!("{value:.places$e}");
    // At a power of two, the closest digits of that length may belong to the next double below.
    if even.parse() == Ok(value) { even } else { shortest }
}

/// Places the point `n` digits after the first, as ECMA-262 does.
fn place(digits: Digits<'_>, n: i32, out: &mut String) {
    let count = digits.len();
    let after = usize::try_from(n).unwrap_or_default();
    if (1..=21).contains(&n) {
        digits.write(0..after, out);
        (count..after).for_each(|_| out.push('0'));
        if after < count {
            out.push('.');
            digits.write(after..count, out);
        }
    } else if (-5..=0).contains(&n) {
        out.push_str("0.");
        (n..0).for_each(|_| out.push('0'));
        digits.write(0..count, out);
    } else {
        digits.write(0..1, out);
        if count > 1 {
            out.push('.');
            digits.write(1..count, out);
        }
        // Writing to a String does not fail.
        let _ = write!(out, "e{}{}", if n > 0 { '+' } else { '-' }, (n - 1).abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8785, Appendix B: the bits of a double, and how it is written.
    const RFC8785: &[(u64, &str)] = &[
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];

    #[test]
    fn rfc8785_numbers_are_written_as_published() {
        for (bits, written) in RFC8785 {
            let mut out = String::new();
            ecma(f64::from_bits(*bits), &mut out);
            assert_eq!(out, *written, "{bits:016x}");
        }
    }

    #[test]
    fn only_a_json_number_is_one() {
        for (text, expected) in [
            ("0", Some(1)),
            ("-0", Some(2)),
            ("10.50e+3,", Some(8)),
            ("1E5]", Some(3)),
            ("01", None),
            ("-", None),
            ("1.", None),
            ("1.e3", None),
            ("1e", None),
            ("1e+", None),
            (".5", None),
            ("+1", None),
            ("-01", None),
        ] {
            assert_eq!(length(text), expected, "{text}");
        }
    }
}
