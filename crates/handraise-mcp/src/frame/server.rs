//! Reading what a server sends: enough to know whose it is.
//!
//! # Batches
//!
//! MCP had arrays of messages in 2025-03-26 only, and a client's are refused here (S3), so that none of a server's can
//! be an answer to one. A server may send one all the same. It is no [`ServerFrame`]: as a whole nobody could say whose
//! it is, and an answer inside would pass by the open requests. [`each_of_batch`] takes it apart, and every element is a
//! frame of its own, byte for byte: what each says reaches the client, and only the array around them does not.

use std::borrow::Cow;
use std::ops::Range;

use crate::frame::id::Id;
use crate::frame::scan::{NotJson, Scanner};

/// A frame of the server.
#[derive(Debug, Clone)]
pub struct ServerFrame<'a> {
    bytes: &'a [u8],
    pub(crate) shape: Shape<'a>,
    pub(crate) looks: Looks,
}

/// What the bytes of a response look like. A test on bytes may be wrong in one direction only: what it denies is not
/// there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// It may be a refusal that becomes a question.
    pub refusal: bool,
    /// It may be a question of the server's own (`input_required`).
    pub question: bool,
    /// Only its ends were looked at.
    pub is_large: bool,
}

/// What a server's frame is.
#[derive(Debug, Clone)]
pub(crate) enum Shape<'a> {
    /// An answer to the request with this id.
    Response { id: Id<'a>, id_at: Range<usize> },
    /// A request of the server.
    Request { id: Id<'a>, method: Cow<'a, str> },
    /// A notification, with where its params stand.
    Notification { method: Cow<'a, str>, params: Range<usize> },
    /// JSON that is none of these; it is forwarded.
    Other,
}

/// A line that is no JSON object. It is noise, and is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no JSON object")]
pub struct NoFrame;

impl<'a> ServerFrame<'a> {
    /// Reads a frame: one line of stdio without its end, or one HTTP body or event.
    ///
    /// `look` tests the bytes of responses. It must be cheap: it sees every result.
    ///
    /// # Errors
    /// [`NoFrame`].
    pub fn read(bytes: &'a [u8], look: impl Fn(&[u8]) -> Looks) -> Result<Self, NoFrame> {
        let shape = head(bytes).or_else(|| tail(bytes));
        let shape = match shape {
            Some(shape) => shape,
            None => complete(bytes).map_err(|NotJson| NoFrame)?,
        };
        let looks = if let Shape::Response { .. } = shape { look(bytes) } else { Looks::default() };
        Ok(Self { bytes, shape, looks })
    }

    /// The frame's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether all of it is JSON. Reading it looks no further than it must to know whose it is.
    pub fn is_json(&self) -> bool {
        complete(self.bytes).is_ok()
    }

    /// The id that a response answers.
    pub fn response_id(&self) -> Option<Id<'a>> {
        if let Shape::Response { id, .. } = self.shape { Some(id) } else { None }
    }

    /// The method of a request or notification, unescaped.
    pub fn method(&self) -> Option<&str> {
        match &self.shape {
            Shape::Request { method, .. } | Shape::Notification { method, .. } => Some(method),
            Shape::Response { .. } | Shape::Other => None,
        }
    }

    /// Where the `result` of a response stands.
    pub(crate) fn result_at(&self) -> Option<Range<usize>> {
        self.member_at("result")
    }

    /// Where the value of the last member of that name stands. The frame is read completely for it.
    fn member_at(&self, name: &str) -> Option<Range<usize>> {
        let mut at = None;
        let mut scanner = Scanner::new(self.bytes);
        scanner.space();
        let read = scanner.object(|scanner, key, _| {
            let value = scanner.value()?;
            if key.is(name) {
                at = Some(value);
            }
            Ok(())
        });
        (read.is_ok() && scanner.is_at_end()).then_some(at).flatten()
    }

    /// The `result` of a response, as JSON text. The frame is read completely for it.
    pub fn result(&self) -> Option<&'a str> {
        self.result_at().map(|at| self.text(at))
    }

    /// The `error` of a response, as JSON text. The frame is read completely for it.
    pub(crate) fn error(&self) -> Option<&'a str> {
        self.member_at("error").map(|at| self.text(at))
    }

    /// The text of a range that has been scanned.
    pub(crate) fn text(&self, range: Range<usize>) -> &'a str {
        std::str::from_utf8(&self.bytes[range]).unwrap_or_default()
    }
}

