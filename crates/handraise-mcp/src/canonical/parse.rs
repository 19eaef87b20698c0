//! One pass over JSON text that writes it canonically.

use std::cmp::Ordering;
use std::ops::Range;

use super::{Dialect, MAX_DEPTH, Unbindable, number};

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    out: String,
    dialect: Dialect,
    /// The members of the objects that are open, innermost last.
    members: Vec<Member>,
    /// Where an object's members are put in order.
    scratch: String,
}

/// One member as it stands in the output.
#[derive(Clone)]
struct Member {
    /// The key between its quotes, escaped.
    key: Range<usize>,
    /// Key, colon and value.
    whole: Range<usize>,
    is_omitted: bool,
    /// Whether the order of the key's bytes is that of its code units.
    is_plain: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect) -> Self {
        let out = String::with_capacity(text.len());
        Self { text, at: 0, out, dialect, members: Vec::new(), scratch: String::new() }
    }

    pub(super) fn document(mut self, omit: Option<&str>) -> Result<String, Unbindable> {
        self.space();
        self.value(MAX_DEPTH, omit)?;
        self.space();
        if self.at == self.text.len() { Ok(self.out) } else { Err(Unbindable::Malformed) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), Unbindable> {
        if !self.text[self.at..].starts_with(token) {
            return Err(Unbindable::Malformed);
        }
        self.at += token.len();
        Ok(())
    }

    /// Whether the next token, after space, is that character; it is taken then.
    fn takes(&mut self, token: u8) -> bool {
        self.space();
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    /// `depth` is how many levels this value may have.
    fn value(&mut self, depth: usize, omit: Option<&str>) -> Result<(), Unbindable> {
        match self.peek().ok_or(Unbindable::Malformed)? {
            b'{' => self.object(depth.checked_sub(1).ok_or(Unbindable::TooDeep)?, omit),
            b'[' => self.array(depth.checked_sub(1).ok_or(Unbindable::TooDeep)?),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => Err(Unbindable::Malformed),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Unbindable> {
        self.expect(word)?;
        self.out.push_str(word);
        Ok(())
    }

    fn number(&mut self) -> Result<(), Unbindable> {
        let length = number::length(&self.text[self.at..]).ok_or(Unbindable::Malformed)?;
        let source = &self.text[self.at..self.at + length];
        self.at += length;
        number::write(source, &mut self.out)
    }

    fn array(&mut self, depth: usize) -> Result<(), Unbindable> {
        self.at += 1;
        self.out.push('[');
        if !self.takes(b']') {
            loop {
                self.space();
                self.value(depth, None)?;
                if self.takes(b']') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(Unbindable::Malformed);
                }
                self.out.push(',');
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn object(&mut self, depth: usize, omit: Option<&str>) -> Result<(), Unbindable> {
        self.at += 1;
        let first = self.members.len();
        let start = self.out.len();
        self.out.push('{');
        if !self.takes(b'}') {
            loop {
                self.space();
                let from = self.out.len();
                let key = self.key()?;
                let is_omitted = omit.is_some_and(|omit| self.is_key(key.clone(), omit));
                if !self.takes(b':') {
                    return Err(Unbindable::Malformed);
                }
                self.space();
                self.out.push(':');
                self.value(depth, None)?;
                let is_plain = self.out[key.clone()].bytes().all(|byte| byte != b'\\' && byte < 0xee);
                self.members.push(Member { key, whole: from..self.out.len(), is_omitted, is_plain });
                if self.takes(b'}') {
                    break;
                }
                if !self.takes(b',') {
                    return Err(Unbindable::Malformed);
                }
                self.out.push(',');
            }
        }
        self.close(first, start)
    }

    /// Writes the object's members again, unless they stand in their order and none is omitted.
    fn close(&mut self, first: usize, start: usize) -> Result<(), Unbindable> {
        let Self { out, members, scratch, .. } = self;
        let own = &mut members[first..];
        let key = |member: &Member| &out[member.key.clone()];
        if !own.is_sorted_by(|a, b| order(a, b, key).is_lt()) {
            own.sort_unstable_by(|a, b| order(a, b, key));
            if own.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
                return Err(Unbindable::DuplicateKey);
            }
        } else if own.iter().all(|member| !member.is_omitted) {
            out.push('}');
            members.truncate(first);
            return Ok(());
        }
        scratch.clear();
        scratch.push('{');
        for member in own.iter().filter(|member| !member.is_omitted) {
            if scratch.len() > 1 {
                scratch.push(',');
            }
            scratch.push_str(&out[member.whole.clone()]);
        }
        scratch.push('}');
        out.truncate(start);
        out.push_str(scratch);
        members.truncate(first);
        Ok(())
    }

    /// Whether the key that stands there in the output is that name.
    fn is_key(&self, key: Range<usize>, name: &str) -> bool {
        let mut written = String::with_capacity(name.len() + 2);
        self.dollar(name.starts_with('$'), &mut written);
        name.chars().for_each(|c| escape(c, &mut written));
        self.out[key] == written
    }

    fn dollar(&self, is_dollar: bool, out: &mut String) {
        if is_dollar && self.dialect == Dialect::DoubledDollar {
            out.push('$');
        }
    }

    /// Writes a key; returns where it stands between its quotes.
    fn key(&mut self) -> Result<Range<usize>, Unbindable> {
        let from = self.out.len() + 1;
        self.string()?;
        let is_dollar = self.out[from..].starts_with('$');
        if is_dollar && self.dialect == Dialect::DoubledDollar {
            self.out.insert(from, '$');
        }
        Ok(from..self.out.len() - 1)
    }

    fn string(&mut self) -> Result<(), Unbindable> {
        self.expect("\"")?;
        self.out.push('"');
        loop {
            let rest = &self.text[self.at..];
            let special = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let special = special.ok_or(Unbindable::Malformed)?;
            self.out.push_str(&rest[..special]);
            self.at += special;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.out.push('"');
                    return Ok(());
                }
                Some(b'\\') => {
                    let character = self.escaped()?;
                    escape(character, &mut self.out);
                }
                _ => return Err(Unbindable::Malformed),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, Unbindable> {
        let letter = self.text.as_bytes().get(self.at + 1).ok_or(Unbindable::Malformed)?;
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_unit(),
            _ => return Err(Unbindable::Malformed),
        };
        self.at += 2;
        Ok(plain)
    }

    /// A `\u` escape, or two of them that make a pair.
    fn code_unit(&mut self) -> Result<char, Unbindable> {
        let high = self.hex()?;
        if !(0xd800..0xe000).contains(&high) {
            return char::from_u32(high).ok_or(Unbindable::Malformed);
        }
        if high >= 0xdc00 || !self.text[self.at..].starts_with("\\u") {
            return Err(Unbindable::UnpairedSurrogate);
        }
        let low = self.hex()?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(Unbindable::UnpairedSurrogate);
        }
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or(Unbindable::Malformed)
    }

    fn hex(&mut self) -> Result<u32, Unbindable> {
        let digits = self.text.as_bytes().get(self.at + 2..self.at + 6).ok_or(Unbindable::Malformed)?;
        let value = digits.iter().try_fold(0, |value, digit| {
            char::from(*digit).to_digit(16).map(|digit| value << 4 | digit).ok_or(Unbindable::Malformed)
        })?;
        self.at += 6;
        Ok(value)
    }
}

/// The order of two members by the UTF-16 code units of their keys.
fn order<'a>(a: &Member, b: &Member, key: impl Fn(&Member) -> &'a str) -> Ordering {
    // UTF-8 has the order of code points, which differs from that of UTF-16 above U+D7FF only.
    if a.is_plain && b.is_plain { key(a).cmp(key(b)) } else { units(key(a)).cmp(units(key(b))) }
}

/// The code units of a key that is written in its canonical form.
fn units(key: &str) -> impl Iterator<Item = u16> {
    let mut characters = key.chars();
    let unescaped = std::iter::from_fn(move || {
        let character = characters.next()?;
        if character != '\\' {
            return Some(character);
        }
        Some(match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let code = characters
                    .by_ref()
                    .take(4)
                    .fold(0, |code, digit| code << 4 | digit.to_digit(16).unwrap_or(0));
                char::from_u32(code).unwrap_or('\u{0}')
            }
            itself => itself,
        })
    });
    unescaped.flat_map(|character| {
        let mut pair = [0; 2];
        let length = character.encode_utf16(&mut pair).len();
        pair.into_iter().take(length)
    })
}

/// A character inside a string, as `JSON.stringify` writes it.
fn escape(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{0}'..='\u{1f}' => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let code = character as usize;
            out.push_str("\\u00");
            out.push(char::from(DIGITS[code >> 4]));
            out.push(char::from(DIGITS[code & 15]));
        }
        _ => out.push(character),
    }
}
