//! Lines of a pipe, with a limit on what is held.

use std::{borrow::Cow, fmt, io, mem, str::Utf8Error};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest protocol line that is taken, in bytes without its end (acp.md, "Agent life").
pub const MAX_PROTOCOL_LINE: usize = 64 * 1024 * 1024;

const CHUNK: usize = 64 * 1024;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Reads a byte stream line by line and never holds more than the limit and one chunk.
///
/// A line ends with LF or CR LF, or with the stream: an unterminated last line counts. Lines that are empty, or
/// hold only a CR, are skipped. A UTF-8 byte order mark at the start of a line is dropped: some programs write one
/// and no JSON text may begin with it. Everything else is handed out as it came, NUL bytes and invalid UTF-8
/// included; [`Line::text`] is where text is checked.
///
/// Reading is cancel-safe: a dropped [`next`](Lines::next) loses nothing.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    limit: usize,
    overlong: Overlong,
    line: Vec<u8>,
    chunk: Box<[u8]>,
    /// What of the chunk has been read from the stream but is in no line yet.
    unread: std::ops::Range<usize>,
    ended: bool,
}

/// What happens to a line that is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    Fail,
    Split,
}

/// One line, without its end.
#[derive(Clone, PartialEq, Eq)]
pub struct Line(Vec<u8>);

/// Why no further line comes.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The other side sent a line beyond the limit. Nothing after it can be trusted to be a line of its own.
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Reading failed.
    #[error("reading failed")]
    Io(#[from] io::Error),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes; a longer one is an error that ends the reading.
    pub fn new(reader: R, limit: usize) -> Self {
        Self::with(reader, limit, Overlong::Fail)
    }

    /// Reads lines of at most `limit` bytes; a longer one is handed out in pieces. For logs, not for protocols.
    pub fn in_pieces(reader: R, limit: usize) -> Self {
        Self::with(reader, limit, Overlong::Split)
    }

    fn with(reader: R, limit: usize, overlong: Overlong) -> Self {
        let limit = limit.max(1);
        let chunk = vec![0; CHUNK].into_boxed_slice();
        Self { reader, limit, overlong, line: Vec::new(), chunk, unread: 0..0, ended: false }
    }

    /// The next line, or `None` at the end of the stream.
    ///
    /// # Errors
    /// When a line is too long or reading fails. Nothing comes after an error.
    pub async fn next(&mut self) -> Result<Option<Line>, LinesError> {
        loop {
            if let Some(line) = self.take_buffered()? {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.finish());
            }
            match self.reader.read(&mut self.chunk).await {
                Ok(0) => self.ended = true,
                Ok(count) => self.unread = 0..count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.abandon();
                    return Err(error.into());
                }
            }
        }
    }

    /// A line that can be completed from the chunk. Without one, the chunk is used up.
    fn take_buffered(&mut self) -> Result<Option<Line>, LinesError> {
        while !self.unread.is_empty() {
            let bytes = &self.chunk[self.unread.clone()];
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(bytes.len());
            // One more than the limit may be the CR of the line's end.
            let room = (self.limit + 1).saturating_sub(self.line.len());
            if part > room || (part == room && !self.ends_with_cr_after(part)) {
                match self.overlong {
                    Overlong::Fail => {
                        self.abandon();
                        return Err(LinesError::TooLong { limit: self.limit });
                    }
                    Overlong::Split => {
                        let room = self.limit - self.line.len().min(self.limit);
                        self.consume(room);
                        return Ok(Some(Line(mem::take(&mut self.line))));
                    }
                }
            }
            self.consume(part);
            if end.is_some() {
                self.unread.start += 1;
                if let Some(line) = self.finish() {
                    return Ok(Some(line));
                }
            }
        }
        Ok(None)
    }

    fn ends_with_cr_after(&self, part: usize) -> bool {
        let bytes = &self.chunk[self.unread.clone()];
        let last = part.checked_sub(1).and_then(|at| bytes.get(at)).or(self.line.last());
        // The LF may be in the chunk that follows.
        last == Some(&b'\r') && bytes.get(part).is_none_or(|byte| *byte == b'\n')
    }

    /// Moves `count` bytes from the chunk to the line, which grows by doubling, but not past the limit.
    fn consume(&mut self, count: usize) {
        let needed = self.line.len() + count;
        if needed > self.line.capacity() {
            let doubled = self.line.capacity().saturating_mul(2).min(self.limit + 1);
            self.line.reserve_exact(needed.max(doubled) - self.line.len());
        }
        let from = self.unread.start;
        self.line.extend_from_slice(&self.chunk[from..from + count]);
        self.unread.start += count;
    }

    /// The line as it stands, unless there is nothing in it.
    fn finish(&mut self) -> Option<Line> {
        let mut line = mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.starts_with(BOM) {
            line.drain(..BOM.len());
        }
        (!line.is_empty()).then_some(Line(line))
    }

    fn abandon(&mut self) {
        self.line = Vec::new();
        self.unread = 0..0;
        self.ended = true;
    }
}

impl Line {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its text.
    ///
    /// # Errors
    /// When it is not UTF-8.
    pub fn text(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(&self.0)
    }

