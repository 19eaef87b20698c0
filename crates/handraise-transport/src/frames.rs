//! Frames of a pipe as bytes: one a line, handed out as places in one buffer, so that they can go on uncopied.

use std::{io, ops::Range, os::fd::AsFd};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use crate::ends::Ends;

/// The least room that is made for a read.
const CHUNK: usize = 64 * 1024;
/// What the buffer may keep when nothing is in it.
const KEPT: usize = 2 * 1024 * 1024;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Where bytes come from: anything with a descriptor, and byte strings in tests.
pub trait Source {
    /// Appends what is there to `buffer`, which has room; waits until there is something. 0 at the end.
    ///
    /// # Errors
    /// When reading fails.
    fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize>;
}

impl<F: AsFd> Source for F {
    fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            match rustix::io::read(self.as_fd(), spare_capacity(buffer)) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                // Somebody who shares the descriptor has made it non-blocking.
                Err(Errno::AGAIN) => wait_for(self.as_fd(), PollFlags::IN),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Waits until a descriptor is ready. A failed or interrupted wait is looked at like a wake-up.
pub fn wait_for(descriptor: impl AsFd, flags: PollFlags) {
    let _ = poll(&mut [PollFd::new(&descriptor, flags)], None);
}

/// Reads a byte stream line by line and never holds more than the limit, one read and the ends of what is too long.
///
/// A line ends with LF or CR LF, or with the stream. What holds only white space is skipped. A UTF-8 byte order mark
/// at the start of a line belongs to no frame. Everything else is handed out as it came.
#[derive(Debug)]
pub struct Frames<S> {
    source: S,
    limit: usize,
    buffer: Vec<u8>,
    /// What is before has been handed out.
    start: usize,
    /// What is before holds no line end.
    scanned: usize,
    /// A line that is too long, and has not ended yet.
    overlong: Option<Ends>,
    ended: bool,
}

/// What is next in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A line.
    Frame(Place),
    /// A line that is longer than the limit, once it has ended. What stands between its ends is thrown away.
    TooLong(Ends),
}

/// Where a frame is in the buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The frame alone.
    pub frame: Range<usize>,
    /// The frame and its line end, which the last line of a stream may not have.
    pub line: Range<usize>,
}

impl<S: Source> Frames<S> {
    /// Frames of at most `limit` bytes.
    pub fn new(source: S, limit: usize) -> Self {
        Self {
            source,
            limit: limit.max(1),
            buffer: Vec::with_capacity(CHUNK),
            start: 0,
            scanned: 0,
            overlong: None,
            ended: false,
        }
    }

