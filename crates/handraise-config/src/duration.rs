//! Durations as people write them: `250ms`, `55m`, `1h30m`.

use std::{fmt::Write as _, time::Duration};

/// The units, from the largest to the smallest, in milliseconds.
const UNITS: &[(&str, u64)] = &[("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// There is no unit.
    #[error("a duration needs a unit: write 250ms, 20s, 55m, 1h30m or 7d")]
    NoUnit,
    /// It is not made of whole numbers and units.
    #[error("a duration is whole numbers with the units d, h, m, s, ms, such as 55m or 1h30m")]
    Malformed,
    /// A unit stands after a smaller one, or twice.
    #[error("the units of a duration go from large to small, each once, such as 1h30m")]
    Order,
    /// It is longer than can be counted.
    #[error("a duration is at most 10000d")]
    TooLong,
}

/// The longest duration taken: 10,000 days.
const LONGEST_MS: u64 = 10_000 * 86_400_000;

/// Reads a duration: one or more whole numbers, each with a unit, units from large to small.
///
/// # Errors
/// When it is none; the error says how one is written.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut next_unit = 0;
    if rest.is_empty() {
        return Err(InvalidDuration::Malformed);
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(InvalidDuration::Malformed);
        }
        if after.is_empty() {
            return Err(InvalidDuration::NoUnit);
        }
        let letters = after.bytes().take_while(u8::is_ascii_lowercase).count();
        let (unit, after) = after.split_at(letters);
        let index = UNITS.iter().position(|(name, _)| *name == unit).ok_or(InvalidDuration::Malformed)?;
        if index < next_unit {
            return Err(InvalidDuration::Order);
        }
        next_unit = index + 1;
        let amount: u64 = number.parse().map_err(|_| InvalidDuration::TooLong)?;
        let millis = UNITS.get(index).and_then(|(_, size)| amount.checked_mul(*size));
        total = millis.and_then(|millis| total.checked_add(millis)).ok_or(InvalidDuration::TooLong)?;
        rest = after;
    }
    if total > LONGEST_MS { Err(InvalidDuration::TooLong) } else { Ok(Duration::from_millis(total)) }
}

/// Writes a duration as [`parse`] reads it; parts below a millisecond are dropped.
pub fn format(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (name, size) in UNITS {
        let amount = left / size;
        if amount > 0 {
            // Writing to a String does not fail.
            let _ = write!(text, "{amount}{name}");
            left %= size;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_the_contract_writes_them() {
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("55m"), Ok(Duration::from_secs(55 * 60)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(90 * 60)));
        assert_eq!(parse("1d2h3m4s5ms"), Ok(Duration::from_millis(93_784_005)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_says_how_one_is_written() {
        assert_eq!(parse(""), Err(InvalidDuration::Malformed));
        assert_eq!(parse("300"), Err(InvalidDuration::NoUnit));
        assert_eq!(parse("1h30"), Err(InvalidDuration::NoUnit));
        assert_eq!(parse("1.5h"), Err(InvalidDuration::Malformed));
        assert_eq!(parse("-5s"), Err(InvalidDuration::Malformed));
        assert_eq!(parse("5 s"), Err(InvalidDuration::Malformed));
        assert_eq!(parse("5S"), Err(InvalidDuration::Malformed));
        assert_eq!(parse("30m1h"), Err(InvalidDuration::Order));
        assert_eq!(parse("1h1h"), Err(InvalidDuration::Order));
        assert_eq!(parse("99999999999999999999h"), Err(InvalidDuration::TooLong));
        assert_eq!(parse("10001d"), Err(InvalidDuration::TooLong));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(millis in 0..=LONGEST_MS) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn any_text_is_a_duration_or_an_error(text in "\\PC{0,24}|[0-9dhms]{0,24}") {
            if let Ok(duration) = parse(&text) {
                prop_assert_eq!(parse(&format(duration)), Ok(duration));
            }
        }
    }
}
