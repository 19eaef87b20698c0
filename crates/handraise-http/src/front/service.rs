//! One HTTP request: whether it is let in, and who serves it.

use std::sync::Arc;

use handraise_mcp::{
    frame::overlong::{self, Overlong},
    http::headers::{LAST_EVENT_ID, SESSION_ID},
};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::{
    Front,
    body::{self, Body, NotTaken},
    desk::Desk,
    door::{Busy, Place},
    head::{Head, listed},
    link::Link,
    metrics::{self, Count},
    pieces::Came,
    post::{self, Admitted, Served},
    replay::EventId,
    reply::{self, Refusal, Reply},
    walls,
};

/// The endpoint.
pub(crate) const ENDPOINT: &str = "/mcp";
/// The counters, for this machine.
const METRICS: &str = "/metrics";

/// Serves a request that hyper has read.
pub(crate) async fn handle(
    front: &Arc<Front>,
    request: Request<Incoming>,
    place: &Arc<Place>,
    is_local: bool,
) -> Response<Body> {
    let mut busy = place.work();
    front.metrics.count(Count::Requests);
    let (parts, body) = request.into_parts();
    let headers = listed(&parts.headers);
    let head = Head::of(&parts, &headers);
    let served = match let_in(front, &head, is_local) {
        Err(refusal) => Err(refusal),
        Ok(purpose) => {
            place.let_in();
            match (purpose, head.method) {
                (Purpose::Metrics, _) => Ok(reply::text(metrics::text(front))),
                (Purpose::Endpoint(principal), "POST") => {
                    post(front, &head, &principal, body, &mut busy).await
                }
                (Purpose::Endpoint(principal), "GET") => get(front, &head, &principal),
                (Purpose::Endpoint(principal), "DELETE") => delete(front, &head, &principal),
                (Purpose::Endpoint(_), _) => Err(Refusal::Method),
            }
        }
    };
    let reply = served.unwrap_or_else(|refusal| {
        count(front, refusal);
        refusal.reply(None)
    });
    if place.is_half_closed() {
        reply.body.note_half_closed();
    }
    Response::from(reply).map(|body| body.with(busy))
}

/// Collects what is POSTed, and serves it.
async fn post(
    front: &Arc<Front>,
    head: &Head<'_>,
    principal: &Arc<str>,
    body: Incoming,
    busy: &mut Busy,
) -> Result<Reply, Refusal> {
    let admitted = Admitted::new(front, head, principal)?;
    match body::collect(body, front.max_frame, &admitted.budget(front)).await {
        Ok((body, charge)) => match post::serve(front, head, &admitted, Came::own(&body), charge, None) {
            Served::Now(reply) => Ok(reply),
            Served::Later(waiting) => {
                waiting.mark(busy);
                Ok(waiting.reply().await)
            }
        },
        Err(NotTaken { refusal, head }) => {
            if refusal == Refusal::TooLarge
                && let (Some(link), Overlong::Response(Some(id))) =
                    (admitted.session(), overlong::read(&head, &[]))
            {
                link.client_too_long(&id);
            }
            Err(refusal)
        }
    }
}

/// What a request that is let in is for.
pub(crate) enum Purpose {
    Metrics,
    Endpoint(Arc<str>),
}

/// Lets a request in, or not.
pub(crate) fn let_in(front: &Front, head: &Head<'_>, is_local: bool) -> Result<Purpose, Refusal> {
    front.walls.check(head)?;
    match head.path {
        ENDPOINT => Ok(Purpose::Endpoint(front.callers.identify(head)?)),
        METRICS if head.method == "GET" && is_local && walls::is_local(head) => Ok(Purpose::Metrics),
        _ => Err(Refusal::NotFound),
    }
}

/// Counts what was turned away, where it was not counted before.
pub(crate) fn count(front: &Front, refusal: Refusal) {
    let what = match refusal {
        Refusal::Host => Count::Host,
        Refusal::Origin => Count::Origin,
        Refusal::Unauthorized => Count::Unauthorized,
        Refusal::TooLarge => Count::LargeBodies,
        Refusal::Slow => Count::SlowBodies,
        Refusal::InFlight => Count::InFlight,
        Refusal::Subscriptions => Count::Subscriptions,
        Refusal::Restarting(_) => Count::Restarting,
        // Counted where it is found, or no bound.
        Refusal::Sessions
        | Refusal::Children
        | Refusal::NotFound
        | Refusal::Method
        | Refusal::MediaType
        | Refusal::Broken
        | Refusal::NoSession
        | Refusal::NoEnvelope
        | Refusal::NoDiscovery
        | Refusal::NoOpening
        | Refusal::SessionHeader
        | Refusal::UnknownSession
        | Refusal::IdInUse
        | Refusal::Start
        | Refusal::Ended
        | Refusal::Ending => return,
    };
    front.metrics.count(what);
}

/// The session that a request names.
pub(crate) fn session(front: &Front, head: &Head<'_>, principal: &str) -> Result<Option<Arc<Link>>, Refusal> {
    if !head.has(SESSION_ID) {
        return Ok(None);
    }
    let id = head.only(SESSION_ID).ok_or(Refusal::UnknownSession)?;
    front.session(id, principal).ok_or(Refusal::UnknownSession).map(Some)
}

/// The GET stream of a session, or the rest of another of its streams.
pub(super) fn get(front: &Front, head: &Head<'_>, principal: &str) -> Result<Reply, Refusal> {
    let link = session(front, head, principal)?.ok_or(Refusal::Method)?;
    let last = head.only(LAST_EVENT_ID).and_then(EventId::parse);
    let events = link.at_desk(|desk| match desk {
        Desk::Session(desk) => desk.attach(last),
        Desk::Shared(_) => None,
    });
    let events = events.ok_or(Refusal::UnknownSession)?;
    Ok(reply::stream(Body::events(events, None)))
}

/// Ends a session.
fn delete(front: &Front, head: &Head<'_>, principal: &str) -> Result<Reply, Refusal> {
    let link = session(front, head, principal)?.ok_or(Refusal::Method)?;
    front.forget(&link);
    link.end();
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
