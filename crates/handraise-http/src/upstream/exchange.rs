//! One request of the client: its POST, and whatever comes back until it is answered.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use handraise_mcp::{
    frame::{ClientFrame, Id, Looks, RequestId, ServerFrame},
    http::headers::{LAST_EVENT_ID, PARAM_PREFIX, SESSION_ID, mirrored},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, USER_AGENT},
};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{self, Answer, Content},
    context::{Context, News},
    dial::Outgoing,
    events::{self, End, Progress},
    failure::Failure,
    link::{Arrival, Waiting},
    session::Session,
    tools,
};
use crate::budget::Charge;

/// How long a call that was cancelled may still be answered.
const AFTER_CANCEL: Duration = Duration::from_secs(1);
/// How often a stream that broke is come back to without anything new.
const MOST_TRIES: u32 = 5;

/// A request on its way.
pub(crate) struct Call {
    pub(crate) id: RequestId,
    pub(crate) kind: Kind,
    pub(crate) headers: HeaderMap,
    /// Its answer is a list of tools.
    pub(crate) lists_tools: bool,
    /// The client no longer waits for the answer.
    pub(crate) cancelled: CancellationToken,
    /// Fires when the answer to a question that came on its stream is lost.
    pub(crate) unanswered: CancellationToken,
}

/// What of a request is sent, and held no longer than that takes.
pub(crate) struct Sending {
    pub(crate) body: Bytes,
    pub(crate) again: Option<Again>,
    /// Told when it has left.
    pub(crate) has_left: oneshot::Sender<()>,
}

/// A call that can be sent once more, with other headers, if it is refused for those that it has.
pub(crate) struct Again {
    pub(crate) body: Bytes,
    pub(crate) params: Option<Arc<HeaderMap>>,
    _held: Charge,
}

impl Again {
    /// What is sent, once more; `None`: there is no room to hold it.
    pub(crate) fn new(context: &Context, waiting: &Waiting) -> Option<Self> {
        let held = context.again.charge(waiting.frame.len())?;
        let params = waiting.beside.params.clone();
        Some(Self { body: waiting.frame.clone(), params, _held: held })
    }
}

/// What a request belongs to.
pub(crate) enum Kind {
    /// It describes itself.
    Modern,
    /// It opens a session, of this number.
    Opening(u64),
    /// It is of a session, or of a client that has opened none.
    Legacy(Option<Arc<Session>>),
}

impl Call {
    fn session(&self) -> Option<&Arc<Session>> {
        if let Kind::Legacy(session) = &self.kind { session.as_ref() } else { None }
    }
}

