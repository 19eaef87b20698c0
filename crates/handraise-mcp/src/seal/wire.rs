//! The layout of payloads: fields in a fixed order, texts after their length.

use super::Fault;

/// Writes fields.
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.bytes.extend(number.to_be_bytes());
    }

    /// Bytes whose length is known to the reader, or that end the payload.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Texts stay below 4 GiB, as every frame does.
    pub(super) fn text(&mut self, text: &str) {
        self.bytes.extend((text.len() as u32).to_be_bytes());
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn optional(&mut self, text: Option<&str>) {
        self.byte(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads fields back. Where there is no such field, the payload is malformed.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (array, rest) = self.rest.split_first_chunk::<N>().ok_or(Fault::Malformed)?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Fault> {
        let length = u32::from_be_bytes(self.array()?) as usize;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Fault::Malformed)?;
        self.rest = rest;
        std::str::from_utf8(text).map_err(|_| Fault::Malformed)
    }

    pub(super) fn optional(&mut self) -> Result<Option<&'a str>, Fault> {
        match self.byte()? {
            0 => Ok(None),
            1 => self.text().map(Some),
            _ => Err(Fault::Malformed),
        }
    }

    /// Everything that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}
