//! Walls that stand before every route: who may be asked by which name, from which page, and what a browser is
//! told it may do with the answer (S1, S41, inbox.md "Access").

use std::{net::IpAddr, sync::Arc};

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use handraise_api::error::{ErrorBody, ErrorCode, ErrorResponse};

/// S41.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The names by which this inbox may be called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walls {
    /// A configured name beside the loopback names, without port.
    pub(crate) public_name: Option<String>,
    /// Whether connections come over the socket in the data directory, where `Host` means nothing.
    pub(crate) local_socket: bool,
}

/// Why a request is turned away before any route sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// `Host` is missing or names something else: a rebound name, or a misconfigured proxy.
    Host,
    /// `Origin` is another page's.
    Origin,
    /// The browser says that another site sends this.
    Site,
}

impl Walls {
    fn check(&self, method: &Method, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
        if headers.get_all("sec-fetch-site").iter().any(|site| site != "same-origin" && site != "none")
            && !is_followed_link(method, headers, uri)
        {
            return Err(Refused::Site);
        }
        if self.local_socket {
            // No browser reaches a Unix socket.
            return if headers.contains_key(header::ORIGIN) { Err(Refused::Origin) } else { Ok(()) };
        }
        let host = only(headers, &header::HOST).or_else(|| uri.authority().map(Authority::as_str));
        let host = host.and_then(|host| host.parse::<Authority>().ok()).ok_or(Refused::Host)?;
        if host.as_str().contains('@') || !self.is_ours(host.host()) {
            return Err(Refused::Host);
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).and_then(|origin| origin.parse::<Uri>().ok());
            let origin = origin.and_then(|origin| origin.into_parts().authority);
            if origin.is_none_or(|origin| !origin.as_str().eq_ignore_ascii_case(host.as_str())) {
                return Err(Refused::Origin);
            }
        }
        Ok(())
    }

    fn is_ours(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.public_name.as_deref().is_some_and(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// Whether a person followed a link to the page from elsewhere: from a chat, a mail, or the file that `up` opens the
/// browser on (S11). It loads the page as if its address had been typed; nothing of the API is reached that way,
/// and a frame is not a document.
fn is_followed_link(method: &Method, headers: &HeaderMap, uri: &Uri) -> bool {
    method == Method::GET
        && !uri.path().starts_with("/api/")
        && only(headers, &HeaderName::from_static("sec-fetch-mode")) == Some("navigate")
        && only(headers, &HeaderName::from_static("sec-fetch-dest")) == Some("document")
}

/// A header that is there exactly once, as text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The middleware.
pub(crate) async fn guard(State(walls): State<Arc<Walls>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = match walls.check(request.method(), request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if is_api {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code, message) = match self {
            Self::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                ErrorCode::Misdirected,
                "This inbox answers to loopback names only, and to the public_name of its configuration. \
                 Use one of them in the address, or set public_name.",
            ),
            Self::Origin => (
                StatusCode::FORBIDDEN,
                ErrorCode::Forbidden,
                "A page of another origin may not use this inbox.",
            ),
            Self::Site => (
                StatusCode::FORBIDDEN,
                ErrorCode::Forbidden,
                "A page of another site may not use this inbox. Open the inbox's own address.",
            ),
        };
        (status, Json(ErrorResponse { error: ErrorBody::new(code, message) })).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(walls: &Walls, headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        walls.check(&Method::GET, &map, &Uri::from_static("/api/v1/asks"))
    }

    #[test]
    fn s1_only_loopback_names_and_the_public_name_are_answered() {
        let walls = Walls { public_name: Some("inbox.example.com".into()), local_socket: false };
        for host in
            ["127.0.0.1:7345", "localhost:7345", "LOCALHOST", "[::1]:7345", "127.9.9.9", "inbox.example.com"]
        {
            assert_eq!(check(&walls, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:7345",
            "192.168.0.7:7345",
            "0.0.0.0:7345",
            "user@localhost",
            "localhost:7345, evil.example",
            "",
        ] {
            assert_eq!(check(&walls, &[("host", host)]), Err(Refused::Host), "{host}");
        }
        assert_eq!(check(&walls, &[]), Err(Refused::Host));
        assert_eq!(check(&walls, &[("host", "localhost"), ("host", "localhost")]), Err(Refused::Host));
    }

    #[test]
    fn s1_another_port_of_this_machine_is_another_origin() {
        let walls = Walls::default();
        let host = ("host", "127.0.0.1:7345");
        assert_eq!(check(&walls, &[host, ("origin", "http://127.0.0.1:7345")]), Ok(()));
        for origin in ["http://127.0.0.1:3000", "http://localhost:7345", "null", "file://", "garbage, x", ""]
        {
            assert_eq!(check(&walls, &[host, ("origin", origin)]), Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn s1_a_request_that_another_site_made_is_refused() {
        let walls = Walls::default();
        let host = ("host", "127.0.0.1:7345");
        for site in ["same-origin", "none"] {
            assert_eq!(check(&walls, &[host, ("sec-fetch-site", site)]), Ok(()), "{site}");
        }
        for site in ["cross-site", "same-site", "", "Same-Origin"] {
            assert_eq!(check(&walls, &[host, ("sec-fetch-site", site)]), Err(Refused::Site), "{site}");
        }
    }

    #[test]
    fn s11_a_followed_link_loads_the_page_and_nothing_else() {
        let walls = Walls::default();
        let check = |method: &Method, path: &'static str, mode: &str, dest: &str| {
            let mut map = HeaderMap::new();
            for (name, value) in [
                ("host", "127.0.0.1:7345"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ] {
                map.append(name, HeaderValue::from_str(value).unwrap());
            }
            walls.check(method, &map, &Uri::from_static(path))
        };
        assert_eq!(check(&Method::GET, "/asks/1", "navigate", "document"), Ok(()));
        for (method, path, mode, dest) in [
            (Method::GET, "/api/v1/asks", "navigate", "document"),
            (Method::POST, "/", "navigate", "document"),
            (Method::GET, "/", "navigate", "iframe"),
            (Method::GET, "/", "no-cors", "document"),
        ] {
            assert_eq!(check(&method, path, mode, dest), Err(Refused::Site), "{method} {path} {mode} {dest}");
        }
    }

    #[test]
    fn the_local_socket_takes_any_host_and_no_browser() {
        let walls = Walls { public_name: None, local_socket: true };
        assert_eq!(check(&walls, &[("host", "inbox")]), Ok(()));
        assert_eq!(check(&walls, &[("origin", "http://127.0.0.1:7345")]), Err(Refused::Origin));
    }
}
