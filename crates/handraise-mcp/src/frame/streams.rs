//! What an owner with several streams, or several clients in front of one upstream, needs to know of a frame: to which
//! call it belongs, and where the numbers stand that only one of the two sides knows.

use std::borrow::Cow;
use std::ops::Range;

use crate::frame::client::{Answered, ClientFrame, Params};
use crate::frame::id::Id;
use crate::frame::member::{member_at, member_named};
use crate::frame::server::{ServerFrame, Shape};
use crate::frame::splice::Splice;

/// The tag that every message of a subscription carries.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// An id and where it stands in its frame.
pub type Placed<'a> = (Id<'a>, Range<usize>);

fn placed(text: &str, at: Range<usize>, offset: usize) -> Option<Placed<'_>> {
    let id = Id::parse(text.get(at.clone())?)?;
    Some((id, offset + at.start..offset + at.end))
}

impl<'a> ClientFrame<'a> {
    /// The JSON text of a member of `params._meta`.
    pub fn meta(&self, name: &str) -> Option<&'a str> {
        member_named(self.param(|params| params.meta.as_ref())?, name)
    }

    /// The JSON text of the first member of `params` with this name.
    pub fn param_text(&self, name: &str) -> Option<&'a str> {
        self.param_named(name)
    }

    /// The token under which the client wants to hear of the progress of this request.
    pub fn progress_token(&self) -> Option<Placed<'a>> {
        let meta = self.params.as_ref()?.meta.clone()?;
        let text = self.text(meta.clone());
        placed(text, member_at(text, "progressToken")?, meta.start)
    }

    /// The id of the request that `notifications/cancelled` is about.
    pub fn cancelled(&self) -> Option<Id<'a>> {
        (self.method() == Some("notifications/cancelled"))
            .then(|| Id::parse(self.param_named("requestId")?))?
    }
}

impl<'a> ServerFrame<'a> {
    /// Where the id of a response stands.
    pub fn response_id_at(&self) -> Option<Range<usize>> {
        if let Shape::Response { id_at, .. } = &self.shape { Some(id_at.clone()) } else { None }
    }

    /// The id of a request of the server.
    pub fn request_id(&self) -> Option<Id<'a>> {
        if let Shape::Request { id, .. } = &self.shape { Some(*id) } else { None }
    }

    /// The token that `notifications/progress` is for.
    pub fn progress_token(&self) -> Option<Placed<'a>> {
        self.notified("notifications/progress", "progressToken")
    }

    /// The id of the request that `notifications/cancelled` is about.
    pub fn cancelled(&self) -> Option<Placed<'a>> {
        self.notified("notifications/cancelled", "requestId")
    }

    fn notified(&self, method: &str, member: &str) -> Option<Placed<'a>> {
        let Shape::Notification { method: found, params } = &self.shape else { return None };
        if found != method {
            return None;
        }
        let text = self.text(params.clone());
        placed(text, member_at(text, member)?, params.start)
    }

    /// The subscription that a notification, or the result at its end, belongs to. A result is read completely for it.
    pub fn subscription(&self) -> Option<Placed<'a>> {
        let outer = match &self.shape {
            Shape::Notification { params, .. } => params.clone(),
            Shape::Response { .. } => self.result_at()?,
            Shape::Request { .. } | Shape::Other => return None,
        };
        let text = self.text(outer.clone());
        let meta = member_at(text, "_meta")?;
        let inner = text.get(meta.clone())?;
        placed(inner, member_at(inner, SUBSCRIPTION)?, outer.start + meta.start)
    }

    /// The code of an error response. The frame is read completely for it.
    pub fn error_code(&self) -> Option<i64> {
        let Shape::Response { .. } = self.shape else { return None };
        let text = std::str::from_utf8(self.bytes()).ok()?;
        member_named(member_named(text.trim_start(), "error")?, "code")?.parse().ok()
    }

    /// The JSON text of the first member of a response's `result` with this name. The frame is read completely for it.
    pub fn result_member(&self, name: &str) -> Option<&'a str> {
        member_named(self.result()?, name)
    }
}

/// A request of one of several clients in front of one upstream, under a number of ours: its id, and its progress token
/// where it has one. All other bytes are as they came.
#[derive(Debug)]
pub struct Renumbered {
    bytes: Vec<u8>,
    edits: Vec<(Range<usize>, usize)>,
}

impl Renumbered {
    /// Writes `number` in place of the request's id and token. `None` for a frame without an id.
    pub fn new(frame: &ClientFrame<'_>, number: u64) -> Option<Self> {
        frame.id()?;
        let number = number.to_string();
        let mut places = vec![frame.id_at.clone()];
        places.extend(frame.progress_token().map(|(_, at)| at));
        places.sort_by_key(|place| place.start);
        let mut splice = Splice::default();
        for place in &places {
            splice.replace(place.clone(), number.as_bytes());
        }
        let edits = places.into_iter().map(|place| (place, number.len())).collect();
        Some(Self { bytes: splice.apply(frame.bytes()), edits })
    }

