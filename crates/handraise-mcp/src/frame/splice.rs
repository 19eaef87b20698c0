//! Changing a few bytes of a frame, and leaving all others as they are.

use std::ops::Range;

/// Replaces ranges of `bytes`, which come in order and do not overlap.
pub(crate) fn splice(bytes: &[u8], edits: &[(Range<usize>, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
    let mut out = Vec::with_capacity(bytes.len() + added);
    let mut at = 0;
    for (range, text) in edits {
        out.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
        out.extend_from_slice(text);
        at = range.end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}
