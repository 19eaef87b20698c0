//! Frames that are too long to be taken: whose they were, and what is said about them.

use crate::frame::ClientFrame;

/// Whose a frame is, by its beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlong {
    /// A request, with its id as JSON text.
    Request(String),
    /// A response, with its id as JSON text.
    Response(String),
    /// It cannot be seen.
    Unknown,
}

/// Reads the beginning of a frame.
pub fn read(head: &[u8]) -> Overlong {
    // Half an object is malformed, and tells its id where that has been read.
    let Some(id) = ClientFrame::read(head).err().and_then(|malformed| malformed.id) else {
        return Overlong::Unknown;
    };
    let first = |key: &[u8]| head.windows(key.len()).position(|window| window == key).unwrap_or(usize::MAX);
    let method = first(b"\"method\"");
    let outcome = first(b"\"result\"").min(first(b"\"error\""));
    match method.cmp(&outcome) {
        std::cmp::Ordering::Less => Overlong::Request(id),
        std::cmp::Ordering::Greater => Overlong::Response(id),
        std::cmp::Ordering::Equal => Overlong::Unknown,
    }
}

/// A response that answers nothing.
pub fn without_answer(id: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}").into_bytes()
}

/// The error response in place of what was thrown away.
pub fn reply(id: &str, limit: usize) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32600,\"message\":\"the frame is longer than \
         {limit} bytes, and was thrown away\"}}}}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_the_beginning_of_a_frame_says_whose_it_is() {
        let request = Overlong::Request("7".to_owned());
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"#), request);
        assert_eq!(read(br#"{"method":"x","id":7,"params":{"result":"aaaa"#), request);
        let response = Overlong::Response("\"a\"".to_owned());
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":"a","result":{"method":"aaaa"#), response);
        assert_eq!(read(br#"{"jsonrpc":"2.0","result":{"id":7,"text":"aaaa"#), Overlong::Unknown);
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":7,"text":"aaaa"#), Overlong::Unknown);
        assert_eq!(read(b"aaaaaaaa"), Overlong::Unknown);
    }
}
