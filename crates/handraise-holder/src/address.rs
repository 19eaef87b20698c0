//! Where the inbox is, and what opens it.

use std::{fmt, path::PathBuf, str::FromStr};

/// Where the inbox listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxAddress {
    /// A socket file on this machine: the default.
    Socket(PathBuf),
    /// Plain HTTP on loopback: the inbox proves that it knows the token before it gets it (S43).
    Loopback {
        /// A loopback name or address, as in a URL (IPv6 in brackets).
        host: String,
        /// TCP port.
        port: u16,
    },
    /// HTTP over TLS.
    Tls {
        /// Name or address, as in a URL (IPv6 in brackets).
        host: String,
        /// TCP port.
        port: u16,
    },
}

/// Why a text is no inbox address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Plain HTTP would carry the token over a network.
    #[error(
        "`{0}` is not on this machine, and without TLS the token would be readable on the way; use https://"
    )]
    PlainBeyondLoopback(String),
    /// Not one of the forms.
    #[error("`{0}` is no inbox address; use unix:/path/to/inbox.sock, http://127.0.0.1:7345 or https://host")]
    Malformed(String),
}

impl FromStr for InboxAddress {
    type Err = AddressError;

    /// Reads `unix:PATH`, or a URL of `http`, `https`, `ws` or `wss` without path.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(text.into());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(malformed()) } else { Ok(Self::Socket(path.into())) };
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(malformed)?;
        let tls = match scheme {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(malformed()),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let uri: hyper::http::uri::Authority = authority.parse().map_err(|_| malformed())?;
        let host = uri.host().to_owned();
        // What stands beside the host is a port or nothing; a name and password we would not know what to do with.
        let port = match authority.strip_prefix(&host) {
            Some("") if tls => 443,
            Some("") => 80,
            Some(port) => port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(malformed)?,
            None => return Err(malformed()),
        };
        if host.is_empty() {
            return Err(malformed());
        }
        if tls {
            Ok(Self::Tls { host, port })
        } else if is_loopback(&host) {
            Ok(Self::Loopback { host, port })
        } else {
            Err(AddressError::PlainBeyondLoopback(text.into()))
        }
    }
}

/// Whether a URL's host can only mean this machine.
fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for InboxAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback { host, port } => write!(f, "http://{host}:{port}"),
            Self::Tls { host, port } => write!(f, "https://{host}:{port}"),
        }
    }
}

/// A holder token. It is never shown: `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Takes over a token.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(•)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, shown: &str) {
        assert_eq!(text.parse::<InboxAddress>().map(|address| address.to_string()), Ok(shown.to_owned()));
    }

    #[test]
    fn addresses_in_all_their_spellings() {
        reads("unix:/run/handraise/inbox.sock", "unix:/run/handraise/inbox.sock");
        reads("unix:///run/inbox.sock", "unix:/run/inbox.sock");
        reads("http://127.0.0.1:7345", "http://127.0.0.1:7345");
        reads("ws://localhost:7345/", "http://localhost:7345");
        reads("http://[::1]:7345", "http://[::1]:7345");
        reads("https://inbox.example", "https://inbox.example:443");
        reads("wss://inbox.example:8443", "https://inbox.example:8443");
    }

    #[test]
    fn s43_plain_http_never_leaves_the_machine() {
        for text in
            ["http://inbox.example", "ws://10.0.0.1:7345", "http://0.0.0.0:7345", "http://localhost.evil:80"]
        {
            let error = text.parse::<InboxAddress>().unwrap_err();
            assert_eq!(error, AddressError::PlainBeyondLoopback(text.into()));
            assert!(error.to_string().contains("https://"), "{error}");
        }
    }

    #[test]
    fn anything_else_is_no_address() {
        for text in [
            "",
            "inbox",
            "unix:",
            "ftp://localhost",
            "http://",
            "http://user@localhost:1",
            "http://localhost:",
            "http://localhost:99999",
            "http://localhost/path",
            "http://local host",
        ] {
            assert_eq!(text.parse::<InboxAddress>(), Err(AddressError::Malformed(text.into())), "{text}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        assert_eq!(format!("{:?}", Token::new("hunter2")), "Token(•)");
    }
}
