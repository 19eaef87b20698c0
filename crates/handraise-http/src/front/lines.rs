//! A server's stdout, cut into frames without copying the large ones.

use bytes::{Buf as _, Bytes, BytesMut};
use handraise_transport::ends::Ends;

/// The least room that is made for a read.
const LEAST: usize = 16 * 1024;
/// The most room that is made for a read.
const MOST: usize = 1024 * 1024;
/// What an empty buffer may keep for good.
const KEPT: usize = 64 * 1024;
/// What it may keep while large frames come.
const MOST_KEPT: usize = 4 * 1024 * 1024;
/// What is copied out of the buffer rather than shared with it, so that the small does not hold the large.
const COPIED: usize = 16 * 1024;
/// How many times as much memory a frame may hold as it is long. What would hold more is copied: a frame may be kept for as long
/// as its session lasts, and counts as what it is long.
const MOST_ALONG: usize = 8;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Bytes on their way to being frames. A line ends with LF or CR LF; what holds only white space is skipped, and so is a
/// byte order mark at a line's start.
#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    buffer: BytesMut,
    /// What is before holds no line end.
    scanned: usize,
    /// A line that is thrown away, and has not ended yet.
    overlong: Option<Ends>,
    /// It is thrown away for want of room, not for its length.
    lacks_room: bool,
    /// How much room the next read gets.
    room: usize,
    /// The largest that the buffer has been.
    largest: usize,
}

/// What is next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Frame(Bytes),
    /// A line beyond the limit, once it has ended. What stands between its ends is thrown away.
    TooLong(Ends),
    /// The same of a line that found no room.
    NoRoom(Ends),
}

impl Lines {
    /// Frames of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            scanned: 0,
            overlong: None,
            lacks_room: false,
            room: LEAST,
            largest: 0,
        }
    }

    /// The buffer, with room for a read.
    pub(crate) fn room(&mut self) -> &mut BytesMut {
        if self.buffer.is_empty() {
            let is_waste = self.room == LEAST && self.largest > KEPT;
            if is_waste || self.largest > MOST_KEPT {
                self.shrink();
            }
            // Fresh memory for every large frame costs more than all else that happens to it. While the last one is
            // still being sent there is no other way.
            if self.buffer.capacity() < self.largest && !self.buffer.try_reclaim(self.largest) {
                self.buffer = BytesMut::with_capacity(self.room);
                self.largest = self.room;
            }
        }
        let room = self.room.max(self.buffer.len().min(MOST));
        if self.buffer.capacity() - self.buffer.len() < room / 2 {
            self.buffer.reserve(room);
        }
        self.largest = self.largest.max(self.buffer.capacity());
        &mut self.buffer
    }

    /// Whether nothing is held, and nothing kept for large frames.
    pub(crate) fn is_untouched(&self) -> bool {
        self.buffer.is_empty() && self.overlong.is_none() && self.largest <= KEPT
    }

    /// Goes on from the beginning of a line.
    pub(crate) fn begin(&mut self, line: &[u8]) {
        self.room().extend_from_slice(line);
        self.has_read(line.len());
    }

    /// Whether memory is kept for large frames to come.
    pub(crate) fn is_roomy(&self) -> bool {
        self.largest > KEPT && self.buffer.is_empty()
    }

    /// Lets go of the memory that is kept.
    pub(crate) fn shrink(&mut self) {
        self.buffer = BytesMut::new();
        (self.room, self.largest) = (LEAST, 0);
    }

    /// Takes note of a read, so that large frames come in few of them.
    pub(crate) fn has_read(&mut self, count: usize) {
        self.room = if count >= self.room / 2 { (self.room * 2).min(MOST) } else { LEAST.max(self.room / 2) };
    }

    /// How much is held of a line that has no end yet.
    pub(crate) fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Throws away the line that is being read, for which there is no room.
    pub(crate) fn give_up_for_room(&mut self) {
        self.lacks_room = true;
        self.give_up();
    }

    fn give_up(&mut self) {
        self.overlong.get_or_insert_default().add(&self.buffer);
        self.buffer.clear();
        self.scanned = 0;
    }

    /// The next frame in the buffer.
    pub(crate) fn next(&mut self) -> Option<Found> {
        loop {
            let unscanned = &self.buffer[self.scanned..];
            let Some(end) = memchr::memchr(b'\n', unscanned).map(|at| self.scanned + at) else {
                self.scanned = self.buffer.len();
                if self.overlong.is_some() || self.buffer.len() > self.limit + BOM.len() + 1 {
                    self.give_up();
                }
                return None;
            };
            self.scanned = 0;
            if let Some(mut ends) = self.overlong.take() {
                ends.add(&self.buffer[..end]);
                self.buffer.advance(end + 1);
                let lacks_room = std::mem::take(&mut self.lacks_room);
                return Some(if lacks_room { Found::NoRoom(ends) } else { Found::TooLong(ends) });
            }
            let mut frame = 0..end;
            if self.buffer[frame.clone()].starts_with(BOM) {
                frame.start += BOM.len();
            }
            if self.buffer[frame.clone()].ends_with(b"\r") {
                frame.end -= 1;
            }
            if frame.len() > self.limit {
                let ends = Ends::of(&self.buffer[..end]);
                self.buffer.advance(end + 1);
                return Some(Found::TooLong(ends));
            }
            if self.buffer[frame.clone()].iter().all(u8::is_ascii_whitespace) {
                self.buffer.advance(end + 1);
                continue;
            }
            if frame.len() <= COPIED || frame.len() < self.largest / MOST_ALONG {
                let copy = Bytes::copy_from_slice(&self.buffer[frame]);
                self.buffer.advance(end + 1);
                return Some(Found::Frame(copy));
            }
            let line = self.buffer.split_to(end + 1).freeze();
            return Some(Found::Frame(line.slice(frame)));
        }
    }

    /// The last line, which may lack its end.
    pub(crate) fn last(&mut self) -> Option<Found> {
        if self.buffer.is_empty() && self.overlong.is_none() {
            return None;
        }
        self.buffer.extend_from_slice(b"\n");
        self.next()
    }
}