    /// Where bytes come from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads once, waiting if need be; false at the end of the stream, when [`next`](Frames::next) may still find a
    /// last line. Places found before are no longer valid.
    ///
    /// # Errors
    /// When reading fails.
    pub fn fill(&mut self) -> io::Result<bool> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::with_capacity(CHUNK);
        }
        // A long line makes the buffer grow by doubling, so that it is moved a few times only.
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 2 {
            self.buffer.reserve(CHUNK);
        }
        if !self.ended && self.source.append(&mut self.buffer)? == 0 {
            self.ended = true;
        }
        Ok(!self.ended)
    }

    /// The next line that is complete.
    #[expect(clippy::should_implement_trait, reason = "no iterator: the places are of this buffer")]
    pub fn next(&mut self) -> Option<Found> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.scanned..]).map(|at| self.scanned + at);
            let start = self.start;
            let Some(end) = end else {
                self.scanned = self.buffer.len();
                // One more may be the CR of the line's end.
                if self.overlong.is_some() || self.scanned - start > self.limit + 1 {
                    self.start = self.scanned;
                    self.overlong.get_or_insert_default().add(&self.buffer[start..]);
                    return if self.ended { self.overlong.take().map(Found::TooLong) } else { None };
                }
                if !self.ended || start == self.scanned {
                    return None;
                }
                self.start = self.scanned;
                return self.found(start, self.scanned, self.scanned);
            };
            self.start = end + 1;
            self.scanned = end + 1;
            if let Some(mut ends) = self.overlong.take() {
                ends.add(&self.buffer[start..end]);
                return Some(Found::TooLong(ends));
            }
            if let Some(found) = self.found(start, end, end + 1) {
                return Some(found);
            }
        }
    }

    /// The bytes at a place.
    pub fn bytes(&self, place: Range<usize>) -> &[u8] {
        self.buffer.get(place).unwrap_or_default()
    }

    fn found(&self, start: usize, end: usize, line_end: usize) -> Option<Found> {
        let mut frame = start..end;
        if self.buffer[frame.clone()].starts_with(BOM) {
            frame.start += BOM.len();
        }
        let line_start = frame.start;
        if self.buffer[frame.clone()].ends_with(b"\r") {
            frame.end -= 1;
        }
        // The first is what is judged while the line is still coming.
        if end - start > self.limit + 1 || frame.len() > self.limit {
            return Some(Found::TooLong(Ends::of(&self.buffer[start..end])));
        }
        if self.buffer[frame.clone()].iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(Found::Frame(Place { frame, line: line_start..line_end }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bytes that come in pieces of these sizes, in turns.
    struct Pieces<'a> {
        bytes: &'a [u8],
        sizes: Vec<usize>,
        turn: usize,
    }

    impl Source for Pieces<'_> {
        fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
            let size = self.sizes[self.turn % self.sizes.len()].min(self.bytes.len());
            self.turn += 1;
            buffer.extend_from_slice(&self.bytes[..size]);
            self.bytes = &self.bytes[size..];
            Ok(size)
        }
    }

    /// Each line with its end, or both ends of what is too long, after a `!` each.
    fn read(bytes: &[u8], sizes: &[usize], limit: usize) -> Vec<Vec<u8>> {
        let mut frames = Frames::new(Pieces { bytes, sizes: sizes.to_vec(), turn: 0 }, limit);
        let mut found = Vec::new();
        loop {
            let more = frames.fill().unwrap();
            while let Some(next) = frames.next() {
                found.push(match next {
                    Found::Frame(place) => {
                        let frame = frames.bytes(place.frame.clone());
                        assert!(frame.len() <= limit && !frame.contains(&b'\n'));
                        assert!(frames.bytes(place.line.clone()).starts_with(frame));
                        frames.bytes(place.line).to_vec()
                    }
                    Found::TooLong(Ends { head, tail }) => [b"!", &head[..], b"!", &tail[..]].concat(),
                });
            }
            if !more {
                return found;
            }
        }
    }

    #[track_caller]
    fn check(text: &str, lines: &[&str]) {
        for size in [1, 2, 3, 5, 1000] {
            let found = read(text.as_bytes(), &[size], 8);
            let found: Vec<_> = found.iter().map(|line| String::from_utf8_lossy(line)).collect();
            assert_eq!(found, lines, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_is_a_frame_and_keeps_its_own_end() {
        check("{1}\n{2}\r\n{3}", &["{1}\n", "{2}\r\n", "{3}"]);
        check("", &[]);
        check("{1}\n\n \t\r\n{2}\n", &["{1}\n", "{2}\n"]);
        check("\u{feff}{1}\r\n\u{feff}\n{2}\n", &["{1}\r\n", "{2}\n"]);
    }

    #[test]
    fn s37_a_line_beyond_the_limit_is_announced_by_its_ends_and_thrown_away() {
        check("12345678\n123456789\n1\n", &["12345678\n", "!123456789!123456789", "1\n"]);
        check("12345678\r\n1\n", &["12345678\r\n", "1\n"]);
        check("1234567890123456789", &["!1234567890123456789!1234567890123456789"]);
        let (head, tail) = ("h".repeat(4096), "t".repeat(4096));
        let announced = format!("!{head}!{tail}");
        check(&format!("{head}{}{tail}\n1\n", "x".repeat(100_000)), &[&announced, "1\n"]);
        check(&format!("1\n{head}{tail}"), &["1\n", &announced]);
    }

    #[test]
    fn s37_what_is_held_of_a_long_line_is_bounded() {
        struct Endless(usize);
        impl Source for Endless {
            fn append(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
                let count = (buffer.capacity() - buffer.len()).min(self.0);
                buffer.resize(buffer.len() + count, b'x');
                self.0 -= count;
                Ok(count)
            }
        }
        let mut frames = Frames::new(Endless(100 << 20), 1 << 20);
        let mut announced = 0;
        let mut most = 0;
        while frames.fill().unwrap() {
            most = most.max(frames.buffer.capacity());
            announced += usize::from(frames.next().is_some());
        }
        assert_eq!(announced, 0, "it has not ended");
        assert!(matches!(frames.next(), Some(Found::TooLong(_))));
        assert_eq!(frames.next(), None);
        assert!(most <= 4 << 20, "{most}");
    }

    proptest! {
        #[test]
        fn where_reads_end_changes_nothing(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..200),
            sizes in prop::collection::vec(1_usize..20, 1..10),
            limit in 1_usize..40,
        ) {
            prop_assert_eq!(read(&bytes, &[1000], limit), read(&bytes, &sizes, limit));
        }

        #[test]
        fn nothing_within_the_limit_is_lost(lines in prop::collection::vec("[a-z]{1,20}", 1..20), size in 1_usize..50) {
            let text = lines.join("\n") + "\n";
            let found = read(text.as_bytes(), &[size], 20).concat();
            prop_assert_eq!(String::from_utf8(found).unwrap(), text);
        }
    }
}
