//! A session at the server: its name, and whether it is still one.

use std::sync::Arc;

use handraise_mcp::http::headers::{PROTOCOL_VERSION, SESSION_ID};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

/// A session that the server has opened.
#[derive(Debug)]
pub(crate) struct Session {
    /// Which of its link's requests has opened it.
    pub(crate) number: u64,
    /// Its name, where the server gave it one.
    pub(crate) id: Option<HeaderValue>,
    /// The version that was negotiated.
    pub(crate) version: HeaderValue,
    /// The server does not know it any more.
    pub(crate) lost: CancellationToken,
    /// We have ended it.
    pub(crate) over: CancellationToken,
}

impl Session {
    pub(crate) fn new(number: u64, id: Option<HeaderValue>, version: HeaderValue) -> Arc<Self> {
        // A copy: what was read with it would be held for as long as the session.
        let id = id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()).map(|mut id| {
            id.set_sensitive(true);
            id
        });
        Arc::new(Self { number, id, version, lost: CancellationToken::new(), over: CancellationToken::new() })
    }

    /// The headers of what belongs to the session.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(HeaderName::from_static(SESSION_ID), id.clone());
        }
        headers.insert(HeaderName::from_static(PROTOCOL_VERSION), self.version.clone());
        headers
    }
}