/// Takes every line that ends and is short enough; returns what is left.
pub(crate) fn each_line<'b>(bytes: &'b [u8], limit: usize, mut take: impl FnMut(&'b [u8])) -> &'b [u8] {
    let mut rest = bytes;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = &rest[..end];
        let line = line.strip_prefix(BOM).unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > limit {
            return rest;
        }
        rest = &rest[end + 1..];
        if !line.iter().all(u8::is_ascii_whitespace) {
            take(line);
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads bytes in pieces of these sizes; both ends of what is too long, after a `!` each.
    fn read(bytes: &[u8], sizes: &[usize], limit: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let take = |next: Found| match next {
            Found::Frame(frame) => frame.to_vec(),
            Found::TooLong(Ends { head, tail }) | Found::NoRoom(Ends { head, tail }) => {
                [b"!", &head[..], b"!", &tail[..]].concat()
            }
        };
        let mut rest = bytes;
        let mut turn = 0;
        while !rest.is_empty() {
            let size = sizes[turn % sizes.len()].min(rest.len());
            turn += 1;
            lines.room().extend_from_slice(&rest[..size]);
            lines.has_read(size);
            rest = &rest[size..];
            while let Some(next) = lines.next() {
                found.push(take(next));
            }
        }
        found.extend(lines.last().map(take));
        found
    }

    #[test]
    fn a_line_is_a_frame_without_its_end() {
        let text =
            "\u{feff}{1}\r\n\n \t\r\n{2}\n12345678\n12345678\r\n1234567890123\n{3}\n{4}\n1234567890123";
        let expected = [
            "{1}",
            "{2}",
            "12345678",
            "12345678",
            "!1234567890123!1234567890123",
            "{3}",
            "{4}",
            "!1234567890123!1234567890123",
        ];
        for size in [1, 2, 3, 5, 1000] {
            let found = read(text.as_bytes(), &[size], 8);
            let found: Vec<_> = found.iter().map(|line| String::from_utf8_lossy(line)).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn large_frames_share_one_buffer_that_is_given_back() {
        let mut lines = Lines::new(1 << 22);
        let large = ["x".repeat(1 << 20), "\n".to_owned()].concat();
        let mut take = |text: &str| {
            let mut rest = text.as_bytes();
            while !rest.is_empty() {
                let room = lines.room();
                let count = rest.len().min(room.capacity() - room.len());
                room.extend_from_slice(&rest[..count]);
                lines.has_read(count);
                rest = &rest[count..];
            }
            (lines.next(), lines.is_roomy())
        };
        let (first, is_roomy) = take(&large);
        assert!(is_roomy);
        let Some(Found::Frame(frame)) = first else { panic!("{first:?}") };
        let place = frame.as_ptr();
        drop(frame);
        let (second, ..) = take(&large);
        let Some(Found::Frame(frame)) = &second else { panic!("{second:?}") };
        assert_eq!(frame.as_ptr(), place, "in its place");
        let (third, ..) = take(&large);
        let Some(Found::Frame(third)) = third else { panic!("{third:?}") };
        assert!(third.as_ptr() != place && *frame == third, "what is still held is not written over");
        drop((second, third));
        let mut roomy = 0;
        for _ in 0..20 {
            roomy += usize::from(take("{}\n").1);
        }
        assert!((1..10).contains(&roomy), "small frames need no such room: {roomy}");
    }

    #[test]
    fn s37_a_frame_does_not_hold_what_stood_beside_it() {
        let mut lines = Lines::new(1 << 23);
        let frame = "x".repeat(100_000);
        for (beside, is_shared) in [(6 << 20, false), (0, true)] {
            for line in ["y".repeat(beside), frame.clone()] {
                lines.room().extend_from_slice(line.as_bytes());
                lines.room().extend_from_slice(b"\n");
            }
            if beside > 0 {
                assert!(lines.next().is_some());
            }
            let buffer = lines.buffer.as_ptr_range();
            let Some(Found::Frame(found)) = lines.next() else { panic!("a frame") };
            assert_eq!(found, frame);
            assert_eq!(buffer.contains(&found.as_ptr()), is_shared, "beside {beside}");
        }
    }

    #[test]
    fn s37_what_is_held_of_a_long_line_is_bounded() {
        let mut lines = Lines::new(1 << 20);
        let mut announced = 0;
        for _ in 0..100 {
            lines.room().extend_from_slice(&vec![b'x'; 1 << 18]);
            lines.has_read(1 << 18);
            announced += usize::from(lines.next().is_some());
            assert!(lines.buffer.capacity() <= 4 << 20, "{}", lines.buffer.capacity());
        }
        assert_eq!(announced, 0, "it has not ended");
        assert!(matches!(lines.last(), Some(Found::TooLong(_))));
        assert_eq!(lines.last(), None);
    }

    #[test]
    fn a_line_without_room_is_told_from_one_that_is_too_long() {
        let mut lines = Lines::new(8);
        lines.begin(b"{1");
        lines.give_up_for_room();
        lines.room().extend_from_slice(b"2345678901234567890}\n1234567890\n");
        assert!(matches!(lines.next(), Some(Found::NoRoom(Ends { head, .. })) if head.starts_with(b"{1")));
        assert!(matches!(lines.next(), Some(Found::TooLong(_))));
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn whole_lines_of_a_read_are_taken_where_they_are() {
        let text = b"\xEF\xBB\xBF{1}\r\n\n \t\r\n{2}\n123456789\n{3}\n{4";
        let mut found = Vec::new();
        let rest = each_line(text, 8, |line| found.push(line));
        assert_eq!((found.as_slice(), rest), (&[&b"{1}"[..], b"{2}"][..], &b"123456789\n{3}\n{4"[..]));
        let mut lines = Lines::new(8);
        lines.begin(rest);
        assert!(!lines.is_untouched() && matches!(lines.next(), Some(Found::TooLong(_))));
        assert_eq!((lines.next(), lines.next()), (Some(Found::Frame(Bytes::from_static(b"{3}"))), None));
        lines.room().extend_from_slice(b"}\n");
        assert_eq!((lines.next(), lines.next()), (Some(Found::Frame(Bytes::from_static(b"{4}"))), None));
        assert!(lines.is_untouched());
    }

    proptest! {
        #[test]
        fn whole_lines_and_what_is_left_are_what_one_reading_finds(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..200),
            cut in 0_usize..200,
            limit in 1_usize..40,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut found = Vec::new();
            let rest = each_line(first, limit, |line| found.push(line.to_vec()));
            found.extend(read(&[rest, second].concat(), &[1000], limit));
            prop_assert_eq!(found, read(&bytes, &[1000], limit));
        }

        #[test]
        fn where_reads_end_changes_nothing(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..200),
            sizes in prop::collection::vec(1_usize..20, 1..10),
            limit in 1_usize..40,
        ) {
            prop_assert_eq!(read(&bytes, &[1000], limit), read(&bytes, &sizes, limit));
        }

        #[test]
        fn large_and_small_frames_come_whole(lengths in prop::collection::vec(1_usize..20_000, 1..10), size in 1_usize..9000) {
            let text: String = lengths.iter().map(|length| "x".repeat(*length) + "\n").collect();
            let found: Vec<usize> = read(text.as_bytes(), &[size], 30_000).iter().map(Vec::len).collect();
            prop_assert_eq!(found, lengths);
        }
    }
}
