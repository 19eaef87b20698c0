//! A POST: one frame of a client, and the answer to it.

use std::sync::Arc;

use bytes::Bytes;
use handraise_mcp::{
    declared,
    envelope::Caller,
    frame::{
        ClientFrame, Id, Looks, ServerFrame,
        overlong::{self, Overlong},
    },
    http::headers::{self, HeaderMismatch, PROTOCOL_VERSION, SESSION_ID},
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::{
    Front,
    body::{self, Body, NotTaken},
    budget::Charge,
    link::{Desk, Link},
    metrics::Count,
    outlet::First,
    params,
    pieces::Pieces,
    reply::{self, Refusal},
    service::{count, session},
    shared,
    walls::only,
};
use crate::upstream::Beside;

/// The largest answer that may be an error with a status of its own.
const LARGEST_ERROR: usize = 16 * 1024;
/// The longest session header that states are bound to.
const LONGEST_BINDING: usize = 256;

/// A POST whose body is here.
struct Post<'a> {
    front: &'a Arc<Front>,
    head: &'a Parts,
    principal: &'a Arc<str>,
    body: &'a Bytes,
    frame: &'a ClientFrame<'a>,
    /// The session that the request names, or why it names none.
    named: Result<Option<Arc<Link>>, Refusal>,
    takes_events: bool,
}

/// Serves a POST.
///
/// # Errors
/// [`Refusal`], when the frame's id is not known.
pub(crate) async fn serve(
    front: &Arc<Front>,
    head: &Parts,
    body: Incoming,
    principal: &Arc<str>,
) -> Result<Response<Body>, Refusal> {
    if !is_json(&head.headers) {
        return Err(Refusal::MediaType);
    }
    let named = session(front, head, principal);
    let budget = match &named {
        Ok(Some(link)) => Arc::clone(&link.budget),
        Ok(None) | Err(_) => front.arriving(principal),
    };
    let (mut body, charge) = match body::collect(body, front.max_frame, &budget).await {
        Ok(collected) => collected,
        Err(NotTaken { refusal, head }) => {
            if refusal == Refusal::TooLarge
                && let (Ok(Some(link)), Overlong::Response(Some(id))) = (&named, overlong::read(&head, &[]))
            {
                link.client_too_long(&id);
            }
            return Err(refusal);
        }
    };
    if memchr::memchr2(b'\r', b'\n', &body).is_some() && ClientFrame::read(&body).is_ok() {
        // They stand between tokens, and would end the line that the server reads.
        body = body.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    }
    let frame = match ClientFrame::read(&body) {
        Ok(frame) => frame,
        Err(malformed) => {
            tracing::warn!(problem = %malformed.problem, "a frame of a client is refused (S3)");
            let told = match &named {
                Ok(Some(link)) => link.client_malformed(&malformed),
                Ok(None) | Err(_) => Some(malformed.reply()),
            };
            return Ok(told.map_or_else(|| reply::empty(StatusCode::BAD_REQUEST), refuse));
        }
    };
    let takes_events = takes_events(&head.headers);
    let post = Post { front, head, principal, body: &body, frame: &frame, named, takes_events };
    let is_request = frame.method().is_some();
    let id = frame.id().filter(|_| is_request);
    let served = if declared::modern_version(&frame).is_some() {
        post.modern(id, charge).await
    } else {
        match (frame.method(), id) {
            (Some("initialize"), Some(id)) => post.initialize(id, charge).await,
            (_, Some(id)) => post.request(id, charge).await,
            (_, None) => post.note(charge),
        }
    };
    Ok(served.unwrap_or_else(|refusal| {
        count(front, refusal);
        refusal.response(id.map(Id::raw))
    }))
}

