//! The head of a request, whoever has read it: hyper, or [`plain`](super::plain).

use http::{HeaderMap, request::Parts};

pub(crate) use httparse::Header;

/// A request without its body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// The authority of a target in absolute form.
    pub(crate) authority: Option<&'a str>,
    headers: &'a [Header<'a>],
}

impl<'a> Head<'a> {
    /// A head in origin form. Names are spelled as the client likes.
    pub(crate) fn new(method: &'a str, path: &'a str, headers: &'a [Header<'a>]) -> Self {
        Self { method, path, authority: None, headers }
    }

    /// A head that hyper has read; `headers` are [`listed`].
    pub(crate) fn of(parts: &'a Parts, headers: &'a [Header<'a>]) -> Self {
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        Self { method: parts.method.as_str(), path: parts.uri.path(), authority, headers }
    }

    /// Every header, in order.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + Clone + use<'a> {
        self.headers.iter().map(|header| (header.name, header.value))
    }

    /// The values of the headers with this name.
    pub(crate) fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let named = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// A header that is there exactly once, as text.
    pub(crate) fn only(&self, name: &str) -> Option<&'a str> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (Some(value), None) => text(value),
            _ => None,
        }
    }
}

/// Headers one by one.
pub(crate) fn listed(headers: &HeaderMap) -> Vec<Header<'_>> {
    headers.iter().map(|(name, value)| Header { name: name.as_str(), value: value.as_bytes() }).collect()
}

/// A value that is text to everybody: visible ASCII, spaces and tabs.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let is_text = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    std::str::from_utf8(value).ok().filter(|_| is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_however_it_is_spelled_and_is_the_only_one_or_none() {
        let header = |name, value: &'static [u8]| Header { name, value };
        let headers = [
            header("Host", b"localhost"),
            header("ORIGIN", b"a"),
            header("origin", b"b"),
            header("X-Raw", b"\xE9"),
            header("X-Tab", b"a\tb"),
        ];
        let head = Head::new("POST", "/mcp", &headers);
        assert_eq!((head.only("host"), head.only("x-tab")), (Some("localhost"), Some("a\tb")));
        assert_eq!((head.only("origin"), head.only("x-raw"), head.only("x")), (None, None, None));
        assert_eq!(head.all("origin").collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(head.has("x-raw") && !head.has("x"));
    }

    #[test]
    fn a_head_of_hypers_is_the_same() {
        let request = http::Request::post("http://localhost:1/mcp?a=b").header("A", "1").header("a", "2");
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let headers = listed(&parts.headers);
        let head = Head::of(&parts, &headers);
        assert_eq!((head.method, head.path, head.authority), ("POST", "/mcp", Some("localhost:1")));
        assert_eq!(head.all("a").collect::<Vec<_>>(), [b"1", b"2"]);
    }
}