/// Sees a request through.
pub(crate) async fn run(context: Arc<Context>, call: Call, sending: Sending) {
    let session = call.session().cloned();
    let lost = async {
        match &session {
            Some(session) => session.lost.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let given_up = async {
        call.cancelled.cancelled().await;
        sleep(AFTER_CANCEL).await;
    };
    let outcome = tokio::select! {
        outcome = attempt(&context, &call, sending) => outcome,
        () = lost => Err(Failure::SessionLost),
        () = call.unanswered.cancelled() => Err(Failure::AnswerLost),
        () = given_up => Ok(()),
    };
    // What it was asked is nobody's any more.
    call.unanswered.cancel();
    if let Err(failure) = outcome {
        if let (Failure::SessionLost, Some(session)) = (&failure, &session) {
            session.lost.cancel();
        }
        if !call.cancelled.is_cancelled() {
            tracing::warn!("a request to the MCP server failed: {failure}");
            // The news first: the client may open another session at once.
            if let Kind::Opening(_) = call.kind {
                context.tell(News::OpeningEnded);
            }
            let response = failure.response(call.id.borrow());
            let _ = context.emit(Arrival::from(response)).await;
            return;
        }
    }
    if let Kind::Opening(_) = call.kind {
        context.tell(News::OpeningEnded);
    }
}

async fn attempt(context: &Context, call: &Call, sending: Sending) -> Result<(), Failure> {
    let Ok(_slot) = context.slots.acquire().await else { return Ok(()) };
    let id = call.id.borrow();
    let Sending { body, again, has_left } = sending;
    let (mut answer, mut given) = send(context, call, &call.headers, body, Some(has_left)).await?;
    if let (Some(again), Answer::Frames(frames, _)) = (again, &answer)
        && tools::is_mismatch(frames, id)
        && let Some(headers) = tools::learn_for(context, &call.headers, &again).await
    {
        // It was refused for its headers, before anything ran.
        (answer, given) = send(context, call, &headers, again.body, None).await?;
    }
    let answered = |frame: &ServerFrame<'_>| observe(context, call, frame, given.as_ref());
    match answer {
        Answer::Frames(frames, held) => {
            for bytes in frames {
                if let Ok(frame) = ServerFrame::read(&bytes, |_| Looks::default())
                    && (frame.request_id().is_some() || frame.response_id().is_some_and(|found| found.is(id)))
                {
                    answered(&frame);
                }
                let _ = context.emit(Arrival::new(bytes, &held)).await;
            }
            Ok(())
        }
        Answer::Stream(body) => {
            let mut progress = Progress::new(context.server.limit);
            match events::read(context, body, &mut progress, Some(id), &answered).await {
                End::Answered | End::Unwanted => Ok(()),
                End::Failed(failure) => Err(failure),
                End::Over => resume(context, call, &mut progress, id, &answered).await,
            }
        }
    }
}

/// Sends the request; what comes, and the name of the session that came with it.
async fn send(
    context: &Context,
    call: &Call,
    headers: &HeaderMap,
    body: Bytes,
    has_left: Option<oneshot::Sender<()>>,
) -> Result<(Answer, Option<HeaderValue>), Failure> {
    let request = post(context, headers, body, has_left);
    let response = context.server.http.request(request).await.map_err(|error| {
        let failure = Failure::unreachable(&error);
        // Whoever runs us knows the address; clients may be somebody else's.
        tracing::warn!(server = context.server.target.authority(), "{failure}");
        failure
    })?;
    let given = response.headers().get(SESSION_ID).cloned();
    let in_session = call.session().is_some_and(|session| session.id.is_some());
    let answer = answer::read(context, response, call.id.borrow(), in_session).await?;
    Ok((answer, given))
}

/// Comes back to a legacy stream that ended before its answer, where it went on from the last event.
async fn resume(
    context: &Context,
    call: &Call,
    progress: &mut Progress,
    id: Id<'_>,
    answered: &impl Fn(&ServerFrame<'_>),
) -> Result<(), Failure> {
    let Some(session) = call.session() else { return Err(Failure::BrokeOff) };
    let mut tries = 0;
    while tries < MOST_TRIES {
        let Some(last) = progress.last_id.clone() else { return Err(Failure::BrokeOff) };
        sleep(backoff(progress.retry, tries)).await;
        let seen = progress.events;
        tries += 1;
        let Ok(response) = context.server.http.request(get(context, session, Some(&last))).await else {
            continue;
        };
        match (response.status(), answer::content(response.headers())) {
            (status, Content::Events) if status.is_success() => {
                match events::read(context, response.into_body(), progress, Some(id), answered).await {
                    End::Answered | End::Unwanted => return Ok(()),
                    End::Failed(failure) => return Err(failure),
                    End::Over => {}
                }
                if progress.events > seen {
                    tries = 0;
                }
            }
            (StatusCode::NOT_FOUND, _) if session.id.is_some() => return Err(Failure::SessionLost),
            (status, _) if status.is_client_error() => return Err(Failure::BrokeOff),
            _ => {}
        }
    }
    Err(Failure::BrokeOff)
}

/// How long to wait before the next try: what the server asked for, or a second, and longer every time.
pub(crate) fn backoff(asked: Option<Duration>, tries: u32) -> Duration {
    const LEAST: Duration = Duration::from_millis(10);
    const MOST: Duration = Duration::from_secs(30);
    let first = asked.unwrap_or(Duration::from_secs(1)).max(LEAST);
    first.saturating_mul(2_u32.saturating_pow(tries)).min(MOST)
}

/// Learns from an answer what later requests need, and from a question what its answer belongs to.
fn observe(context: &Context, call: &Call, frame: &ServerFrame<'_>, given: Option<&HeaderValue>) {
    if let Some(id) = frame.request_id() {
        context.note_asked(id, Some(&call.unanswered));
        return;
    }
    if let Kind::Opening(number) = call.kind {
        let version = frame.result_member("protocolVersion").and_then(version);
        if let Some(version) = version {
            context.tell(News::Opened(Session::new(number, given.cloned(), version)));
        }
    }
    if call.lists_tools {
        tools::learn(context, frame);
    }
}

/// A negotiated version, which later requests carry in a header.
fn version(json: &str) -> Option<HeaderValue> {
    const LONGEST: usize = 64;
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    let fits = text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    HeaderValue::from_str(text).ok().filter(|_| fits && !text.is_empty())
}

/// Tells the server that a session is over.
pub(crate) async fn end_session(context: &Context, session: &Session, patience: Duration) {
    if session.id.is_none() || session.lost.is_cancelled() {
        return;
    }
    let request = bare(context, Method::DELETE, &session.headers());
    let told = timeout(patience, context.server.http.request(request)).await;
    let status = told.ok().and_then(Result::ok).map(|response| response.status().as_u16());
    tracing::debug!(status, "the session is ended");
}

/// Opens a stream of a session.
pub(crate) fn get(context: &Context, session: &Session, last_id: Option<&str>) -> Request<Outgoing> {
    let mut headers = session.headers();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert(HeaderName::from_static(LAST_EVENT_ID), id);
    }
    bare(context, Method::GET, &headers)
}

pub(crate) fn post(
    context: &Context,
    headers: &HeaderMap,
    body: Bytes,
    has_left: Option<oneshot::Sender<()>>,
) -> Request<Outgoing> {
    let mut request = bare(context, Method::POST, headers);
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    *request.body_mut() = Outgoing::new(body, has_left);
    request
}

fn bare(context: &Context, method: Method, headers: &HeaderMap) -> Request<Outgoing> {
    let mut request = Request::new(Outgoing::default());
    *request.method_mut() = method;
    *request.uri_mut() = context.server.target.uri.clone();
    let all = request.headers_mut();
    all.insert(USER_AGENT, HeaderValue::from_static(concat!("handraise/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in &context.server.target.headers {
        all.append(name, value.clone());
    }
    for (name, value) in headers {
        all.insert(name, value.clone());
    }
    request
}

/// The headers of a frame that describes itself, and of the `Mcp-Param-*` that it came with those that its tool is not
/// known to mirror: what we compute from the body is what counts.
pub(crate) fn modern_headers(
    context: &Context,
    frame: &ClientFrame<'_>,
    version: &str,
    params: Option<&HeaderMap>,
) -> HeaderMap {
    let tools = context.tools();
    let tool = handraise_mcp::http::headers::name(frame).and_then(|name| tools.get(&name));
    let is_unknown = |name: &HeaderName| !tool.is_some_and(|tool| tool.mirrors_as(name.as_str()));
    let unknown = params.into_iter().flatten().filter(|(name, _)| is_unknown(name));
    let mut headers: HeaderMap = unknown.map(|(name, value)| (name.clone(), value.clone())).collect();
    for header in mirrored(frame, version, tool) {
        // A version that fits no header is the server's to refuse.
        let (Ok(name), Ok(value)) = (header.name.parse::<HeaderName>(), HeaderValue::from_str(&header.value))
        else {
            continue;
        };
        headers.insert(name, value);
    }
    headers
}

/// The `Mcp-Param-*` of a session's request, whose client writes such headers: as above.
pub(crate) fn param_headers(context: &Context, frame: &ClientFrame<'_>, params: &HeaderMap) -> HeaderMap {
    let all = modern_headers(context, frame, "", Some(params));
    all.into_iter()
        .filter_map(|(name, value)| {
            Some((name.filter(|name| name.as_str().starts_with(PARAM_PREFIX))?, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let waits: Vec<u64> = (0..6).map(|tries| backoff(None, tries).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30]);
        assert_eq!(backoff(Some(Duration::ZERO), 0), Duration::from_millis(10));
        assert_eq!(backoff(Some(Duration::from_secs(4000)), 40), Duration::from_secs(30));
    }

    #[test]
    fn a_version_is_one_short_word() {
        assert_eq!(version("\"2025-11-25\"").unwrap(), "2025-11-25");
        for json in ["2025", "\"\"", "\"a b\"", "\"a\\u0062\"", "\"é\"", "null", "\"", ""] {
            assert_eq!(version(json), None, "{json}");
        }
        assert_eq!(version(&format!("\"{}\"", "1".repeat(65))), None);
    }
}