    /// The frame of these bytes, without reading them again: `original` is what they were made from.
    pub fn frame<'b>(&'b self, original: &'b ClientFrame<'_>) -> ClientFrame<'b> {
        let moved = |range: &Range<usize>| self.moved(range.start, true)..self.moved(range.end, false);
        let moved_of = |range: &Option<Range<usize>>| range.as_ref().map(moved);
        let id_at = moved(&original.id_at);
        let id = std::str::from_utf8(self.bytes.get(id_at.clone()).unwrap_or_default());
        let params = original.params.as_ref().map(|params| Params {
            at: moved(&params.at),
            name: moved_of(&params.name),
            arguments: moved_of(&params.arguments),
            task: moved_of(&params.task),
            meta: moved_of(&params.meta),
            request_state: moved_of(&params.request_state),
            input_responses: moved_of(&params.input_responses),
        });
        let answer = original.answer.as_ref().map(|answer| match answer {
            Answered::Result(at) => Answered::Result(moved(at)),
            Answered::Error(at) => Answered::Error(moved(at)),
            Answered::Both => Answered::Both,
        });
        let method = original.method().map(Cow::Borrowed);
        ClientFrame::from_parts(&self.bytes, id.ok().and_then(Id::parse), id_at, method, params, answer)
    }

    /// Where a place of the original stands now. At the edge of an edit, a start stays before it and an end behind it.
    fn moved(&self, at: usize, is_start: bool) -> usize {
        let is_behind = |range: &Range<usize>| if is_start { at >= range.end } else { at > range.start };
        let edits = self.edits.iter().filter(|(range, _)| is_behind(range));
        edits.fold(at, |at, (range, length)| at + length - range.len())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::Looks;

    fn server(text: &str) -> ServerFrame<'_> {
        ServerFrame::read(text.as_bytes(), |_| Looks::default()).unwrap()
    }

    #[track_caller]
    fn check_placed(text: &str, found: Option<Placed<'_>>, expected: &str) {
        let (id, at) = found.unwrap();
        assert_eq!((id.raw(), &text[at]), (expected, expected), "{text}");
    }

    #[test]
    fn a_frame_says_to_which_call_it_belongs() {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"a\u0062"}}"#;
        check_placed(text, server(text).progress_token(), r#""a\u0062""#);
        let text = r#"{"jsonrpc":"2.0","method":"x","params":{"a":[],"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#;
        check_placed(text, server(text).subscription(), "7");
        assert_eq!(server(text).progress_token(), None);
        let text =
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":12}}}"#;
        check_placed(text, server(text).subscription(), "12");
        let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
        check_placed(text, server(text).cancelled(), "3");
        assert_eq!(server(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}"#).error_code(), Some(-32601));
        assert_eq!(server(r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":1}}}"#).error_code(), None);
    }

    proptest! {
        #[test]
        fn s6_a_renumbered_frame_is_what_reading_it_again_gives(
            id in prop_oneof![Just("1"), Just("\"1\""), Just("12345678901234567890"), Just("\"\\u0061\"")],
            token in prop::option::of(prop_oneof![Just("1"), Just("\"a long token, longer than numbers\"")]),
            number in prop_oneof![0_u64..12, any::<u64>()],
            id_first in any::<bool>(),
        ) {
            let meta = token.map_or("{}".to_owned(), |token| format!(r#"{{"x":1,"progressToken":{token},"y":{{}}}}"#));
            let params = format!(r#""params":{{"name":"t","_meta":{meta},"arguments":{{"a":1.0}},"requestState":"s"}}"#);
            let text = if id_first {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call",{params} }}"#)
            } else {
                format!(r#"{{{params},"method":"tools/call", "id" : {id}}}"#)
            };
            let original = ClientFrame::read(text.as_bytes()).unwrap();
            let renumbered = Renumbered::new(&original, number).unwrap();
            let mut expected = text.replace(&format!(r#""id":{id}"#), &format!(r#""id":{number}"#))
                .replace(&format!(r#""id" : {id}"#), &format!(r#""id" : {number}"#));
            if let Some(token) = token {
                expected = expected.replace(&format!(r#"Token":{token}"#), &format!(r#"Token":{number}"#));
            }
            let frame = renumbered.frame(&original);
            prop_assert_eq!(std::str::from_utf8(frame.bytes()).unwrap(), &expected);
            let again = ClientFrame::read(expected.as_bytes()).unwrap();
            prop_assert_eq!(format!("{frame:?}"), format!("{again:?}"));
        }
    }
}