/// Whether a line is an array, which [`ServerFrame::read`] does not take.
pub fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Hands out the elements of an array, as they stand and in order.
///
/// # Errors
/// [`NoFrame`] when it is no array that is complete and correct: then nothing has been handed out.
pub fn each_of_batch<'a>(bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) -> Result<(), NoFrame> {
    let mut scanner = Scanner::new(bytes);
    scanner.space();
    let mut elements = scanner.clone();
    scanner.value().map_err(|NotJson| NoFrame)?;
    if !scanner.is_at_end() {
        return Err(NoFrame);
    }
    elements.array(|at| each(&bytes[at])).map_err(|NotJson| NoFrame)
}

/// `{"jsonrpc":"2.0","id":1,"result":…`: known by its head, however long it is.
fn head(bytes: &[u8]) -> Option<Shape<'_>> {
    let mut scanner = Scanner::new(bytes);
    scanner.space();
    scanner.take(b'{').ok()?;
    scanner.space();
    let mut found = None;
    // Three keys: what comes before the result.
    for _ in 0..3 {
        let key = scanner.key().ok()?;
        if key.is("result") || key.is("error") {
            let (id, id_at) = found?;
            return Some(Shape::Response { id, id_at });
        } else if key.is("id") {
            let start = scanner.at();
            found = Some((Id::scan(&mut scanner).ok()??, start..scanner.at()));
        } else if key.is("jsonrpc") {
            scanner.string().ok()?;
        } else {
            return None;
        }
        scanner.space();
        scanner.take(b',').ok()?;
        scanner.space();
    }
    None
}

/// `{"result":…,"jsonrpc":"2.0","id":1}`: known by its tail.
///
/// In JSON the tail cannot stand inside a string, whose quotes would be escaped, nor in an inner object, which would
/// end with one brace more.
fn tail(bytes: &[u8]) -> Option<Shape<'_>> {
    const BEFORE_ID: &[u8] = br#","jsonrpc":"2.0","id":"#;
    const LONGEST: usize = 128;
    if !bytes.starts_with(br#"{"result":"#) {
        return None;
    }
    let bytes = bytes.trim_ascii_end();
    let from = bytes.len().saturating_sub(LONGEST);
    let at = from + memchr::memmem::rfind(&bytes[from..], BEFORE_ID)? + BEFORE_ID.len();
    let raw = std::str::from_utf8(bytes[at..].strip_suffix(b"}")?).ok()?;
    Some(Shape::Response { id: Id::parse(raw)?, id_at: at..at + raw.len() })
}

/// Everything else is read completely.
fn complete(bytes: &[u8]) -> Result<Shape<'_>, NotJson> {
    let mut scanner = Scanner::new(bytes);
    scanner.space();
    let mut id = None;
    let mut method = None;
    let mut params = 0..0;
    let mut is_response = false;
    scanner.object(|scanner, key, _| {
        match &*key.text() {
            "id" => {
                let start = scanner.at();
                id = Id::scan(scanner)?.map(|id| (id, start..scanner.at()));
            }
            "method" if scanner.peek() == Some(b'"') => method = Some(scanner.string()?.text()),
            "params" => params = scanner.value()?,
            "result" | "error" => {
                scanner.value()?;
                is_response = true;
            }
            _ => {
                scanner.value()?;
            }
        }
        Ok(())
    })?;
    if !scanner.is_at_end() {
        return Err(NotJson);
    }
    Ok(match (id, method) {
        (Some((id, _)), Some(method)) => Shape::Request { id, method },
        (None, Some(method)) => Shape::Notification { method, params },
        (Some((id, id_at)), None) if is_response => Shape::Response { id, id_at },
        _ => Shape::Other,
    })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
