//! The end of what a command wrote: so many bytes of it, as text.

use std::collections::VecDeque;

/// The last bytes that were pushed, and whether there were more.
#[derive(Debug)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    limit: usize,
    truncated: bool,
}

impl Tail {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: VecDeque::new(), limit, truncated: false }
    }

    /// Takes what was written next.
    pub(crate) fn push(&mut self, written: &[u8]) {
        let kept = written.len().min(self.limit);
        let overflow = (self.bytes.len() + kept).saturating_sub(self.limit);
        self.truncated |= overflow > 0 || kept < written.len();
        self.bytes.drain(..overflow);
        self.bytes.extend(&written[written.len() - kept..]);
    }

    /// What is kept, as text of at most the limit, and whether something before it is gone. What is no UTF-8 is
    /// replaced; a character that is not whole yet is left out until it is, or until the output is `complete`.
    pub(crate) fn text(&self, complete: bool) -> (String, bool) {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // The first character may have been cut.
        let cut = if self.truncated {
            bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count()
        } else {
            0
        };
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes[cut..].utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            let may_go_on = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if !(invalid.is_empty() || (may_go_on && !complete)) {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        // A replacement is longer than what it replaces.
        let excess = text.len().saturating_sub(self.limit);
        let start = (excess..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(text.len());
        (text.split_off(start), self.truncated || start > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(limit: usize, pushes: &[&[u8]], complete: bool, expected: (&str, bool)) {
        let mut tail = Tail::new(limit);
        for push in pushes {
            tail.push(push);
        }
        assert_eq!(tail.text(complete), (expected.0.to_owned(), expected.1));
    }

    #[test]
    fn the_beginning_gives_way_at_a_character_boundary() {
        check(10, &[b"abc", b"def"], true, ("abcdef", false));
        check(4, &[b"abc", b"def"], true, ("cdef", true));
        check(4, &[b"abcdef"], true, ("cdef", true));
        check(3, &["äöü".as_bytes()], true, ("ü", true));
        check(5, &["a\u{1F600}b".as_bytes()], true, ("\u{1F600}b", true));
        check(4, &["a\u{1F600}b".as_bytes()], true, ("b", true));
        check(0, &[b"a"], true, ("", true));
        check(0, &[], true, ("", false));
    }

    #[test]
    fn a_character_that_is_half_there_waits_for_its_other_half() {
        check(10, &[b"a\xC3"], false, ("a", false));
        check(10, &[b"a\xC3", b"\xA4"], false, ("aä", false));
        check(10, &[b"a\xC3"], true, ("a\u{FFFD}", false));
        check(10, &[b"\xFFa"], false, ("\u{FFFD}a", false));
    }

    #[test]
    fn replacements_do_not_exceed_the_limit() {
        check(6, &[b"a\xFF\xFF\xFF"], true, ("\u{FFFD}\u{FFFD}", true));
    }

    proptest! {
        #[test]
        fn text_is_the_end_of_what_was_written(text in "\\PC{0,60}", limit in 0_usize..40, piece in 1_usize..9) {
            let mut tail = Tail::new(limit);
            for piece in text.as_bytes().chunks(piece) {
                tail.push(piece);
            }
            let (kept, truncated) = tail.text(true);
            prop_assert!(kept.len() <= limit);
            prop_assert!(text.ends_with(&kept));
            prop_assert_eq!(truncated, kept.len() < text.len());
            // Nothing is given up that would have fitted.
            prop_assert!(!truncated || kept.len() + 4 > limit);
        }

        #[test]
        fn any_bytes_are_bounded_text(bytes in prop::collection::vec(any::<u8>(), 0..80), limit in 0_usize..60) {
            let mut tail = Tail::new(limit);
            tail.push(&bytes);
            for complete in [false, true] {
                let (kept, truncated) = tail.text(complete);
                prop_assert!(kept.len() <= limit);
                prop_assert!(truncated || bytes.len() <= limit);
            }
        }
    }
}
