//! How a request failed, in the words that its client reads. What the server wrote beside the protocol is not among
//! them (S33).

use std::{error::Error, io};

use handraise_mcp::frame::{Id, error_response};
use http::StatusCode;

/// JSON-RPC: the request failed for reasons of the server's.
const INTERNAL: i32 = -32603;

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot reach the MCP server: {0}")]
    Unreachable(String),
    #[error("the MCP server answered with HTTP status {}{}", .0.as_u16(), hint(*.0))]
    Status(StatusCode),
    #[error("the MCP server answered with something that is no JSON-RPC response to this request")]
    NoResponse,
    #[error("the answer of the MCP server broke off")]
    BrokeOff,
    #[error(
        "no room for the answer: all answers of the MCP server that are being read may hold {0} bytes together \
         (mcp.in_flight_bytes); try again later"
    )]
    Full(usize),
    #[error("the answer to a question of the MCP server does not reach it, so that this call cannot go on")]
    AnswerLost,
    #[error("the MCP server no longer knows the session; initialize again")]
    SessionLost,
}

impl Failure {
    /// The error response to the request.
    pub(crate) fn response(&self, id: Id<'_>) -> Vec<u8> {
        error_response(id.raw(), INTERNAL, &self.to_string(), None)
    }

    /// A request that never got an answer.
    pub(crate) fn unreachable(error: &hyper_util::client::legacy::Error) -> Self {
        if error.is_connect() {
            return Self::Unreachable(reason(error));
        }
        match innermost::<hyper::Error>(error) {
            Some(error) if error.is_incomplete_message() || error.is_canceled() => Self::BrokeOff,
            _ => Self::Unreachable(reason(error)),
        }
    }
}

fn hint(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the credentials in [upstream] headers",
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => "; check the URL",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "; try again later",
        status if status.is_redirection() => {
            ", a redirect, which is not followed; give the URL that it leads to"
        }
        _ => "",
    }
}

/// What an error comes from: the words of the system or of TLS, which hold nothing that a server wrote.
fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(error) = innermost::<rustls::Error>(error) {
        return error.to_string();
    }
    match innermost::<io::Error>(error) {
        Some(error) if error.raw_os_error().is_some() => error.kind().to_string(),
        Some(error) => error.to_string(),
        None => "the connection broke".to_owned(),
    }
}

/// The last of an error's sources that is a `T`. An `io::Error` hides what it was made from behind `get_ref`.
fn innermost<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut found = None;
    let mut next: Option<&'a (dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        found = error.downcast_ref().or(found);
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s33_a_failure_says_what_to_do_and_nothing_of_the_server() {
        let said = |status: u16| Failure::Status(StatusCode::from_u16(status).unwrap()).to_string();
        assert_eq!(
            said(401),
            "the MCP server answered with HTTP status 401; check the credentials in [upstream] headers"
        );
        assert_eq!(said(500), "the MCP server answered with HTTP status 500");
        assert!(said(307).contains("is not followed"));
        let id = Id::parse("7").unwrap();
        assert_eq!(
            String::from_utf8(Failure::BrokeOff.response(id)).unwrap(),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the answer of the MCP server broke off"}}"#
        );
    }
}
