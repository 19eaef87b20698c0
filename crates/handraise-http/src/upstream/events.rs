//! A stream of events: the frames on it, until it ends or its answer has come.

use std::time::Duration;

use bytes::Bytes;
use handraise_mcp::{
    frame::{
        Id, Looks, ServerFrame,
        overlong::{self, Overlong},
    },
    http::sse::{Event, Item, Reader},
};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::{answer, context::Context, failure::Failure, link::Arrival};

/// How long the rest of a stream may take after its answer, so that its connection can be used again.
const REST: Duration = Duration::from_secs(1);

/// How a stream went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its request has been answered.
    Answered,
    /// It ended before that.
    Over,
    /// Nobody takes frames any more.
    Unwanted,
    /// What came cannot be taken.
    Failed(Failure),
}

/// What is known of a stream across its connections.
#[derive(Debug)]
pub(crate) struct Progress {
    reader: Reader,
    /// The id of the last event that was complete.
    pub(crate) last_id: Option<String>,
    /// How long the server wants to be left alone before somebody comes back.
    pub(crate) retry: Option<Duration>,
    /// How many events have come.
    pub(crate) events: u64,
}

impl Progress {
    pub(crate) fn new(limit: usize) -> Self {
        Self { reader: Reader::new(limit), last_id: None, retry: None, events: 0 }
    }
}

/// Reads a stream to its end, or to the answer to `request`. `seen` sees that, and what the server asks, before anybody
/// else.
pub(crate) async fn read(
    context: &Context,
    body: Incoming,
    progress: &mut Progress,
    request: Option<Id<'_>>,
    mut seen: impl FnMut(&ServerFrame<'_>),
) -> End {
    progress.reader = Reader::new(context.server.limit);
    let room = &context.room;
    let mut reading = room.reading();
    let mut body = body;
    let mut items = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(piece) = frame.into_data() else { continue };
        progress.reader.feed(&piece, &mut items);
        if let Err(full) = reading.hold(progress.reader.held() + held(&items)) {
            return End::Failed(full);
        }
        let mut is_answered = false;
        for item in items.drain(..) {
            let charge = room.hold(held(std::slice::from_ref(&item)));
            let frames = match item {
                Item::Event(event) => {
                    progress.events += 1;
                    message(event)
                }
                Item::TooLong(head) => too_long(context, &head, request).into_iter().collect(),
                Item::Retry(wait) => {
                    progress.retry = Some(wait);
                    Vec::new()
                }
            };
            for bytes in frames {
                match is_answer(&bytes, request, &mut seen) {
                    Ok(is_answer) => is_answered |= is_answer,
                    Err(failure) => return End::Failed(failure),
                }
                if context.emit(Arrival::new(bytes, &charge)).await.is_err() {
                    return End::Unwanted;
                }
            }
        }
        // What is less than before always fits.
        let _ = reading.hold(progress.reader.held());
        if is_answered {
            tokio::spawn(async move {
                let _ = timeout(REST, async { while let Some(Ok(_)) = body.frame().await {} }).await;
            });
            return End::Answered;
        }
        if let Some(id) = progress.reader.last_id() {
            progress.last_id = Some(id.to_owned());
        }
    }
    End::Over
}

/// Reads a stream to the answer to `request`, and nothing else of it.
pub(crate) async fn only_answer(context: &Context, body: Incoming, request: Id<'_>) -> Option<Bytes> {
    let mut body = body;
    let mut reader = Reader::new(context.server.limit);
    let mut reading = context.room.reading();
    let mut items = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(piece) = frame.into_data() else { continue };
        reader.feed(&piece, &mut items);
        reading.hold(reader.held() + held(&items)).ok()?;
        for item in items.drain(..) {
            let Item::Event(event) = item else { continue };
            let is_answer =
                |bytes: &Bytes| is_answer(bytes, Some(request), &mut |_| {}).is_ok_and(|is_answer| is_answer);
            let answer = message(event).into_iter().find(is_answer);
            if answer.is_some() {
                return answer;
            }
        }
    }
    None
}

/// How much is held of what a reader has given.
fn held(items: &[Item]) -> usize {
    let held = |item: &Item| match item {
        Item::Event(Event { data, .. }) | Item::TooLong(data) => data.capacity(),
        Item::Retry(_) => 0,
    };
    items.iter().map(held).sum()
}

/// The frames of an event.
fn message(event: Event) -> Vec<Bytes> {
    if event.is_message() { answer::frames(&event.data.into()) } else { Vec::new() }
}

/// Whether a frame answers the request; `seen` has seen it then, or where it is a question.
///
/// # Errors
/// When it would be the answer and is no JSON: nobody could read it, and no other will come.
fn is_answer(
    bytes: &[u8],
    request: Option<Id<'_>>,
    seen: &mut impl FnMut(&ServerFrame<'_>),
) -> Result<bool, Failure> {
    let Ok(frame) = ServerFrame::read(bytes, |_| Looks::default()) else { return Ok(false) };
    if frame.request_id().is_some() {
        seen(&frame);
    }
    let (Some(id), Some(request)) = (frame.response_id(), request) else { return Ok(false) };
    if !id.is(request) {
        return Ok(false);
    }
    if !frame.is_json() {
        return Err(Failure::NoResponse);
    }
    seen(&frame);
    Ok(true)
}

/// What takes the place of a frame that is too long: on the stream of a request, its answer.
fn too_long(context: &Context, head: &[u8], request: Option<Id<'_>>) -> Option<Bytes> {
    let limit = context.server.limit;
    tracing::warn!(limit, "a frame of the MCP server is too long and is thrown away");
    let request = request?;
    // A stream holds no answer but the one to its own request, so that an id which cannot be seen is that one.
    match overlong::read(head, &[]) {
        Overlong::Response(id) if id.as_deref().and_then(Id::parse).is_none_or(|id| id.is(request)) => {
            Some(overlong::reply(request.raw(), limit).into())
        }
        Overlong::Response(_) | Overlong::Request(_) | Overlong::Unknown => None,
    }
}
