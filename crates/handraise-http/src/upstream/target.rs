//! Where a server is: its URL, and the headers that every request to it carries.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use http::{
    HeaderMap, HeaderName, HeaderValue, Uri,
    header::{ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRANSFER_ENCODING, UPGRADE},
    uri::Scheme,
};
use sha2::{Digest as _, Sha256};

/// An MCP server at a URL.
#[derive(Clone)]
pub struct Target {
    pub(crate) uri: Uri,
    /// What every request carries. Values are credentials: they are marked as such, and shown nowhere.
    pub(crate) headers: HeaderMap,
    identity: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("host", &self.host()).finish_non_exhaustive()
    }
}

/// Why there is no such server. Values of headers, and what a URL may hold beside its host, are not shown.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TargetError {
    /// It is no URL.
    #[error("the upstream takes a URL such as https://mcp.example/mcp")]
    NoUrl,
    /// It is no HTTP.
    #[error("the upstream takes an https:// URL, or http:// to this machine; this one begins with {0:?}")]
    Scheme(String),
    /// The way is not encrypted.
    #[error("{0} is not this machine, and http:// is not encrypted: use https://")]
    Plain(String),
    /// There are credentials in the URL.
    #[error(
        "the upstream's URL holds a user name or password; put an Authorization header into [upstream] headers"
    )]
    Credentials,
    /// A header's name is none.
    #[error("[upstream] headers: {0:?} is no name of a header")]
    HeaderName(String),
    /// A header's value is none.
    #[error("[upstream] headers: the value of {0:?} has characters that no header may have")]
    HeaderValue(String),
    /// The header is not anybody's to set.
    #[error("[upstream] headers: {0:?} is set for each request; leave it out")]
    Reserved(String),
}

impl Target {
    /// The server at `url`, with `headers` on every request.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn new<'a>(
        url: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, TargetError> {
        let uri: Uri = url.trim().parse().map_err(|_| TargetError::NoUrl)?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(TargetError::NoUrl);
        };
        if authority.as_str().contains('@') {
            return Err(TargetError::Credentials);
        }
        let host = authority.host();
        if host.is_empty() {
            return Err(TargetError::NoUrl);
        }
        if *scheme == Scheme::HTTP {
            if !is_loopback(host) {
                return Err(TargetError::Plain(host.to_owned()));
            }
        } else if *scheme != Scheme::HTTPS {
            return Err(TargetError::Scheme(scheme.as_str().to_owned()));
        }
        let identity = identity(&uri);
        Ok(Self { headers: read(headers)?, uri, identity })
    }

    /// What states say that they are about (S22): the URL, wherever and whenever we run. A digest, because clients see
    /// states, and URLs hold keys.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The host, for people.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// The host with its port, where the URL has one: what may be shown of it.
    pub(crate) fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

fn identity(uri: &Uri) -> String {
    Sha256::digest(uri.to_string()).iter().fold("http:".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn read<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, TargetError> {
    let mut read = HeaderMap::new();
    for (given, value) in headers {
        let name: HeaderName = given.parse().map_err(|_| TargetError::HeaderName(given.to_owned()))?;
        if is_reserved(&name) {
            return Err(TargetError::Reserved(given.to_owned()));
        }
        let mut value =
            HeaderValue::from_str(value).map_err(|_| TargetError::HeaderValue(given.to_owned()))?;
        value.set_sensitive(true);
        read.append(name, value);
    }
    Ok(read)
}

/// Headers that say something about one request, or about the connection.
fn is_reserved(name: &HeaderName) -> bool {
    [ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRANSFER_ENCODING, UPGRADE].contains(name)
        || name.as_str().starts_with("mcp-")
        || name == handraise_mcp::http::headers::LAST_EVENT_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(url: &str) -> TargetError {
        Target::new(url, []).unwrap_err()
    }

    #[test]
    fn plain_http_leads_to_this_machine_alone() {
        for url in
            ["http://localhost:1/mcp", "http://127.0.0.1/", "http://127.9.9.9:8/mcp", "http://[::1]:1/mcp"]
        {
            assert!(!Target::new(url, []).unwrap().is_encrypted(), "{url}");
        }
        assert!(Target::new("https://mcp.example/mcp?key=1", []).unwrap().is_encrypted());
        for host in ["mcp.example", "127.0.0.1.example", "localhost.example", "0.0.0.0", "10.0.0.1"] {
            assert_eq!(failed(&format!("http://{host}/mcp")), TargetError::Plain(host.to_owned()));
        }
    }

    #[test]
    fn what_is_no_such_url_is_named_without_its_secrets() {
        assert_eq!(failed("/mcp"), TargetError::NoUrl);
        assert_eq!(failed("mcp.example"), TargetError::NoUrl);
        assert_eq!(failed("ftp://h/"), TargetError::Scheme("ftp".to_owned()));
        assert_eq!(failed("https://ada:hunter2@mcp.example/"), TargetError::Credentials);
        assert!(!failed("https://ada:hunter2@mcp.example/").to_string().contains("hunter2"));
    }

    #[test]
    fn headers_are_credentials_and_not_what_a_request_says() {
        let target =
            Target::new("https://h/", [("Authorization", "Bearer hunter2"), ("X-Team", "a")]).unwrap();
        assert!(!format!("{target:?} {:?}", target.headers).contains("hunter2"));
        assert_eq!(target.headers["authorization"], "Bearer hunter2");
        for name in ["Content-Type", "mcp-session-id", "Mcp-Name", "Host", "Last-Event-ID", "accept"] {
            let error = Target::new("https://h/", [(name, "x")]).unwrap_err();
            assert_eq!(error, TargetError::Reserved(name.to_owned()));
        }
        let error = Target::new("https://h/", [("X-Key", "hunter2\n")]).unwrap_err();
        assert_eq!(error, TargetError::HeaderValue("X-Key".to_owned()));
        assert_eq!(
            Target::new("https://h/", [("a b", "x")]).unwrap_err(),
            TargetError::HeaderName("a b".to_owned())
        );
    }

    #[test]
    fn s22_a_url_is_one_upstream_and_another_url_is_another() {
        let identity = |url: &str| Target::new(url, []).unwrap().identity().to_owned();
        assert_eq!(identity("https://h/mcp"), identity("https://h/mcp"));
        assert_ne!(identity("https://h/mcp"), identity("https://h/mcp?k=hunter2"));
        assert!(!identity("https://h/mcp?k=hunter2").contains("hunter2"));
    }
}