    /// Its text, with U+FFFD where it is not UTF-8.
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

/// Says how long it is and nothing of what it says: protocol lines hold answers.
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    /// Hands its bytes out in pieces of the given sizes, over and over.
    struct Pieces<'a> {
        bytes: &'a [u8],
        sizes: Vec<usize>,
        turn: usize,
    }

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let size = self.sizes[self.turn % self.sizes.len()].max(1);
            self.turn += 1;
            let size = size.min(self.bytes.len()).min(buf.remaining());
            let (piece, rest) = self.bytes.split_at(size);
            buf.put_slice(piece);
            self.bytes = rest;
            Poll::Ready(Ok(()))
        }
    }

    fn read<R: AsyncRead + Unpin>(mut lines: Lines<R>) -> (Vec<Vec<u8>>, Option<LinesError>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut seen = Vec::new();
            loop {
                match lines.next().await {
                    Ok(Some(line)) => seen.push(line.0),
                    Ok(None) => return (seen, None),
                    Err(error) => {
                        assert!(matches!(lines.next().await, Ok(None)), "nothing comes after an error");
                        return (seen, Some(error));
                    }
                }
            }
        })
    }

    #[track_caller]
    fn check(input: &[u8], limit: usize, expected: &[&[u8]]) {
        for size in 1..=input.len().max(1) {
            let (seen, error) = read(Lines::new(Pieces { bytes: input, sizes: vec![size], turn: 0 }, limit));
            assert!(error.is_none(), "in pieces of {size}: {error:?}");
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }

    #[track_caller]
    fn check_too_long(input: &[u8], limit: usize, before: &[&[u8]]) {
        for size in 1..=input.len() {
            let (seen, error) = read(Lines::new(Pieces { bytes: input, sizes: vec![size], turn: 0 }, limit));
            assert!(matches!(error, Some(LinesError::TooLong { .. })), "in pieces of {size}: {error:?}");
            assert_eq!(seen, before, "in pieces of {size}");
        }
    }

    #[test]
    fn lines_end_with_lf_or_crlf_or_the_stream() {
        check(b"one\ntwo\r\nthree", 100, &[b"one", b"two", b"three"]);
        check(b"", 100, &[]);
        check(b"a\rb\n", 100, &[b"a\rb"]);
    }

    #[test]
    fn blank_lines_and_byte_order_marks_are_dropped() {
        check(b"\xEF\xBB\xBFone\n\n\r\n\xEF\xBB\xBF\n\xEF\xBB\xBFtwo\n", 100, &[b"one", b"two"]);
        check(b"o\xEF\xBB\xBFne\n", 100, &[b"o\xEF\xBB\xBFne"]);
    }

    #[test]
    fn nul_and_invalid_utf8_are_handed_out_as_they_came() {
        check(b"a\0b\n\xFF\xFE\n", 100, &[b"a\0b", b"\xFF\xFE"]);
        assert!(Line(b"\xFF".to_vec()).text().is_err());
        assert_eq!(Line(b"a\xFF".to_vec()).lossy(), "a\u{FFFD}");
    }

    #[test]
    fn the_limit_counts_the_line_without_its_end() {
        check(b"12345\n12345\r\n12345", 5, &[b"12345", b"12345", b"12345"]);
        check_too_long(b"ok\n123456\nlost\n", 5, &[b"ok"]);
        check_too_long(b"123456", 5, &[]);
        check_too_long(b"12345\rx\n", 5, &[]);
    }

    #[test]
    fn a_log_line_beyond_the_limit_comes_in_pieces() {
        let lines = Lines::in_pieces(&b"1234567890ab\nshort\n"[..], 5);
        let (seen, error) = read(lines);
        assert!(error.is_none());
        assert_eq!(seen, [&b"12345"[..], b"67890", b"ab", b"short"]);
    }

    #[test]
    fn an_endless_line_never_holds_more_than_the_limit() {
        let limit = 1024 * 1024;
        let mut lines = Lines::new(tokio::io::repeat(b'x'), limit);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(lines.next()).unwrap_err();
        assert_eq!(error.to_string(), "a line is longer than 1048576 bytes");
        assert_eq!(lines.line.capacity(), 0, "what was read of it is let go");

        let mut lines = Lines::new(tokio::io::repeat(b'x'), limit);
        lines.chunk.fill(b'x');
        for _ in 0..limit / CHUNK {
            lines.unread = 0..CHUNK;
            assert!(lines.take_buffered().unwrap().is_none());
            assert!(lines.line.capacity() <= limit + 1, "{}", lines.line.capacity());
        }
    }

    proptest! {
        #[test]
        fn any_split_of_any_bytes_gives_the_same_lines(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200),
            sizes in prop::collection::vec(1_usize..20, 1..10),
            limit in 1_usize..40,
        ) {
            let (whole, whole_error) = read(Lines::new(&bytes[..], limit));
            let pieces = Pieces { bytes: &bytes, sizes, turn: 0 };
            let (split, split_error) = read(Lines::new(pieces, limit));
            prop_assert_eq!(&whole, &split);
            prop_assert_eq!(whole_error.is_some(), split_error.is_some());
            prop_assert!(whole.iter().all(|line| !line.is_empty() && line.len() <= limit));
        }
    }
}
