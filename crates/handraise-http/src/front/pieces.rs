//! A frame on its way out: one piece, or a few around what was replaced, so that large frames are not copied.

use bytes::Bytes;

/// What is copied rather than sent in pieces, in bytes.
const SMALL: usize = 16 * 1024;

/// A text as it came: a part of memory that can be held, or of a buffer that the next read goes into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came<'a> {
    bytes: &'a [u8],
    held: Option<&'a Bytes>,
}

impl<'a> Came<'a> {
    /// A text in memory of its own.
    pub(crate) fn own(bytes: &'a Bytes) -> Self {
        Self { bytes, held: Some(bytes) }
    }

    /// A text that has to be copied to be kept.
    pub(crate) fn lent(bytes: &'a [u8]) -> Self {
        Self { bytes, held: None }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// A part of it.
    pub(crate) fn part(self, at: std::ops::Range<usize>) -> Self {
        Self { bytes: &self.bytes[at], held: self.held }
    }

    /// The text, to be kept.
    pub(crate) fn to_bytes(self) -> Bytes {
        self.held.map_or_else(|| Bytes::copy_from_slice(self.bytes), |held| held.slice_ref(self.bytes))
    }
}

/// A text in order, in at most three pieces.
#[derive(Debug, Clone)]
pub(crate) struct Pieces([Bytes; 3]);

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        Self([bytes, Bytes::new(), Bytes::new()])
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl Pieces {
    /// `before`, `middle` and `after`, one behind the other.
    pub(crate) fn join(before: &[u8], middle: Bytes, after: &[u8]) -> Self {
        if middle.len() > SMALL {
            return Self([Bytes::copy_from_slice(before), middle, Bytes::copy_from_slice(after)]);
        }
        [before, &middle, after].concat().into()
    }

    /// A frame with what stands at `at` replaced.
    pub(crate) fn replaced(frame: &Bytes, at: std::ops::Range<usize>, text: &[u8]) -> Self {
        if frame.len() > SMALL {
            let text = Bytes::copy_from_slice(text);
            return Self([frame.slice(..at.start), text, frame.slice(at.end..)]);
        }
        [&frame[..at.start], text, &frame[at.end..]].concat().into()
    }

    /// The pieces, some of which may be empty.
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        [&self.0[0], &self.0[1], &self.0[2]]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// All of it in one, copied unless it is one already.
    pub(crate) fn whole(&self) -> Bytes {
        let [first, second, third] = &self.0;
        if second.is_empty() && third.is_empty() {
            return first.clone();
        }
        [&first[..], second, third].concat().into()
    }

    /// The pieces that are not empty.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Bytes> {
        self.0.into_iter().filter(|piece| !piece.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_whether_they_are_copied_or_not() {
        for length in [0, 10, SMALL, SMALL + 1, 3 * SMALL] {
            let frame = Bytes::from("x".repeat(length) + "[1]" + &"y".repeat(length));
            let replaced = Pieces::replaced(&frame, length + 1..length + 2, b"\"two\"");
            let expected = "x".repeat(length) + "[\"two\"]" + &"y".repeat(length);
            assert_eq!(replaced.whole(), expected.as_bytes());
            assert_eq!(replaced.len(), expected.len());
            assert_eq!(replaced.into_iter().collect::<Vec<_>>().concat(), expected.as_bytes());
            let joined = Pieces::join(b"data: ", frame.clone(), b"\n\n");
            assert_eq!(joined.whole(), [b"data: ", &frame[..], b"\n\n"].concat());
        }
    }
}
