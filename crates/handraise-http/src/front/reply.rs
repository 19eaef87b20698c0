//! Answers that we give ourselves, as frames and as responses.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::body::Body;

/// JSON-RPC: the frame is no valid request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the method does not exist.
pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC: the request failed for reasons of ours.
pub(crate) const INTERNAL: i32 = -32603;

/// After how many seconds it may be worth trying again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// An error response. `id` is JSON text; `message` is one of ours, without quotes.
pub(crate) fn error(id: &str, code: i32, message: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}")
        .into_bytes()
}

/// A response with a result, both as JSON text.
pub(crate) fn result(id: &str, result: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}").into_bytes()
}

/// What a request is answered with, however that is written.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) kind: Kind,
    /// A header that this answer has beside those of its kind.
    pub(crate) also: Option<(HeaderName, HeaderValue)>,
    pub(crate) body: Body,
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is none.
    Nothing,
    Json,
    Events,
    /// For people.
    Text,
}

impl Kind {
    /// The headers that say so.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Nothing => &[],
            Self::Json => &[("content-type", "application/json")],
            Self::Events => &[
                ("content-type", "text/event-stream"),
                ("cache-control", "no-cache, no-transform"),
                ("x-accel-buffering", "no"),
            ],
            Self::Text => &[("content-type", "text/plain; version=0.0.4; charset=utf-8")],
        }
    }
}

impl Reply {
    fn new(status: StatusCode, kind: Kind, body: Body) -> Self {
        Self { status, kind, also: None, body }
    }
}

impl From<Reply> for Response<Body> {
    fn from(reply: Reply) -> Self {
        let Reply { status, kind, also, body } = reply;
        let mut response = Self::new(body);
        *response.status_mut() = status;
        for (name, value) in kind.headers() {
            let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
            response.headers_mut().insert(name, value);
        }
        response.headers_mut().extend(also);
        response
    }
}

/// A JSON text.
pub(crate) fn json(status: StatusCode, body: Body) -> Reply {
    Reply::new(status, Kind::Json, body)
}

/// A status and nothing else.
pub(crate) fn empty(status: StatusCode) -> Reply {
    Reply::new(status, Kind::Nothing, Body::empty())
}

/// A stream of events.
pub(crate) fn stream(body: Body) -> Reply {
    Reply::new(StatusCode::OK, Kind::Events, body)
}

/// A text for people.
pub(crate) fn text(text: String) -> Reply {
    Reply::new(StatusCode::OK, Kind::Text, Body::whole(text.into_bytes().into()))
}

/// Why a request is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this server answers to loopback names only, and to mcp.allowed_hosts of its configuration")]
    Host,
    #[error("pages of this origin may not use this server; mcp.allowed_origins names those that may")]
    Origin,
    #[error("a token of a [[caller]] is needed: Authorization: Bearer …")]
    Unauthorized,
    #[error("there is nothing at this path; the endpoint is /mcp")]
    NotFound,
    #[error("this method is not allowed here without a session; requests are POSTed")]
    Method,
    #[error("the body must be application/json")]
    MediaType,
    #[error("the body is too long")]
    TooLarge,
    #[error("the body did not come in time")]
    Slow,
    #[error("the body broke off")]
    Broken,
    #[error("too many bytes are in flight")]
    InFlight,
    #[error("there are as many sessions as there may be")]
    Sessions,
    #[error("there are as many server processes as there may be")]
    Children,
    #[error("this principal has as many subscriptions as it may have")]
    Subscriptions,
    #[error("no session is named; initialize opens one, and its response names it in Mcp-Session-Id")]
    NoSession,
    #[error(
        "the request says in a header that it describes itself, and params._meta names no protocol version"
    )]
    NoEnvelope,
    #[error(
        "server/discover is a request that describes itself, in params._meta; initialize opens a session"
    )]
    NoDiscovery,
    #[error(
        "initialize is of earlier versions: a request that describes itself, in params._meta, opens no session"
    )]
    NoOpening,
    #[error("Mcp-Session-Id must be one text of at most 256 bytes")]
    SessionHeader,
    #[error("there is no such session; initialize opens a new one")]
    UnknownSession,
    #[error("an open request of this session has this id")]
    IdInUse,
    #[error("the MCP server could not be started; the log of handraise mcp says why")]
    Start,
    #[error("the MCP server ended before it answered")]
    Ended,
    #[error("the MCP server keeps ending, and is not started again before {0} s have passed")]
    Restarting(u64),
    #[error("handraise mcp is ending")]
    Ending,
}

impl Refusal {
    /// After how many seconds it may be worth trying again.
    fn retry_after(self) -> HeaderValue {
        if let Self::Restarting(seconds) = self { seconds.into() } else { RETRY_AFTER }
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::NotFound | Self::UnknownSession | Self::NoOpening => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken
            | Self::NoSession
            | Self::NoEnvelope
            | Self::NoDiscovery
            | Self::SessionHeader
            | Self::IdInUse => StatusCode::BAD_REQUEST,
            Self::InFlight
            | Self::Sessions
            | Self::Children
            | Self::Subscriptions
            | Self::Restarting(_)
            | Self::Ending => StatusCode::SERVICE_UNAVAILABLE,
            Self::Start | Self::Ended => StatusCode::BAD_GATEWAY,
        }
    }

    /// The answer, under a request's id where that is known. `id` is JSON text.
    pub(crate) fn reply(self, id: Option<&str>) -> Reply {
        let status = self.status();
        let code = match self {
            Self::NoEnvelope => INVALID_PARAMS,
            Self::NoDiscovery | Self::NoOpening => METHOD_NOT_FOUND,
            _ if status.is_server_error() => INTERNAL,
            _ => INVALID_REQUEST,
        };
        let frame = error(id.unwrap_or("null"), code, &self.to_string());
        let also = match status {
            _ if self == Self::Ending => Some((header::CONNECTION, HeaderValue::from_static("close"))),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, self.retry_after())),
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, HeaderValue::from_static("POST"))),
            // What is left of the body is not read.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                Some((header::CONNECTION, HeaderValue::from_static("close")))
            }
            _ => None,
        };
        Reply { also, ..json(status, Body::whole(frame.into())) }
    }
}
