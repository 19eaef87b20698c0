//! Frames that are too long to be taken: whose they were, and what is said about them.
//!
//! Only both ends of such a frame are there. Most peers write the id at one of them: `{"jsonrpc":"2.0","id":7,"result":…`,
//! or `…,"jsonrpc":"2.0","id":7}`.
//!
//! Neither reading can mistake what a frame that is JSON holds for its own members. The head is read from the first brace
//! on. The tail is read backwards from the last brace, which closes the frame; the quote that ends a string there is no
//! part of one, and every quote within a string has a backslash before it. What merely looks like a member, in a text such
//! as `"\"id\":7}"`, has these backslashes, and a member of an inner object has one brace more behind it.
//!
//! Of what is no JSON anything may be read. It gains a peer nothing: it could as well have sent an error for any call that
//! waits for it, and reaches no other.

use crate::frame::id::Id;
use crate::frame::reply;
use crate::frame::scan::{NotJson, Quoted, Scanner};

/// The longest id, in bytes, as in frames that are taken.
const LONGEST_ID: usize = 1024;

/// Whose a frame is, by its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlong {
    /// A request, with its id as JSON text.
    Request(String),
    /// A response, with its id as JSON text where it can be seen.
    Response(Option<String>),
    /// It cannot be seen, or it is a notification: nobody waits for it.
    Unknown,
}

/// Reads both ends of a frame; `tail` may be empty.
pub fn read(head: &[u8], tail: &[u8]) -> Overlong {
    let mut seen = Members::default();
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    if !head.starts_with(b"{") {
        return Overlong::Unknown;
    }
    // It is half an object.
    let _ = seen.read_head(head);
    let _ = seen.read_tail(tail);
    let id = seen.id.filter(|id| !seen.is_ambiguous && id.raw().len() <= LONGEST_ID);
    match (seen.has_method, seen.has_outcome, id) {
        (true, false, Some(id)) => Overlong::Request(id.raw().to_owned()),
        (false, true, id) => Overlong::Response(id.map(|id| id.raw().to_owned())),
        _ => Overlong::Unknown,
    }
}

/// What has been seen of a frame's own members.
#[derive(Default)]
struct Members<'a> {
    id: Option<Id<'a>>,
    /// There are two ids.
    is_ambiguous: bool,
    has_method: bool,
    has_outcome: bool,
}

impl<'a> Members<'a> {
    fn read_head(&mut self, head: &'a [u8]) -> Result<(), NotJson> {
        Scanner::new(head).object(|scanner, key, _| {
            self.note_key(key);
            if !key.is("id") {
                return scanner.value().map(drop);
            }
            let id = Id::scan(scanner)?;
            // A number at the very end may go on.
            if scanner.peek().is_some() {
                self.note_id(id);
            }
            Ok(())
        })
    }

    /// Reads the last members, up to one that is no string, number or word.
    fn read_tail(&mut self, tail: &'a [u8]) -> Option<()> {
        let mut rest = Backwards(tail);
        rest.space();
        rest.take(b'}')?;
        loop {
            rest.space();
            let value = rest.string().or_else(|| rest.word())?;
            rest.space();
            rest.take(b':')?;
            rest.space();
            let key = Scanner::new(rest.string()?).string().ok()?;
            rest.space();
            let is_first = rest.take(b'{').is_some();
            if !is_first {
                rest.take(b',')?;
            }
            self.note_key(key);
            if key.is("id") {
                self.note_id(std::str::from_utf8(value).ok().and_then(Id::parse));
            }
            if is_first {
                return Some(());
            }
        }
    }

    fn note_key(&mut self, key: Quoted<'_>) {
        self.has_method |= key.is("method");
        self.has_outcome |= key.is("result") || key.is("error");
    }

    /// Both ends of a short frame hold the same id.
    fn note_id(&mut self, id: Option<Id<'a>>) {
        let Some(id) = id else { return };
        self.is_ambiguous |= !self.id.get_or_insert(id).is(id);
    }
}

/// The end of a JSON text, read from behind. What is read is taken off.
struct Backwards<'a>(&'a [u8]);

impl<'a> Backwards<'a> {
    fn space(&mut self) {
        self.0 = self.0.trim_ascii_end();
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_suffix(&[byte])?;
        Some(())
    }

    /// A string with its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let mut inner = self.0.strip_suffix(b"\"")?;
        loop {
            let open = memchr::memrchr(b'"', inner)?;
            // Where the tail begins with the quote, a backslash may have been cut off.
            if *self.0[..open].last()? != b'\\' {
                let (rest, string) = self.0.split_at(open);
                self.0 = rest;
                return Some(string);
            }
            inner = &inner[..open];
        }
    }

    /// A number, or `true`, `false`, `null`.
    fn word(&mut self) -> Option<&'a [u8]> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let start = self.0.iter().rposition(|byte| !is_word(byte))? + 1;
        let (rest, word) = self.0.split_at(start);
        self.0 = rest;
        (!word.is_empty()).then_some(word)
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

/// The error response in place of an answer for which there was no room beside the others, where all that is in flight may
/// hold `limit` bytes.
pub fn no_room(id: &str, limit: usize) -> Vec<u8> {
    let message = format!(
        "no room for the answer: what is on its way for this client may hold {limit} bytes together \
         (mcp.in_flight_bytes); take what is there, and try again"
    );
    reply::error(id, reply::INTERNAL, &message, None)
}

#[cfg(test)]
#[path = "overlong_tests.rs"]
mod tests;
