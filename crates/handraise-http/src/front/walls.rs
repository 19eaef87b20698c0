//! Walls that stand before everything: by which name we may be called, and from which page.
//!
//! A page whose name was rebound to this machine calls us by its own name; a page of another origin says so.

use std::net::IpAddr;

use http::{Uri, uri::Authority};

use super::{head::Head, reply::Refusal};

/// The names and origins that are let in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walls {
    /// Names beside the loopback names, without port.
    pub(crate) hosts: Vec<String>,
    /// Origins beside our own.
    pub(crate) origins: Vec<String>,
    /// We are reached from beyond loopback, by address as well: an address cannot be rebound.
    pub(crate) is_open: bool,
    /// How clients spell the names that are always let in. They are found without taking them apart.
    usual: Vec<String>,
}

impl Walls {
    /// The walls of who listens at `port`.
    pub(crate) fn new(port: u16, hosts: Vec<String>, origins: Vec<String>, is_open: bool) -> Self {
        let usual = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")).into();
        Self { hosts, origins, is_open, usual }
    }

    /// Checks `Host` and `Origin`.
    ///
    /// # Errors
    /// [`Refusal::Host`], [`Refusal::Origin`].
    pub(crate) fn check(&self, head: &Head<'_>) -> Result<(), Refusal> {
        let host = match (head.only("host"), head.authority) {
            (Some(host), None) => host,
            // A target in absolute form names the same.
            (Some(host), Some(authority)) if host.eq_ignore_ascii_case(authority) => authority,
            _ => return Err(Refusal::Host),
        };
        if !self.usual.iter().any(|usual| usual == host) && !self.is_let_in(host) {
            return Err(Refusal::Host);
        }
        if !head.has("origin") {
            return Ok(());
        }
        let origin = head.only("origin").ok_or(Refusal::Origin)?;
        let is_named = self.origins.iter().any(|ours| ours.eq_ignore_ascii_case(origin));
        let is_own = || {
            let authority = origin.parse::<Uri>().ok().and_then(|origin| origin.into_parts().authority);
            authority.is_some_and(|authority| authority.as_str().eq_ignore_ascii_case(host))
        };
        if is_named || is_own() { Ok(()) } else { Err(Refusal::Origin) }
    }

    /// Whether we may be called by this name, which may have a port.
    fn is_let_in(&self, host: &str) -> bool {
        let is_ours = |host: &Authority| !host.as_str().contains('@') && self.is_ours(host.host());
        host.parse().as_ref().is_ok_and(is_ours)
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
pub(crate) fn is_local(head: &Head<'_>) -> bool {
    let is_loopback = |host| Walls::default().is_let_in(host);
    head.only("host").is_some_and(is_loopback) && !head.has("forwarded") && !head.has("x-forwarded-for")
}

#[cfg(test)]
mod tests {
    use super::{super::head::Header, *};

    fn check(walls: &Walls, headers: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        walls.check(&Head::new("POST", "/mcp", &headers))
    }

    #[test]
    fn s10_what_is_found_at_once_is_let_in_when_it_is_taken_apart_too() {
        let walls = Walls::new(7400, Vec::new(), Vec::new(), false);
        for usual in &walls.usual {
            assert!(walls.is_let_in(usual) && check(&walls, &[("host", usual)]).is_ok(), "{usual}");
        }
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
