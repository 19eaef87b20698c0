//! A number's text as a decimal value, compared exactly.

use std::ops::Range;

/// How many digits a double holds whatever they are: two decimals of so many digits are never one double.
const SURE_DIGITS: usize = 15;

/// A decimal value: `±0.digits × 10^exponent`, with no zeros at either end of the digits. Two texts of one value are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    pub(super) is_negative: bool,
    digits: Digits<'a>,
    exponent: i128,
}

/// The digits of a number around its point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digits<'a> {
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
}

impl Digits<'_> {
    pub(super) fn len(self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    fn iter(self) -> impl Iterator<Item = u8> {
        self.whole.bytes().chain(self.fraction.bytes())
    }

    /// Writes some of the digits, as far as there are any.
    pub(super) fn write(self, range: Range<usize>, out: &mut String) {
        let whole = self.whole.len();
        let part = |text: &str, from: usize, to: usize| {
            let to = to.min(text.len());
            from.min(to)..to
        };
        out.push_str(&self.whole[part(self.whole, range.start, range.end)]);
        let (from, to) = (range.start.saturating_sub(whole), range.end.saturating_sub(whole));
        out.push_str(&self.fraction[part(self.fraction, from, to)]);
    }
}

impl PartialEq for Digits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Digits<'_> {}

impl<'a> Decimal<'a> {
    /// The value of a JSON number.
    pub(super) fn of(number: &'a str) -> Self {
        let is_negative = number.starts_with('-');
        let unsigned = number.trim_start_matches('-');
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        // With an empty whole part, zeros after the point lower the exponent; with an empty fraction, zeros before it do
        // not count as digits.
        let leading =
            if whole.is_empty() { fraction.len() - fraction.trim_start_matches('0').len() } else { 0 };
        let digits = Digits {
            whole: if fraction.is_empty() { whole.trim_end_matches('0') } else { whole },
            fraction: &fraction[leading..],
        };
        if digits.iter().next().is_none() {
            return Self { is_negative: false, digits, exponent: 0 };
        }
        let place = whole.len() as i128 - leading as i128;
        Self { is_negative, digits, exponent: place + read_exponent(exponent) }
    }

    /// The digits, and how many of them stand before the point, where a double certainly holds the value: then these are
    /// also the shortest digits that read back as it.
    pub(super) fn short(&self) -> Option<(Digits<'a>, i32)> {
        let n = i32::try_from(self.exponent).ok().filter(|n| (-300..=300).contains(n))?;
        let count = self.digits.len();
        if count == 0 {
            return Some((Digits { whole: "0", fraction: "" }, 1));
        }
        (count <= SURE_DIGITS).then_some((self.digits, n))
    }
}

/// An exponent's value; beyond any that a double has, only its direction matters.
fn read_exponent(text: &str) -> i128 {
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    let size = if digits.is_empty() { 0 } else { digits.parse::<u64>().map_or(i128::MAX / 4, i128::from) };
    if text.starts_with('-') { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_value_are_equal() {
        for (one, two) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("100", "1E+2"),
            ("0.001", "1e-3"),
            ("12.50", "1250e-2"),
            ("-0", "0.000e99999999999999999999999999"),
            ("1200000000000000000000", "1.2e+21"),
            ("0.1e1", "1"),
        ] {
            assert_eq!(Decimal::of(one), Decimal::of(two), "{one} {two}");
        }
    }

    #[test]
    fn other_values_are_not() {
        for (one, two) in [
            ("1", "-1"),
            ("1", "10"),
            ("1.01", "1.1"),
            ("101", "11"),
            ("9007199254740993", "9007199254740992"),
            ("1e99999999999999999999999999", "1e-99999999999999999999999999"),
            ("0.1", "0.01"),
        ] {
            assert_ne!(Decimal::of(one), Decimal::of(two), "{one} {two}");
        }
    }
}
