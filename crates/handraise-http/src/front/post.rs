//! A POST: one frame of a client, and the answer to it.

use std::sync::Arc;

use bytes::Bytes;
use handraise_mcp::{
    declared,
    envelope::Caller,
    frame::{ClientFrame, Id},
    http::headers::{self, PROTOCOL_VERSION, SESSION_ID},
};
use http::StatusCode;

use super::{
    Front,
    body::Body,
    budget::{Budget, Charge},
    desk::Desk,
    handover::{AtOnce, StatusRule, Taker},
    head::{Head, text},
    known::{Held, Refused, Verdict},
    link::Link,
    metrics::Count,
    params::{self, Params},
    pieces::Came,
    quick::Quick,
    reply::{self, Refusal, Reply},
    service::{self, count},
    session, shared,
    waiting::{Guard, Opening, Purpose, Waiting},
};
use crate::upstream::Beside;

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
        Ok(Self { principal: Arc::clone(principal), named: service::session(front, head, principal) })
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
    body: Came<'a>,
    frame: &'a ClientFrame<'a>,
    takes_events: bool,
    /// The way around the task of the connection, where there is one.
    quick: Option<&'a Arc<Quick>>,
}

/// Serves a POST.
pub(crate) fn serve(
    front: &Arc<Front>,
    head: &Head<'_>,
    admitted: &Admitted,
    posted: Came<'_>,
    charge: Charge,
    quick: Option<&Arc<Quick>>,
) -> Served {
    let one_line: Bytes;
    let mut body = posted;
    let mut read = ClientFrame::read(posted.bytes());
    if read.as_ref().is_ok_and(ClientFrame::has_line_breaks) {
        // They stand between tokens, and would end the line that the server reads.
        let spaced = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        one_line = posted.bytes().iter().map(spaced).collect();
        body = Came::own(&one_line);
        read = ClientFrame::read(body.bytes());
    }
    let frame = match read.and_then(ClientFrame::answerable) {
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
    let post = Post { front, head, admitted, body, frame: &frame, takes_events, quick };
    let id = frame.id().filter(|_| frame.method().is_some());
    let served = if declared::modern_version(&frame).is_some() {
        post.modern(id, charge)
    } else if let Some(mismatch) = post.untrue() {
        Ok(Served::Now(mismatch))
    } else {
        match (frame.method(), id) {
            (Some("initialize"), Some(id)) => post.initialize(id, charge).map(Served::Later),
            (_, Some(id)) => post.request(id, charge),
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
    if value == "application/json" {
        return true;
    }
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// Whether the client takes a stream as the answer. One that does not say takes everything.
fn takes_events(head: &Head<'_>) -> bool {
    let mut values = head.all("accept").peekable();
    let names = |value: &[u8]| {
        // As clients are told to spell it.
        if value == b"application/json, text/event-stream" {
            return true;
        }
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
        let opening = Opening::new(self.front, &self.admitted.principal, session);
        let first = self.submit(&link, id, charge, None)?;
        Ok(Waiting::new(id, first, &link, Purpose::Opens(opening)))
    }

    /// A request of a session.
    fn request(&self, id: Id<'_>, charge: Charge) -> Result<Served, Refusal> {
        let link = self.session().map_err(|refusal| match refusal {
            Refusal::NoSession if names_modern_version(self.head) => Refusal::NoEnvelope,
            // By this, clients that begin with it go on to initialize.
            Refusal::NoSession if self.frame.method() == Some("server/discover") => Refusal::NoDiscovery,
            other => other,
        })?;
        let at_once = self.at_once(StatusRule::Session);
        // The others have been compared with the frame.
        let verdict = if self.head.headers().any(|(name, _)| headers::is_param(name)) {
            link.at_desk(|desk| desk.known().judge(self.frame, self.head.headers()))
        } else {
            Verdict::Passes
        };
        let first = match verdict {
            Verdict::Passes => self.submit(&link, id, charge, at_once)?,
            Verdict::Waits => self.hold(&link, id, charge, at_once)?,
            Verdict::Refused(refused) => return Ok(Served::Now(self.refused(&refused))),
        };
        Ok(Served::Later(Waiting::new(id, first, &link, Purpose::Session)))
    }

    /// What a session's frame is answered whose headers are not true. They may be absent there.
    fn untrue(&self) -> Option<Reply> {
        let mismatch = headers::check(self.frame, self.head.headers(), None).err()?;
        Some(self.refused(&Refused::Mismatch(mismatch)))
    }

    /// Opens the stream of a session's request, which waits until more is known of the server.
    fn hold(
        &self,
        link: &Arc<Link>,
        id: Id<'_>,
        charge: Charge,
        at_once: Option<AtOnce>,
    ) -> Result<Taker, Refusal> {
        let beside = self.beside(charge);
        link.hold(|desk| {
            let (first, desk) = self.open(desk, id, beside.params.clone(), at_once)?;
            let frame = Bytes::copy_from_slice(self.body.bytes());
            Ok((first, Held::new(desk.newest(), frame, self.head.headers(), beside)))
        })
    }

    /// Opens the stream of a session's request.
    fn open<'d>(
        &self,
        desk: &'d mut Desk,
        id: Id<'_>,
        params: Params,
        at_once: Option<AtOnce>,
    ) -> Result<(Taker, &'d mut session::Desk), Refusal> {
        let Desk::Session(desk) = desk else { return Err(Refusal::UnknownSession) };
        let first = desk.open(id, self.frame, self.takes_events, params, at_once);
        Ok((first.map_err(|_| Refusal::IdInUse)?, desk))
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
        at_once: Option<AtOnce>,
    ) -> Result<Taker, Refusal> {
        let beside = self.beside(charge);
        let params = beside.params.clone();
        let open = |desk: &mut Desk| {
            let (first, desk) = self.open(desk, id, params, at_once)?;
            Ok((first, desk.caller()))
        };
        link.client_frame(self.frame, self.body, beside, open, |_| ())
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
        link.client_frame(self.frame, self.body, counted(charge), caller, note)?;
        Ok(reply::empty(StatusCode::ACCEPTED))
    }

    /// A request or notification that describes itself.
    fn modern(&self, id: Option<Id<'_>>, charge: Charge) -> Result<Served, Refusal> {
        if let Err(mismatch) = headers::check(self.frame, self.head.headers(), None) {
            return Ok(Served::Now(self.refused(&Refused::Mismatch(mismatch))));
        }
        // This version has no such method, and a server that other requests share is nobody's to open a session with.
        if self.frame.method() == Some("initialize") {
            return Err(Refusal::NoOpening);
        }
        let caller = self.caller()?;
        let Some(id) = id else {
            // Ids mean something to their own client only, and it cancels by closing the response.
            if self.frame.cancelled().is_none() {
                let link = self.front.shared(&self.admitted.principal)?;
                let forward = |_: &mut Desk| Ok(((), caller));
                link.client_frame(self.frame, self.body, counted(charge), forward, |_| ())?;
            }
            return Ok(Served::Now(reply::empty(StatusCode::ACCEPTED)));
        };
        let link = self.front.shared(&self.admitted.principal)?;
        let numbered = link.at_desk(|desk| match desk {
            Desk::Shared(desk) => Some((desk.number(), desk.known().judge(self.frame, self.head.headers()))),
            Desk::Session(_) => None,
        });
        let (number, verdict) = numbered.ok_or(Refusal::Ended)?;
        if let Verdict::Refused(refused) = verdict {
            return Ok(Served::Now(self.refused(&refused)));
        }
        let renumbered = shared::renumbered(self.frame, number).ok_or(Refusal::Broken)?;
        let is_whole = declared::has_capabilities(self.frame);
        let at_once = self.at_once(StatusRule::Modern { is_whole });
        let first = {
            let beside = self.beside(charge);
            let params = beside.params.clone();
            let open = |desk: &mut Desk| match desk {
                Desk::Shared(desk) => {
                    let first = desk.open(number, self.frame, self.takes_events, &caller, params, at_once);
                    Ok((first.map_err(|_| Refusal::Subscriptions)?, caller))
                }
                Desk::Session(_) => Err(Refusal::Ended),
            };
            if verdict == Verdict::Waits {
                let frame = Bytes::copy_from_slice(renumbered.bytes());
                let headers = self.head.headers();
                link.hold(|desk| {
                    let (first, _) = open(desk)?;
                    Ok((first, Held::new(number, frame, headers, beside)))
                })?
            } else {
                let own = Came::lent(renumbered.bytes());
                link.client_frame(&renumbered.frame(self.frame), own, beside, open, |_| ())?
            }
        };
        let guard = Guard::new(&link, number);
        let purpose = Purpose::Modern { guard, is_whole };
        Ok(Served::Later(Waiting::new(id, first, &link, purpose)))
    }

    /// How an answer of one frame goes out at once.
    fn at_once(&self, status: StatusRule) -> Option<AtOnce> {
        self.quick.map(|quick| AtOnce { quick: Arc::downgrade(quick), status })
    }

    /// What goes to the server beside the body: at a URL, the arguments that the client has put into headers.
    fn beside(&self, charge: Charge) -> Beside {
        let is_remote = self.front.upstream.is_some();
        Beside { charge: Some(charge), params: is_remote.then(|| params::of(self.head)).flatten() }
    }

    /// The answer to a request that goes nowhere.
    fn refused(&self, refused: &Refused) -> Reply {
        if let Refused::Mismatch(_) = refused {
            self.front.metrics.count(Count::HeaderMismatches);
        }
        refuse(refused.reply(self.frame.id()))
    }

    /// What states are bound to: the principal, and the session header where there is one. One that nothing can be bound
    /// to is not the same as none.
    fn caller(&self) -> Result<Arc<Caller>, Refusal> {
        let session = if self.head.has(SESSION_ID) {
            let session = self.head.only(SESSION_ID).filter(|session| session.len() <= LONGEST_BINDING);
            Some(session.ok_or(Refusal::SessionHeader)?.to_owned())
        } else {
            None
        };
        Ok(Arc::new(Caller { principal: self.admitted.principal.to_string(), session }))
    }
}

/// A body that counts as held, and nothing beside it.
fn counted(charge: Charge) -> Beside {
    Beside { charge: Some(charge), ..Beside::default() }
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
}
