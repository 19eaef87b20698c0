//! Walls that stand before everything: by which name we may be called, and from which page.
//!
//! A page whose name was rebound to this machine calls us by its own name; a page of another origin says so.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, Uri, header, uri::Authority};

use super::reply::Refusal;

/// The names and origins that are let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walls {
    /// Names beside the loopback names, without port.
    pub(crate) hosts: Vec<String>,
    /// Origins beside our own.
    pub(crate) origins: Vec<String>,
    /// We are reached from beyond loopback, by address as well: an address cannot be rebound.
    pub(crate) is_open: bool,
}

impl Walls {
    /// Checks `Host` and `Origin`.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`].
    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let named = only(headers, &header::HOST);
        let host = match (&named, uri.authority()) {
            (Some(host), None) => host.parse::<Authority>().map_err(|_| Refusal::Host)?,
            // A target in absolute form names the same.
            (Some(host), Some(authority)) if host.eq_ignore_ascii_case(authority.as_str()) => {
                authority.clone()
            }
            _ => return Err(Refusal::Host),
        };
        if host.as_str().contains('@') || !self.is_ours(host.host()) {
            return Err(Refusal::Host);
        }
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let origin = only(headers, &header::ORIGIN).ok_or(Refusal::Origin)?;
        let is_named = self.origins.iter().any(|ours| ours.eq_ignore_ascii_case(origin));
        let is_own = || {
            let authority = origin.parse::<Uri>().ok().and_then(|origin| origin.into_parts().authority);
            authority.is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host.as_str()))
        };
        if is_named || is_own() { Ok(()) } else { Err(Refusal::Origin) }
    }

    fn is_ours(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|address| self.is_open || address.is_loopback())
            || self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// Whether a request names us by a loopback name and did not come through a proxy.
pub(crate) fn is_local(headers: &HeaderMap) -> bool {
    const FORWARDED: [HeaderName; 2] = [header::FORWARDED, HeaderName::from_static("x-forwarded-for")];
    let host = only(headers, &header::HOST).and_then(|host| host.parse::<Authority>().ok());
    let is_loopback = |host: &Authority| Walls::default().is_ours(host.host());
    host.as_ref().is_some_and(is_loopback) && !FORWARDED.iter().any(|name| headers.contains_key(name))
}

/// A header that is there exactly once, as text.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(walls: &Walls, headers: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        walls.check(&map, &Uri::from_static("/mcp"))
    }

    #[test]
    fn s10_only_our_names_are_answered() {
        let walls = Walls { hosts: vec!["mcp.example.com".into()], ..Walls::default() };
        for host in ["127.0.0.1:80", "localhost:1", "LOCALHOST", "[::1]:7", "127.9.9.9", "mcp.example.com"] {
            assert_eq!(check(&walls, &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "192.168.0.7:1", "user@localhost", "a, b", ""]
        {
            assert_eq!(check(&walls, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(check(&walls, &[]), Err(Refusal::Host));
        assert_eq!(check(&walls, &[("host", "localhost"), ("host", "localhost")]), Err(Refusal::Host));
        let open = Walls { is_open: true, ..Walls::default() };
        assert_eq!(check(&open, &[("host", "192.168.0.7:1")]), Ok(()));
        assert_eq!(check(&open, &[("host", "evil.example")]), Err(Refusal::Host));
    }

    #[test]
    fn s10_a_page_of_another_origin_is_refused_unless_it_is_named() {
        let walls = Walls { origins: vec!["http://localhost:6274".into()], ..Walls::default() };
        let host = ("host", "127.0.0.1:7400");
        for origin in ["http://127.0.0.1:7400", "http://localhost:6274"] {
            assert_eq!(check(&walls, &[host, ("origin", origin)]), Ok(()), "{origin}");
        }
        for origin in ["http://127.0.0.1:3000", "http://localhost:7400", "https://evil.example", "null", ""] {
            assert_eq!(check(&walls, &[host, ("origin", origin)]), Err(Refusal::Origin), "{origin}");
        }
    }
}
