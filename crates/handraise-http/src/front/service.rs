//! One HTTP request: whether it is let in, and who serves it.

use std::sync::Arc;

use handraise_mcp::http::headers::{LAST_EVENT_ID, SESSION_ID};
use http::{HeaderName, Method, Request, Response, StatusCode, request::Parts};
use hyper::body::Incoming;

use super::{
    Front,
    body::Body,
    door::Place,
    link::{Desk, Link},
    metrics::{self, Count},
    post,
    replay::EventId,
    reply::{self, Refusal},
    walls::{self, only},
};

/// The endpoint.
const ENDPOINT: &str = "/mcp";
/// The counters, for this machine.
const METRICS: &str = "/metrics";

/// Serves a request.
pub(crate) async fn handle(
    front: &Arc<Front>,
    request: Request<Incoming>,
    place: &Arc<Place>,
    is_local: bool,
) -> Response<Body> {
    let busy = place.work();
    front.metrics.count(Count::Requests);
    let (head, body) = request.into_parts();
    let response = match let_in(front, &head, is_local) {
        Err(refusal) => {
            count(front, refusal);
            refusal.response(None)
        }
        Ok(Purpose::Metrics) => {
            place.let_in();
            reply::text(metrics::text(front))
        }
        Ok(Purpose::Endpoint(principal)) => {
            place.let_in();
            let served = match head.method {
                Method::POST => post::serve(front, &head, body, &principal).await,
                Method::GET => get(front, &head, &principal),
                Method::DELETE => delete(front, &head, &principal),
                _ => Err(Refusal::Method),
            };
            served.unwrap_or_else(|refusal| {
                count(front, refusal);
                refusal.response(None)
            })
        }
    };
    response.map(|body| body.with(busy))
}

/// What a request that is let in is for.
enum Purpose {
    Metrics,
    Endpoint(Arc<str>),
}

fn let_in(front: &Front, head: &Parts, is_local: bool) -> Result<Purpose, Refusal> {
    front.walls.check(&head.headers, &head.uri)?;
    match head.uri.path() {
        ENDPOINT => Ok(Purpose::Endpoint(front.callers.identify(&head.headers)?)),
        METRICS if head.method == Method::GET && is_local && walls::is_local(&head.headers) => {
            Ok(Purpose::Metrics)
        }
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
        // Counted where it is found, or no bound.
        Refusal::Sessions
        | Refusal::Children
        | Refusal::NotFound
        | Refusal::Method
        | Refusal::MediaType
        | Refusal::Broken
        | Refusal::NoSession
        | Refusal::NoEnvelope
        | Refusal::UnknownSession
        | Refusal::IdInUse
        | Refusal::Start
        | Refusal::Ended => return,
    };
    front.metrics.count(what);
}

/// The session that a request names.
pub(crate) fn session(front: &Front, head: &Parts, principal: &str) -> Result<Option<Arc<Link>>, Refusal> {
    const NAME: HeaderName = HeaderName::from_static(SESSION_ID);
    if !head.headers.contains_key(&NAME) {
        return Ok(None);
    }
    let id = only(&head.headers, &NAME).ok_or(Refusal::UnknownSession)?;
    front.session(id, principal).ok_or(Refusal::UnknownSession).map(Some)
}

/// The GET stream of a session, or the rest of another of its streams.
fn get(front: &Front, head: &Parts, principal: &str) -> Result<Response<Body>, Refusal> {
    let link = session(front, head, principal)?.ok_or(Refusal::Method)?;
    let last = only(&head.headers, &HeaderName::from_static(LAST_EVENT_ID)).and_then(EventId::parse);
    let events = link.at_desk(|desk| match desk {
        Desk::Session(desk) => {
            front.metrics.add(Count::ReplayedOut, desk.take_dropped());
            Some(desk.attach(last))
        }
        Desk::Shared(_) => None,
    });
    let events = events.ok_or(Refusal::UnknownSession)?;
    Ok(reply::stream(Body::events(events, None)))
}

/// Ends a session.
fn delete(front: &Front, head: &Parts, principal: &str) -> Result<Response<Body>, Refusal> {
    let link = session(front, head, principal)?.ok_or(Refusal::Method)?;
    front.forget(&link);
    link.end();
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
