//! Writing events.

use std::time::Duration;

/// Appends an event with a frame. Line ends in the frame, which JSON has between its tokens only, become `\n`.
///
/// `id` is one of ours: a text without line ends.
pub fn event(out: &mut Vec<u8>, id: Option<&str>, frame: &[u8]) {
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    if !frame.is_empty() {
        out.extend_from_slice(b"event: message\n");
    }
    let mut rest = frame;
    loop {
        let end = memchr::memchr2(b'\r', b'\n', rest);
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
        out.push(b'\n');
        let Some(end) = end else { break };
        let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
    out.push(b'\n');
}

/// Appends how long a reader should wait before it comes back to a stream that ended.
pub fn retry(out: &mut Vec<u8>, wait: Duration) {
    out.extend_from_slice(format!("retry: {}\n\n", wait.as_millis()).as_bytes());
}

/// Appends a comment, which readers skip: it keeps a quiet stream open.
pub fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}
