//! What a response to a POST is: an answer as one body, the beginning of a stream, or a failure.

use std::sync::Arc;

use bytes::Bytes;
use handraise_mcp::frame::{Id, Looks, ServerFrame, each_of_batch, is_batch, overlong};
use http::{HeaderMap, Response, StatusCode, header::CONTENT_TYPE};
use hyper::body::Incoming;
use serde_json::value::RawValue;

use super::{
    context::Context,
    dial::{NotCollected, collect},
    failure::Failure,
};
use crate::budget::Charge;

/// How much is read of a body that comes with an error.
const LONGEST_ERROR: usize = 64 * 1024;

/// What came.
pub(crate) enum Answer {
    /// The response to the request, and what came in an array with it.
    Frames(Vec<Bytes>, Arc<Charge>),
    /// A stream, on which it may come.
    Stream(Incoming),
}

/// What a body is, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Json,
    Events,
    Other,
}

pub(crate) fn content(headers: &HeaderMap) -> Content {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        Content::Json
    } else if kind.eq_ignore_ascii_case("text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}

/// Reads the response to the POST of a request. `in_session`: the request was of a session that the server may have
/// forgotten.
pub(crate) async fn read(
    context: &Context,
    response: Response<Incoming>,
    request: Id<'_>,
    in_session: bool,
) -> Result<Answer, Failure> {
    let limit = context.server.limit;
    let mut reading = context.room.reading();
    let status = response.status();
    let content = content(response.headers());
    if status.is_success() {
        return match content {
            Content::Events => Ok(Answer::Stream(response.into_body())),
            Content::Json => {
                let frames = match collect(response.into_body(), limit, &mut reading).await {
                    Ok(body) => answer(body, request).ok_or(Failure::NoResponse)?,
                    Err(NotCollected::TooLong) => vec![overlong::reply(request.raw(), limit).into()],
                    Err(NotCollected::Full(failure)) => return Err(failure),
                    Err(NotCollected::Broken) => return Err(Failure::BrokeOff),
                };
                Ok(Answer::Frames(frames, reading.done()))
            }
            Content::Other => Err(Failure::NoResponse),
        };
    }
    let lost = status == StatusCode::NOT_FOUND && in_session;
    let failure = if lost { Failure::SessionLost } else { Failure::Status(status) };
    let may_say_more =
        content == Content::Json && status != StatusCode::UNAUTHORIZED && !status.is_redirection();
    if !may_say_more {
        return Err(failure);
    }
    let body = collect(response.into_body(), LONGEST_ERROR, &mut reading).await;
    let Ok(body) = body else { return Err(failure) };
    let is_ours = response_id_is(&body, request);
    if is_ours || (status.is_client_error() && !lost && status != StatusCode::FORBIDDEN) {
        let frames = answer(body, request).ok_or(failure)?;
        return Ok(Answer::Frames(frames, reading.done()));
    }
    Err(failure)
}

/// A body as the answer to the request: its response, and what came in an array with it, or an error that the server
/// could not give an id.
fn answer(body: Vec<u8>, request: Id<'_>) -> Option<Vec<Bytes>> {
    #[derive(serde::Deserialize)]
    struct Unassigned<'a> {
        id: Option<()>,
        #[serde(borrow)]
        error: &'a RawValue,
    }
    let body = Bytes::from(body);
    let frames = frames(&body);
    if frames.iter().any(|frame| response_id_is(frame, request)) {
        return Some(frames);
    }
    let Unassigned { id: None, error } = serde_json::from_slice(&body).ok()? else { return None };
    if !error.get().starts_with('{') {
        return None;
    }
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{}}}"#, request.raw(), error.get());
    Some(vec![frame.into()])
}

/// How many times as much memory an element of an array may hold as it is long. It may be kept for as long as its session lasts,
/// and counts as what it is long.
const MOST_ALONG: usize = 8;

/// The frames of a body or event: itself, or the elements of an array.
pub(crate) fn frames(bytes: &Bytes) -> Vec<Bytes> {
    if !is_batch(bytes) {
        return vec![bytes.clone()];
    }
    let mut frames = Vec::new();
    // What is no array that is complete is no frame either, which whoever takes it finds out.
    let frame = |element: &[u8]| {
        let is_part = element.len() < bytes.len() / MOST_ALONG;
        if is_part { Bytes::copy_from_slice(element) } else { bytes.slice_ref(element) }
    };
    if each_of_batch(bytes, |element| frames.push(frame(element))).is_err() {
        return vec![bytes.clone()];
    }
    frames
}

/// Whether a body is the response to the request. One that is no JSON would be no answer to whoever waits for it.
fn response_id_is(body: &[u8], request: Id<'_>) -> bool {
    let frame = ServerFrame::read(body, |_| Looks::default());
    frame.is_ok_and(|frame| frame.response_id().is_some_and(|id| id.is(request)) && frame.is_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(body: &str) -> Option<String> {
        let frames = answer(body.into(), Id::parse("7").unwrap())?;
        Some(String::from_utf8(frames.join(&b'\n')).unwrap())
    }

    #[test]
    fn a_body_is_an_answer_when_it_is_one_to_this_request() {
        let own = r#"{"jsonrpc":"2.0","id":7,"result":{"a":1.0}}"#;
        assert_eq!(taken(own).as_deref(), Some(own));
        let batch = r#"[{"jsonrpc":"2.0","method":"x"}, {"jsonrpc":"2.0","id":7,"result":{}}]"#;
        let apart = "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}";
        assert_eq!(taken(batch).as_deref(), Some(apart));
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"x"},"id":null}"#, true),
            (r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"x"}}"#, true),
            (r#"{"jsonrpc":"2.0","error":"x","id":null}"#, false),
            (r#"{"jsonrpc":"2.0","error":{},"id":8}"#, false),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, false),
            (r#"{"error":"unauthorized"}"#, false),
            // Cut short; two in one; not UTF-8 as JSON has it.
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":1"#, false),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}{"jsonrpc":"2.0","id":7,"result":{}}"#, false),
            ("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\u{1}\"}", false),
            ("<html>", false),
            ("", false),
        ] {
            let expected = expected
                .then(|| r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"x"}}"#.to_owned());
            assert_eq!(taken(body), expected, "{body}");
        }
    }

    #[test]
    fn s37_an_element_does_not_hold_what_stood_beside_it() {
        let batch = Bytes::from(format!(r#"[{{"a":"{}"}},{{"b":1}}]"#, "x".repeat(1000)));
        let [large, small] = &frames(&batch)[..] else { panic!() };
        let place = batch.as_ptr_range();
        assert!(place.contains(&large.as_ptr()) && !place.contains(&small.as_ptr()));
        assert_eq!(small, r#"{"b":1}"#);
    }

    #[test]
    fn a_body_is_what_its_header_says() {
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            content(&headers)
        };
        assert_eq!(of("Application/JSON; charset=utf-8"), Content::Json);
        assert_eq!(of("text/event-stream"), Content::Events);
        assert_eq!(of("text/html"), Content::Other);
        assert_eq!(content(&HeaderMap::new()), Content::Other);
    }
}
