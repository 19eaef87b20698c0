//! A POST: one frame of a client, and the answer to it.

use std::sync::Arc;

use bytes::Bytes;
use handraise_mcp::{
    declared,
    envelope::Caller,
    frame::{ClientFrame, Id, Looks, RequestId, ServerFrame},
    http::headers::{self, HeaderMismatch, PROTOCOL_VERSION, SESSION_ID},
};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::sync::oneshot;

use super::{
    Front,
    body::Body,
    budget::{Budget, Charge},
    head::{Head, text},
    link::{Desk, Link},
    metrics::Count,
    outlet::First,
    params,
    pieces::Pieces,
    reply::{self, Refusal, Reply},
    service::{count, session},
    shared,
};
use crate::upstream::Beside;

/// The largest answer that may be an error with a status of its own.
const LARGEST_ERROR: usize = 16 * 1024;
/// The longest session header that states are bound to.
const LONGEST_BINDING: usize = 256;

/// A POST that is let in; its body may still be on its way.
pub(crate) struct Admitted {
    principal: Arc<str>,
    /// The session that it names, or why it names none.
    named: Result<Option<Arc<Link>>, Refusal>,
}

impl Admitted {
    /// # Errors
    /// [`Refusal::MediaType`].
    pub(crate) fn new(front: &Front, head: &Head<'_>, principal: &Arc<str>) -> Result<Self, Refusal> {
        if !is_json(head) {
            return Err(Refusal::MediaType);
        }
        Ok(Self { principal: Arc::clone(principal), named: session(front, head, principal) })
    }

    pub(crate) fn session(&self) -> Option<&Arc<Link>> {
        self.named.as_ref().ok()?.as_ref()
    }

    /// Whom the body is charged to.
    pub(crate) fn budget(&self, front: &Front) -> Arc<Budget> {
        self.session().map_or_else(|| front.arriving(&self.principal), |link| Arc::clone(&link.budget))
    }
}

/// What becomes of a POST.
pub(crate) enum Served {
    Now(Reply),
    Later(Waiting),
}

/// A POST whose body is here.
struct Post<'a> {
    front: &'a Arc<Front>,
    head: &'a Head<'a>,
    admitted: &'a Admitted,
    body: &'a Bytes,
    frame: &'a ClientFrame<'a>,
    takes_events: bool,
}

/// Serves a POST.
pub(crate) fn serve(
    front: &Arc<Front>,
    head: &Head<'_>,
    admitted: &Admitted,
    mut body: Bytes,
    charge: Charge,
) -> Served {
    if memchr::memchr2(b'\r', b'\n', &body).is_some() && ClientFrame::read(&body).is_ok() {
        // They stand between tokens, and would end the line that the server reads.
        body = body.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
    }
    let frame = match ClientFrame::read(&body) {
        Ok(frame) => frame,
        Err(malformed) => {
            tracing::warn!(problem = %malformed.problem, "a frame of a client is refused (S3)");
            let told = match admitted.session() {
                Some(link) => link.client_malformed(&malformed),
                None => Some(malformed.reply()),
            };
            return Served::Now(told.map_or_else(|| reply::empty(StatusCode::BAD_REQUEST), refuse));
        }
    };
    let takes_events = takes_events(head);
    let post = Post { front, head, admitted, body: &body, frame: &frame, takes_events };
    let id = frame.id().filter(|_| frame.method().is_some());
    let served = if declared::modern_version(&frame).is_some() {
        post.modern(id, charge)
    } else {
        match (frame.method(), id) {
            (Some("initialize"), Some(id)) => post.initialize(id, charge).map(Served::Later),
            (_, Some(id)) => post.request(id, charge).map(Served::Later),
            (_, None) => post.note(charge).map(Served::Now),
        }
    };
    served.unwrap_or_else(|refusal| {
        count(front, refusal);
        Served::Now(refusal.reply(id.map(Id::raw)))
    })
}

/// A frame that goes nowhere.
fn refuse(reply: Vec<u8>) -> Reply {
    reply::json(StatusCode::BAD_REQUEST, Body::whole(reply.into()))
}

