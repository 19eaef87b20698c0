//! Which requests are plain.
//!
//! The head is read by the parser that hyper uses. What decides where a request ends must be there once and in its
//! simplest form: `Content-Length` in digits, and nothing of the kind in a GET. Whatever else touches the message or its
//! connection is hyper's to read.

use std::mem::MaybeUninit;

use super::super::{
    head::{Head, Header},
    service::ENDPOINT,
};

/// How many headers a plain request has at most.
const MOST_HEADERS: usize = 64;
const POST: &str = "POST";
/// What opens a stream: its connection is held for as long as that, and should hold little.
pub(super) const GET: &str = "GET";

/// A plain request, of which the head is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain {
    /// How long its head is.
    pub(super) head: usize,
    /// How long its body is.
    pub(super) length: usize,
}

/// Where the headers of a head are put.
pub(super) type Headers<'b> = [MaybeUninit<Header<'b>>; MOST_HEADERS];

/// A place for headers.
pub(super) fn place<'b>() -> Headers<'b> {
    [const { MaybeUninit::uninit() }; MOST_HEADERS]
}

/// Reads the head of a request; `None`: it is not plain, or not all of it is here.
pub(super) fn read<'h>(bytes: &'h [u8], place: &'h mut Headers<'h>) -> Option<(Head<'h>, Plain)> {
    let (head, method, headers) = parse(bytes, place)?;
    let mut length = None;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            if length.replace(digits(header.value)?).is_some() {
                return None;
            }
        } else if is("connection") {
            if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                return None;
            }
        } else if is("transfer-encoding") || is("expect") || is("upgrade") || is("trailer") {
            return None;
        }
    }
    let length = if method == GET { length.map_or(Some(0), |_| None)? } else { length? };
    // What does not fit into memory ends nowhere.
    head.checked_add(length)?;
    Some((Head::new(method, ENDPOINT, headers), Plain { head, length }))
}

impl Plain {
    /// Where it ends.
    pub(super) fn end(&self) -> usize {
        self.head + self.length
    }
}

/// How long the head of a request of the endpoint is, its method, and its headers.
fn parse<'h>(bytes: &'h [u8], place: &'h mut Headers<'h>) -> Option<(usize, &'static str, &'h [Header<'h>])> {
    let mut request = httparse::Request::new(&mut []);
    let status = request.parse_with_uninit_headers(bytes, place).ok()?;
    let httparse::Status::Complete(length) = status else { return None };
    let method = [POST, GET].into_iter().find(|method| request.method == Some(method))?;
    let is_ours = request.path == Some(ENDPOINT) && request.version == Some(1);
    is_ours.then_some((length, method, request.headers))
}

/// A number of digits and nothing else.
fn digits(value: &[u8]) -> Option<usize> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(head: &str) -> Option<Plain> {
        read(head.replace('\n', "\r\n").as_bytes(), &mut place()).map(|(_, plain)| plain)
    }

    #[test]
    fn a_post_with_a_length_is_plain() {
        let head = "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 12\nConnection: Keep-Alive\n\n";
        let head = head.replace('\n', "\r\n");
        let bytes = format!("{head}{{\"id\":");
        let mut place = place();
        let (shown, plain) = read(bytes.as_bytes(), &mut place).unwrap();
        assert_eq!(plain, Plain { head: head.len(), length: 12 });
        assert_eq!(plain.end(), head.len() + 12);
        assert_eq!((shown.method, shown.path, shown.only("host")), ("POST", "/mcp", Some("localhost")));
    }

    #[test]
    fn a_get_without_a_body_is_plain() {
        let head = "GET /mcp HTTP/1.1\nHost: localhost\nLast-Event-ID: 0-1\n\n".replace('\n', "\r\n");
        let mut place = place();
        let (shown, plain) = read(head.as_bytes(), &mut place).unwrap();
        assert_eq!((plain, shown.method), (Plain { head: head.len(), length: 0 }, "GET"));
    }

    #[test]
    fn s3_where_a_request_ends_must_be_beyond_doubt_and_everything_else_is_hypers() {
        let post = "POST /mcp HTTP/1.1\nHost: localhost\n";
        for head in [
            format!("{post}\n"),
            format!("{post}Content-Length: \n\n"),
            format!("{post}Content-Length: +1\n\n"),
            format!("{post}Content-Length: 1, 1\n\n"),
            format!("{post}Content-Length: 0x1\n\n"),
            format!("{post}Content-Length: 1\nContent-Length: 1\n\n"),
            format!("{post}Content-Length: 1\ncontent-length: 2\n\n"),
            format!("{post}Content-Length: 18446744073709551615\n\n"),
            format!("{post}Content-Length: 18446744073709551616\n\n"),
            format!("{post}Content-Length: 1\nTransfer-Encoding: chunked\n\n"),
            format!("{post}TRANSFER-ENCODING: identity\nContent-Length: 1\n\n"),
            format!("{post}Transfer-Encoding: chunked\n\n"),
            format!("{post}Content-Length: 1\nExpect: 100-continue\n\n"),
            format!("{post}Content-Length: 1\nUpgrade: h2c\n\n"),
            format!("{post}Content-Length: 1\nConnection: close\n\n"),
            format!("{post}Content-Length: 1\nConnection: keep-alive, content-length\n\n"),
            format!("{post}Content-Length : 1\n\n"),
            format!("{post}Content-Length: 1\n folded\n\n"),
            format!("{post}Content-Length: 1\n"),
            format!("{post}{}Content-Length: 1\n\n", "a: b\n".repeat(MOST_HEADERS)),
            "POST /mcp HTTP/1.0\nContent-Length: 1\n\n".to_owned(),
            "POST /mcp?a HTTP/1.1\nContent-Length: 1\n\n".to_owned(),
            "POST http://localhost/mcp HTTP/1.1\nContent-Length: 1\n\n".to_owned(),
            "post /mcp HTTP/1.1\nContent-Length: 1\n\n".to_owned(),
            "PUT /mcp HTTP/1.1\nContent-Length: 1\n\n".to_owned(),
            "GET /mcp HTTP/1.1\nContent-Length: 1\n\n".to_owned(),
            "GET /mcp HTTP/1.1\nContent-Length: 0\n\n".to_owned(),
            "GET /mcp HTTP/1.1\nTransfer-Encoding: chunked\n\n".to_owned(),
            "GET /mcp HTTP/1.1\nConnection: close\n\n".to_owned(),
            "GET /metrics HTTP/1.1\nHost: localhost\n\n".to_owned(),
            "DELETE /mcp HTTP/1.1\nHost: localhost\n\n".to_owned(),
            "PRI * HTTP/2.0\n\nSM\n\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(plain(&head), None, "{head}");
        }
        assert!(plain(&format!("{post}Content-Length: 1\n\n")).is_some());
    }
}
