//! Strings: where they end, and what they mean.
//!
//! What is read of every frame is `inline`: the scanner that calls it may be compiled apart from this.

use std::borrow::Cow;

use super::{NotJson, Scanner};

/// A string as it stands in the text, quotes included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quoted<'a> {
    raw: &'a [u8],
    is_escaped: bool,
}

impl<'a> Quoted<'a> {
    /// What stands between the quotes.
    pub(crate) fn inner(self) -> &'a [u8] {
        &self.raw[1..self.raw.len() - 1]
    }

    /// The string that this text means. An unpaired surrogate becomes U+FFFD.
    pub(crate) fn text(self) -> Cow<'a, str> {
        if self.is_escaped {
            return Cow::Owned(unescape(self.inner()));
        }
        // It has been scanned: it is UTF-8.
        std::str::from_utf8(self.inner())
            .map_or_else(|_| String::from_utf8_lossy(self.inner()), Cow::Borrowed)
    }

    /// Whether the string is exactly `text`.
    pub(crate) fn is(self, text: &str) -> bool {
        if self.is_escaped { self.text() == text } else { self.inner() == text.as_bytes() }
    }

    /// The string with its quotes, as it stands.
    pub(crate) fn raw(self) -> &'a [u8] {
        self.raw
    }

    pub(crate) fn is_escaped(self) -> bool {
        self.is_escaped
    }
}

impl<'a> Scanner<'a> {
    /// Reads a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, NotJson> {
        let start = self.at;
        self.take(b'"')?;
        let mut is_escaped = false;
        let mut is_wide = false;
        loop {
            self.at += plain_run(&self.bytes[self.at..], &mut is_wide);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    self.escape()?;
                }
                _ => return Err(NotJson),
            }
        }
        self.at += 1;
        let raw = self.since(start);
        if is_wide && std::str::from_utf8(raw).is_err() {
            return Err(NotJson);
        }
        Ok(Quoted { raw, is_escaped })
    }

    #[inline]
    fn escape(&mut self) -> Result<(), NotJson> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).ok_or(NotJson)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(NotJson);
                }
                self.at += 6;
            }
            _ => return Err(NotJson),
        }
        Ok(())
    }
}

/// How many bytes at the front of `bytes` stand for themselves in a string. `is_wide` becomes true when one of them is
/// not ASCII.
#[inline]
pub(super) fn plain_run(bytes: &[u8], is_wide: &mut bool) -> usize {
    let mut at = 0;
    // Most strings are short: words first.
    let (words, _) = bytes.as_chunks::<8>();
    for word in words.iter().take(2) {
        let (plain, wide) = plain_in_word(*word);
        *is_wide |= wide;
        at += plain;
        if plain < 8 {
            return at;
        }
    }
    // Two passes, each of which is vector code, take half as long as one that tests for everything.
    let rest = &bytes[at..];
    let run = &rest[..memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())];
    let (mut least, mut all) = (u8::MAX, 0);
    for &byte in run {
        least = least.min(byte);
        all |= byte;
    }
    if least < 0x20 {
        let plain = run.iter().take_while(|byte| **byte >= 0x20).count();
        *is_wide |= !run[..plain].is_ascii();
        return at + plain;
    }
    *is_wide |= all >= 0x80;
    at + run.len()
}

/// How many of eight bytes come before the first quote, backslash or control character, and whether one of those is
/// not ASCII.
#[inline]
fn plain_in_word(word: [u8; 8]) -> (usize, bool) {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // The lowest bit that each test raises is exact: a borrow only spoils bytes above a true hit.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH;
    let special = below(word, 0x20)
        | below(word ^ (ONES * u64::from(b'"')), 1)
        | below(word ^ (ONES * u64::from(b'\\')), 1);
    let plain = (special.trailing_zeros() / 8) as usize;
    let kept = if plain == 8 { word } else { word & ((1 << (8 * plain)) - 1) };
    (plain, kept & HIGH != 0)
}

/// What an escaped string means. Its text has been scanned; an unpaired surrogate becomes U+FFFD.
fn unescape(inner: &[u8]) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        if !plain.is_empty() {
            flush(&mut units, &mut text);
            text.push_str(&String::from_utf8_lossy(plain));
        }
        let (unit, length) = match escape.get(1) {
            Some(b'u') => {
                let digits = escape.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok());
                (digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0xfffd), 6)
            }
            Some(b'b') => (0x08, 2),
            Some(b'f') => (0x0c, 2),
            Some(b'n') => (0x0a, 2),
            Some(b'r') => (0x0d, 2),
            Some(b't') => (0x09, 2),
            Some(&itself) => (u16::from(itself), 2),
            None => break,
        };
        units.push(unit);
        rest = escape.get(length..).unwrap_or_default();
    }
    flush(&mut units, &mut text);
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

fn flush(units: &mut Vec<u16>, text: &mut String) {
    text.extend(char::decode_utf16(units.drain(..)).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
}
