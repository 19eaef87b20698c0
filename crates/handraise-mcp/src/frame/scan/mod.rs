//! A strict JSON scanner: where values end, in one pass, without a tree.
//!
//! It is a security boundary (S3), so it accepts exactly the texts that RFC 8259 calls JSON, as UTF-8, and nothing
//! else: property tests hold it against `serde_json`. Nesting costs one bit a level, not a stack frame.

mod nesting;
mod string;
#[cfg(test)]
mod tests;

use std::ops::Range;

use nesting::Nesting;
pub(crate) use string::Quoted;

/// The text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// Reads JSON from the front of a text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    has_line_breaks: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, has_line_breaks: false }
    }

    /// Whether a carriage return or a line feed stands in what was read. In JSON it is white space between tokens.
    pub(crate) fn has_line_breaks(&self) -> bool {
        self.has_line_breaks
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
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.has_line_breaks |= matches!(byte, b'\r' | b'\n');
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