/// A frame that goes nowhere.
fn refuse(reply: Vec<u8>) -> Response<Body> {
    reply::json(StatusCode::BAD_REQUEST, Body::whole(reply.into()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = only(headers, &header::CONTENT_TYPE) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether the client takes a stream as the answer. One that does not say takes everything.
fn takes_events(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    let names = |value: &HeaderValue| {
        value.to_str().unwrap_or_default().split(',').any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim();
            ["text/event-stream", "text/*", "*/*"].iter().any(|known| range.eq_ignore_ascii_case(known))
        })
    };
    values.peek().is_none() || values.any(names)
}

impl Post<'_> {
    /// Opens a session with its first request.
    async fn initialize(&self, id: Id<'_>, charge: Charge) -> Result<Response<Body>, Refusal> {
        let (session, link) = self.front.open_session(self.principal)?;
        let opening = Opening { front: Arc::clone(self.front), session: Some(session) };
        let first = self.submit(&link, id, charge)?.await.map_err(|_| Refusal::Ended)?;
        let is_open = match &first {
            First::Answer(frame) => error_code(frame).is_none(),
            First::Events(_) => true,
            First::Nothing => false,
        };
        let mut response = answer(&link, first, None, |_| StatusCode::OK);
        // Without an answer there is no session; its server leaves with `opening`.
        if is_open && let Ok(value) = HeaderValue::try_from(opening.keep()) {
            response.headers_mut().insert(HeaderName::from_static(SESSION_ID), value);
        }
        Ok(response)
    }

    /// A request of a session.
    async fn request(&self, id: Id<'_>, charge: Charge) -> Result<Response<Body>, Refusal> {
        let link = self.session().map_err(|refusal| match refusal {
            Refusal::NoSession if names_modern_version(self.head) => Refusal::NoEnvelope,
            other => other,
        })?;
        let first = self.submit(&link, id, charge)?.await.map_err(|_| Refusal::Ended)?;
        Ok(answer(&link, first, None, |_| StatusCode::OK))
    }

    /// The session that the request names. It may have ended while the body came.
    fn session(&self) -> Result<Arc<Link>, Refusal> {
        let link = self.named.as_ref().map_err(|refusal| *refusal)?.as_ref().ok_or(Refusal::NoSession)?;
        if link.is_over() { Err(Refusal::UnknownSession) } else { Ok(Arc::clone(link)) }
    }

    /// Opens the stream of a session's request, and lets the request go on.
    fn submit(
        &self,
        link: &Arc<Link>,
        id: Id<'_>,
        charge: Charge,
    ) -> Result<oneshot::Receiver<First>, Refusal> {
        let open = |desk: &mut Desk| match desk {
            Desk::Session(desk) => {
                let first = desk.open(id, self.frame, self.takes_events).map_err(|_| Refusal::IdInUse)?;
                Ok((first, desk.caller()))
            }
            Desk::Shared(_) => Err(Refusal::UnknownSession),
        };
        link.client_frame(self.frame, || self.body.clone(), counted(charge), open, |_| ())
    }

    /// A notification or an answer in a session: nothing comes back.
    fn note(&self, charge: Charge) -> Result<Response<Body>, Refusal> {
        let link = self.session()?;
        let caller = |desk: &mut Desk| match desk {
            Desk::Session(desk) => Ok(((), desk.caller())),
            Desk::Shared(_) => Err(Refusal::UnknownSession),
        };
        let note = |desk: &mut Desk| {
            if let Desk::Session(desk) = desk {
                desk.note(self.frame);
            }
        };
        link.client_frame(self.frame, || self.body.clone(), counted(charge), caller, note)?;
        Ok(reply::empty(StatusCode::ACCEPTED))
    }

    /// A request or notification that describes itself.
    async fn modern(&self, id: Option<Id<'_>>, charge: Charge) -> Result<Response<Body>, Refusal> {
        if let Err(mismatch) = headers::check(self.frame, self.headers(), None) {
            return Ok(self.mismatch(&mismatch));
        }
        let caller = self.caller();
        if id.is_none() {
            // Ids mean something to their own client only, and it cancels by closing the response.
            if self.frame.cancelled().is_none() {
                let link = self.front.shared(self.principal)?;
                let forward = |_: &mut Desk| Ok(((), caller));
                link.client_frame(self.frame, || self.body.clone(), counted(charge), forward, |_| ())?;
            }
            return Ok(reply::empty(StatusCode::ACCEPTED));
        }
        let link = self.front.shared(self.principal)?;
        let numbered = link.at_desk(|desk| match desk {
            Desk::Shared(desk) => Some((desk.number(), desk.check(self.frame, self.headers()))),
            Desk::Session(_) => None,
        });
        let (number, checked) = numbered.ok_or(Refusal::Ended)?;
        if let Err(mismatch) = checked {
            return Ok(self.mismatch(&mismatch));
        }
        let renumbered = shared::renumbered(self.frame, number).ok_or(Refusal::Broken)?;
        let first = {
            let open = |desk: &mut Desk| match desk {
                Desk::Shared(desk) => {
                    let first = desk.open(number, self.frame, self.takes_events, &caller);
                    Ok((first.map_err(|_| Refusal::Subscriptions)?, caller))
                }
                Desk::Session(_) => Err(Refusal::Ended),
            };
            let own = || Bytes::copy_from_slice(renumbered.bytes());
            link.client_frame(&renumbered.frame(self.frame), own, self.beside(charge), open, |_| ())?
        };
        let guard = Guard { link: Arc::clone(&link), number };
        let first = first.await.map_err(|_| Refusal::Ended)?;
        let is_whole = declared::has_capabilities(self.frame);
        Ok(answer(&link, first, Some(guard), |frame| status(frame, is_whole)))
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    /// What goes to the server beside the body: at a URL, the arguments that the client has put into headers.
    fn beside(&self, charge: Charge) -> Beside {
        let is_remote = self.front.upstream.is_some();
        let params = if is_remote { params::of(&self.head.headers) } else { HeaderMap::new() };
        Beside { charge: Some(charge), params }
    }

    fn mismatch(&self, mismatch: &HeaderMismatch) -> Response<Body> {
        self.front.metrics.count(Count::HeaderMismatches);
        refuse(mismatch.reply(self.frame.id()))
    }

    /// What states are bound to: the principal, and the session header where there is one.
    fn caller(&self) -> Arc<Caller> {
        let session = only(&self.head.headers, &HeaderName::from_static(SESSION_ID));
        let session = session.filter(|session| session.len() <= LONGEST_BINDING).map(str::to_owned);
        Arc::new(Caller { principal: self.principal.to_string(), session })
    }
}

/// A body that counts as held, and nothing beside it.
fn counted(charge: Charge) -> Beside {
    Beside { charge: Some(charge), ..Beside::default() }
}

/// What becomes of the beginning of an answer.
fn answer(
    link: &Arc<Link>,
    first: First,
    guard: Option<Guard>,
    status: impl FnOnce(&Pieces) -> StatusCode,
) -> Response<Body> {
    match first {
        First::Answer(frame) => reply::json(status(&frame), Body::charged(frame, &link.budget)),
        First::Events(events) => reply::stream(Body::events(events, guard)),
        First::Nothing => reply::empty(StatusCode::ACCEPTED),
    }
}

/// The status of a modern answer.
fn status(frame: &Pieces, is_whole: bool) -> StatusCode {
    match error_code(frame) {
        Some(-32601) => StatusCode::NOT_FOUND,
        Some(-32022..=-32020 | -32700 | -32600) => StatusCode::BAD_REQUEST,
        // A request that lacks what it must say about itself. Other parameters are the method's own business.
        Some(-32602) if !is_whole => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

/// The code of an answer that is an error.
fn error_code(frame: &Pieces) -> Option<i64> {
    if frame.len() > LARGEST_ERROR {
        return None;
    }
    let frame = frame.whole();
    memchr::memmem::find(&frame, b"\"error\"")?;
    ServerFrame::read(&frame, |_| Looks::default()).ok()?.error_code()
}

/// A session that is being opened. It ends with this, unless it is kept.
struct Opening {
    front: Arc<Front>,
    session: Option<String>,
}

impl Opening {
    fn keep(mut self) -> String {
        self.session.take().unwrap_or_default()
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.front.end_session(session);
        }
    }
}

/// A modern request that is open. Its client has left when this goes first, and that cancels it.
#[derive(Debug)]
pub(crate) struct Guard {
    link: Arc<Link>,
    number: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.link.abandoned(self.number);
    }
}

/// Whether the headers say that the request describes itself. That never decides: it only says what is missing.
fn names_modern_version(head: &Parts) -> bool {
    let version = head.headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    version.is_some_and(declared::is_modern_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accept_header_says_whether_a_stream_is_taken() {
        for (accept, expected) in [
            (&[][..], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "Text/Event-Stream;q=0.5"], true),
            (&["*/*"], true),
            (&["application/json"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, HeaderValue::from_static(value));
            }
            assert_eq!(takes_events(&headers), expected, "{accept:?}");
        }
    }

    #[test]
    fn errors_of_the_modern_era_have_their_statuses() {
        for (code, is_whole, expected) in [
            (-32601, true, 404),
            (-32020, true, 400),
            (-32021, true, 400),
            (-32022, true, 400),
            (-32602, true, 200),
            (-32602, false, 400),
            (-32603, true, 200),
        ] {
            let frame = reply::error("1", code, "no").into();
            assert_eq!(status(&frame, is_whole), expected, "{code}");
        }
        let result = reply::result("1", "{\"error\":{\"code\":-32601}}").into();
        assert_eq!(status(&result, true), 200);
    }
}