fn is_json(head: &Head<'_>) -> bool {
    let Some(value) = head.only("content-type") else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether the client takes a stream as the answer. One that does not say takes everything.
fn takes_events(head: &Head<'_>) -> bool {
    let mut values = head.all("accept").peekable();
    let names = |value: &[u8]| {
        text(value).unwrap_or_default().split(',').any(|range| {
            let range = range.split(';').next().unwrap_or_default().trim();
            ["text/event-stream", "text/*", "*/*"].iter().any(|known| range.eq_ignore_ascii_case(known))
        })
    };
    values.peek().is_none() || values.any(names)
}

impl Post<'_> {
    /// Opens a session with its first request.
    fn initialize(&self, id: Id<'_>, charge: Charge) -> Result<Waiting, Refusal> {
        let (session, link) = self.front.open_session(&self.admitted.principal)?;
        let opening = Opening { front: Arc::clone(self.front), session: Some(session) };
        let first = self.submit(&link, id, charge)?;
        Ok(Waiting { id: id.to_owned(), first, link, purpose: Purpose::Opens(opening) })
    }

    /// A request of a session.
    fn request(&self, id: Id<'_>, charge: Charge) -> Result<Waiting, Refusal> {
        let link = self.session().map_err(|refusal| match refusal {
            Refusal::NoSession if names_modern_version(self.head) => Refusal::NoEnvelope,
            other => other,
        })?;
        let first = self.submit(&link, id, charge)?;
        Ok(Waiting { id: id.to_owned(), first, link, purpose: Purpose::Session })
    }

    /// The session that the request names. It may have ended while the body came.
    fn session(&self) -> Result<Arc<Link>, Refusal> {
        let named = self.admitted.named.as_ref().map_err(|refusal| *refusal)?;
        let link = named.as_ref().ok_or(Refusal::NoSession)?;
        if link.is_over() { Err(Refusal::UnknownSession) } else { Ok(Arc::clone(link)) }
    }

    /// Opens the stream of a session's request, and lets the request go on.
    fn submit(
        &self,
        link: &Arc<Link>,
        id: Id<'_>,
        charge: Charge,
    ) -> Result<oneshot::Receiver<First>, Refusal> {
        let beside = self.beside(charge);
        let params = beside.params.clone();
        let open = |desk: &mut Desk| match desk {
            Desk::Session(desk) => {
                let first = desk.open(id, self.frame, self.takes_events, params);
                Ok((first.map_err(|_| Refusal::IdInUse)?, desk.caller()))
            }
            Desk::Shared(_) => Err(Refusal::UnknownSession),
        };
        link.client_frame(self.frame, || self.body.clone(), beside, open, |_| ())
    }

    /// A notification or an answer in a session: nothing comes back.
    fn note(&self, charge: Charge) -> Result<Reply, Refusal> {
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
    fn modern(&self, id: Option<Id<'_>>, charge: Charge) -> Result<Served, Refusal> {
        if let Err(mismatch) = headers::check(self.frame, self.head.headers(), None) {
            return Ok(Served::Now(self.mismatch(&mismatch)));
        }
        let caller = self.caller();
        let Some(id) = id else {
            // Ids mean something to their own client only, and it cancels by closing the response.
            if self.frame.cancelled().is_none() {
                let link = self.front.shared(&self.admitted.principal)?;
                let forward = |_: &mut Desk| Ok(((), caller));
                link.client_frame(self.frame, || self.body.clone(), counted(charge), forward, |_| ())?;
            }
            return Ok(Served::Now(reply::empty(StatusCode::ACCEPTED)));
        };
        let link = self.front.shared(&self.admitted.principal)?;
        let numbered = link.at_desk(|desk| match desk {
            Desk::Shared(desk) => Some((desk.number(), desk.check(self.frame, self.head.headers()))),
            Desk::Session(_) => None,
        });
        let (number, checked) = numbered.ok_or(Refusal::Ended)?;
        if let Err(mismatch) = checked {
            return Ok(Served::Now(self.mismatch(&mismatch)));
        }
        let renumbered = shared::renumbered(self.frame, number).ok_or(Refusal::Broken)?;
        let first = {
            let beside = self.beside(charge);
            let params = beside.params.clone();
            let open = |desk: &mut Desk| match desk {
                Desk::Shared(desk) => {
                    let first = desk.open(number, self.frame, self.takes_events, &caller, params);
                    Ok((first.map_err(|_| Refusal::Subscriptions)?, caller))
                }
                Desk::Session(_) => Err(Refusal::Ended),
            };
            let own = || Bytes::copy_from_slice(renumbered.bytes());
            link.client_frame(&renumbered.frame(self.frame), own, beside, open, |_| ())?
        };
        let guard = Guard { link: Arc::clone(&link), number };
        let is_whole = declared::has_capabilities(self.frame);
        let purpose = Purpose::Modern { guard, is_whole };
        Ok(Served::Later(Waiting { id: id.to_owned(), first, link, purpose }))
    }

    /// What goes to the server beside the body: at a URL, the arguments that the client has put into headers.
    fn beside(&self, charge: Charge) -> Beside {
        let is_remote = self.front.upstream.is_some();
        Beside { charge: Some(charge), params: is_remote.then(|| params::of(self.head)).flatten() }
    }

    fn mismatch(&self, mismatch: &HeaderMismatch) -> Reply {
        self.front.metrics.count(Count::HeaderMismatches);
        refuse(mismatch.reply(self.frame.id()))
    }

    /// What states are bound to: the principal, and the session header where there is one.
    fn caller(&self) -> Arc<Caller> {
        let session = self.head.only(SESSION_ID);
        let session = session.filter(|session| session.len() <= LONGEST_BINDING).map(str::to_owned);
        Arc::new(Caller { principal: self.admitted.principal.to_string(), session })
    }
}

/// A body that counts as held, and nothing beside it.
fn counted(charge: Charge) -> Beside {
    Beside { charge: Some(charge), ..Beside::default() }
}

/// A request whose answer is waited for. Dropped before it is there, its client has left.
pub(crate) struct Waiting {
    id: RequestId,
    first: oneshot::Receiver<First>,
    link: Arc<Link>,
    purpose: Purpose,
}

/// What a request that waits is for.
enum Purpose {
    /// It opens a session.
    Opens(Opening),
    /// It belongs to one.
    Session,
    /// It describes itself. `is_whole`: with all that it must say.
    Modern { guard: Guard, is_whole: bool },
}

impl Waiting {
    /// Waits for the beginning of the answer.
    pub(crate) async fn reply(self) -> Reply {
        let Self { id, first, link, purpose } = self;
        let Ok(first) = first.await else { return Refusal::Ended.reply(Some(id.raw())) };
        match purpose {
            Purpose::Session => answer(&link, first, None, |_| StatusCode::OK),
            Purpose::Modern { guard, is_whole } => {
                answer(&link, first, Some(guard), |frame| status(frame, is_whole))
            }
            Purpose::Opens(opening) => {
                let is_open = match &first {
                    First::Answer(frame) => error_code(frame).is_none(),
                    First::Events(_) => true,
                    First::Nothing => false,
                };
                let mut reply = answer(&link, first, None, |_| StatusCode::OK);
                // Without an answer there is no session; its server leaves with `opening`.
                if is_open && let Ok(value) = HeaderValue::try_from(opening.keep()) {
                    reply.also = Some((HeaderName::from_static(SESSION_ID), value));
                }
                reply
            }
        }
    }
}

/// What becomes of the beginning of an answer.
fn answer(
    link: &Arc<Link>,
    first: First,
    guard: Option<Guard>,
    status: impl FnOnce(&Pieces) -> StatusCode,
) -> Reply {
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
fn names_modern_version(head: &Head<'_>) -> bool {
    let version = head.all(PROTOCOL_VERSION).next().and_then(text);
    version.is_some_and(declared::is_modern_version)
}

#[cfg(test)]
mod tests {
    use super::{super::head::Header, *};

    #[test]
    fn an_accept_header_says_whether_a_stream_is_taken() {
        for (accept, expected) in [
            (&[][..], true),
            (&["application/json, text/event-stream"], true),
            (&["application/json", "Text/Event-Stream;q=0.5"], true),
            (&["*/*"], true),
            (&["application/json"], false),
        ] {
            let header = |value: &&'static str| Header { name: "Accept", value: value.as_bytes() };
            let headers: Vec<_> = accept.iter().map(header).collect();
            assert_eq!(takes_events(&Head::new("POST", "/mcp", &headers)), expected, "{accept:?}");
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
