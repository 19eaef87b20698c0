//! A strict JSON scanner: where values end, in one pass, without a tree.
//!
//! It is a security boundary (S3), so it accepts exactly the texts that RFC 8259 calls JSON, as UTF-8, and nothing
//! else: property tests hold it against `serde_json`. Nesting costs one bit a level, not a stack frame.

use std::borrow::Cow;
use std::ops::Range;

/// The text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

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
        String::from_utf8_lossy(self.inner())
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

/// Reads JSON from the front of a text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How far the scanner has read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Skips white space.
    pub(crate) fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte`, or fails.
    pub(crate) fn take(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(NotJson)
    }

    /// Takes `byte` if it comes next.
    pub(crate) fn take_if(&mut self, byte: u8) -> bool {
        self.take(byte).is_ok()
    }

    /// Whether only white space is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.space();
        self.at == self.bytes.len()
    }

    /// Reads a string.
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

    /// Reads a key and its colon, up to the value.
    pub(crate) fn key(&mut self) -> Result<Quoted<'a>, NotJson> {
        let key = self.string()?;
        self.space();
        self.take(b':')?;
        self.space();
        Ok(key)
    }

    /// Reads an object. `each` is given every key with where it begins, and reads the value.
    pub(crate) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Quoted<'a>, usize) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        self.take(b'{')?;
        self.space();
        if self.take_if(b'}') {
            return Ok(());
        }
        loop {
            let start = self.at;
            let key = self.key()?;
            each(self, key, start)?;
            self.space();
            if self.take_if(b',') {
                self.space();
                continue;
            }
            return self.take(b'}');
        }
    }

    /// Reads an array. `each` is given where every element stands.
    pub(crate) fn array(&mut self, mut each: impl FnMut(Range<usize>)) -> Result<(), NotJson> {
        self.take(b'[')?;
        self.space();
        if self.take_if(b']') {
            return Ok(());
        }
        loop {
            each(self.value()?);
            self.space();
            if self.take_if(b',') {
                self.space();
                continue;
            }
            return self.take(b']');
        }
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Result<(), NotJson> {
        self.take_if(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(NotJson),
        }
        if self.take_if(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(NotJson) } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), NotJson> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(NotJson)
    }

    /// Reads a value of any kind; it returns where the value stands.
    pub(crate) fn value(&mut self) -> Result<Range<usize>, NotJson> {
        let start = self.at;
        let mut nesting = Nesting::default();
        loop {
            match self.peek() {
                Some(b'"') => drop(self.string()?),
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if !self.take_if(b'}') {
                        self.key()?;
                        nesting.push(true);
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if !self.take_if(b']') {
                        nesting.push(false);
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => return Err(NotJson),
            }
            // A value has ended, and with it perhaps what it stands in.
            loop {
                let Some(in_object) = nesting.innermost() else { return Ok(start..self.at) };
                self.space();
                if self.take_if(b',') {
                    self.space();
                    if in_object {
                        self.key()?;
                    }
                    break;
                }
                self.take(if in_object { b'}' } else { b']' })?;
                nesting.pop();
            }
        }
    }
}

/// One bit a level: whether it is an object.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The innermost levels, of which there are 1 to 64 when there is any level.
    near: u64,
    /// Full words of the levels around them.
    far: Vec<u64>,
}

impl Nesting {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = self.near << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn innermost(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.near & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.near >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.near = self.far.pop().unwrap_or_default();
        }
    }
}

/// How many bytes at the front of `bytes` stand for themselves in a string. `is_wide` becomes true when one of them is
/// not ASCII.
fn plain_run(bytes: &[u8], is_wide: &mut bool) -> usize {
    let mut at = 0;
    // Most strings are short: one word first, then blocks that the compiler turns into vector code.
    let (words, _) = bytes.as_chunks::<8>();
    for word in words.iter().take(2) {
        let (plain, wide) = plain_in_word(*word);
        *is_wide |= wide;
        at += plain;
        if plain < 8 {
            return at;
        }
    }
    let (blocks, _) = bytes[at..].as_chunks::<64>();
    for block in blocks {
        let mut special = false;
        let mut all = 0_u8;
        for &byte in block {
            // The quote is 0x22: with one bit turned, it joins the control characters.
            special |= byte ^ 2 < 0x21 || byte == b'\\';
            all |= byte;
        }
        if special {
            break;
        }
        *is_wide |= all >= 0x80;
        at += 64;
    }
    let (words, rest) = bytes[at..].as_chunks::<8>();
    for word in words {
        let (plain, wide) = plain_in_word(*word);
        *is_wide |= wide;
        at += plain;
        if plain < 8 {
            return at;
        }
    }
    for &byte in rest {
        if byte < 0x20 || byte == b'"' || byte == b'\\' {
            return at;
        }
        *is_wide |= byte >= 0x80;
        at += 1;
    }
    at
}

/// How many of eight bytes come before the first quote, backslash or control character, and whether one of those is
/// not ASCII.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

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
}
