//! Words that may stand in JSON with some of their characters escaped.
//!
//! Letters, digits and `_` can be hidden in one way alone, as `\u00` and two digits. So a text that has neither the word
//! itself nor such an escape of one of its characters does not say the word, and nobody has to read it. Serialisers
//! escape none of those characters by themselves, which makes a false alarm rare.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The beginning of every escape that can stand for a character below U+0100.
const ESCAPE: &[u8] = br"\u00";

/// After so many escapes of other characters, those that matter are looked for by one digit more: texts in which every
/// accent is escaped cost no more than others.
const MANY: usize = 64;

static ESCAPES: LazyLock<Escapes> = LazyLock::new(Escapes::new);

/// A set of ASCII characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Characters(u128);

impl Characters {
    /// The ASCII characters among `characters`.
    pub(crate) fn of(characters: impl IntoIterator<Item = u8>) -> Self {
        Self(characters.into_iter().filter(u8::is_ascii).fold(0, |set, byte| set | 1 << byte))
    }

    /// Those of both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 >> byte & 1 == 1
    }

    /// Whether an escape that begins with this digit can stand for one of them.
    fn has_row(self, row: usize) -> bool {
        self.0 >> (16 * row) & 0xffff != 0
    }

    /// Whether one of them stands escaped in `bytes`. False is certain.
    pub(crate) fn are_escaped_in(self, bytes: &[u8]) -> bool {
        let escapes = &*ESCAPES;
        let mut others = 0;
        for at in escapes.any.find_iter(bytes) {
            if is_escape_of(self, bytes, at) {
                return true;
            }
            others += 1;
            if others == MANY {
                let rest = &bytes[at..];
                let mut rows = escapes.rows.iter().enumerate().filter(|(row, _)| self.has_row(*row));
                return rows.any(|(_, row)| row.find_iter(rest).any(|at| is_escape_of(self, rest, at)));
            }
        }
        false
    }
}

/// Finds escapes.
struct Escapes {
    any: Finder<'static>,
    /// By the first of the two digits; ASCII ends with the seventh row.
    rows: [Finder<'static>; 8],
}

impl Escapes {
    fn new() -> Self {
        let row = |row: usize| Finder::new(&[ESCAPE, &[b"01234567"[row]]].concat()).into_owned();
        Self { any: Finder::new(ESCAPE), rows: std::array::from_fn(row) }
    }
}

fn is_escape_of(characters: Characters, bytes: &[u8], at: usize) -> bool {
    let digits = bytes.get(at + ESCAPE.len()..at + ESCAPE.len() + 2);
    digits.and_then(hex).is_some_and(|byte| characters.has(byte))
}

fn hex(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0, |value: u8, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | u8::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_escape_is_found_behind_any_number_of_others() {
        let wanted = Characters::of(*b"input_required");
        for count in [0, 1, MANY - 1, MANY, MANY + 1, 10 * MANY] {
            let others = r"\u00e9\u001b\u003c\u0041\u00zz\u00".repeat(count);
            assert!(!wanted.are_escaped_in(others.as_bytes()), "{count}");
            for escape in [r"\u0069", r"\u005f", r"\u005F", r"\u0072"] {
                for text in [
                    format!("{others}{escape}"),
                    format!("{escape}{others}"),
                    format!("{others}{escape}{others}"),
                ] {
                    assert!(wanted.are_escaped_in(text.as_bytes()), "{count} {escape}");
                }
            }
        }
    }

    #[test]
    fn sets_hold_ascii_alone() {
        let set = Characters::of([0, b'a', 0x7f, 0x80, 0xff]);
        assert_eq!((0..=255).filter(|byte| set.has(*byte)).collect::<Vec<_>>(), [0, b'a', 0x7f]);
        assert!(!set.are_escaped_in(br"\u0080\u00ff"));
        assert!(set.and(Characters::of(*b"b")).are_escaped_in(br"\u0062"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_found_is_what_a_naive_search_finds(text in r"(\\u00[0-9a-fA-Fz]{2}|\\|u|0|x){0,100}", letters in "[a-z_]{1,8}") {
            let wanted = Characters::of(letters.bytes());
            let naive = letters.chars().any(|letter| {
                let escape = format!(r"\u{:04x}", u32::from(letter));
                text.to_lowercase().contains(&escape)
            });
            prop_assert_eq!(wanted.are_escaped_in(text.as_bytes()), naive);
        }
    }
}
