//! How an answer is written.

use std::{
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

use http::{HeaderName, HeaderValue, StatusCode};

use super::super::reply::{Kind, Reply};

/// The time for `Date`, as text. It is made anew every second, and not for every answer.
#[derive(Debug)]
pub(crate) struct Date(Mutex<Arc<str>>);

/// What stands before the date and behind it in the head of an answer that is JSON, as [`write_head`] writes it.
const JSON_BEFORE_DATE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: ";
const JSON_BEHIND_DATE: &[u8] = b"\r\ncontent-length: ";

impl Date {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(Mutex::new(text(now)))
    }

    pub(crate) fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text(now);
    }

    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Empty where the time has no such text, beyond the year 9999.
fn text(now: Timestamp) -> Arc<str> {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default().into()
}

/// What an answer begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning<'a> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) also: Option<&'a (HeaderName, HeaderValue)>,
}

/// Writes the head of an answer.
pub(super) fn head(reply: &Reply, date: &str, out: &mut Vec<u8>) {
    let Reply { status, kind, also, body } = reply;
    let begin = Beginning { status: *status, headers: kind.headers(), also: also.as_ref() };
    write_head(&begin, date, body.length(), out);
}

/// Writes the head of an answer. One whose length is not known comes in chunks.
pub(crate) fn write_head(begin: &Beginning<'_>, date: &str, length: Option<u64>, out: &mut Vec<u8>) {
    let status = begin.status;
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut header = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    };
    for (name, value) in begin.headers {
        header(name, value.as_bytes());
    }
    if let Some((name, value)) = begin.also {
        header(name.as_str(), value.as_bytes());
    }
    if !date.is_empty() {
        header("date", date.as_bytes());
    }
    // Writing into memory cannot fail.
    let _ = match length {
        Some(length) => write!(out, "content-length: {length}\r\n\r\n"),
        None => write!(out, "transfer-encoding: chunked\r\n\r\n"),
    };
}

/// Writes the head of an answer that is JSON of this length and has nothing else to say: what nearly all are.
pub(crate) fn write_json_head(date: &str, length: usize, out: &mut Vec<u8>) {
    if date.is_empty() {
        let headers = Kind::Json.headers();
        let begin = Beginning { status: StatusCode::OK, headers, also: None };
        return write_head(&begin, date, Some(length as u64), out);
    }
    for part in [JSON_BEFORE_DATE, date.as_bytes(), JSON_BEHIND_DATE] {
        out.extend_from_slice(part);
    }
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = length;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Writes what stands before a chunk. Behind it stands a line end.
pub(super) fn chunk(length: usize, out: &mut Vec<u8>) {
    let _ = write!(out, "{length:x}\r\n");
}

/// What stands behind the last chunk.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::front::{body::Body, reply};

    fn written(reply: &Reply) -> String {
        let date = Date::new(Timestamp::from_second(784_111_777).unwrap());
        let mut out = Vec::new();
        head(reply, &date.text(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_answer_says_what_it_is_how_long_it_is_and_when_it_was_made() {
        let body = Body::whole(b"{}".to_vec().into());
        assert_eq!(
            written(&reply::json(StatusCode::OK, body)),
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             content-length: 2\r\n\r\n"
        );
        assert_eq!(
            written(&reply::empty(StatusCode::ACCEPTED)),
            "HTTP/1.1 202 Accepted\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 0\r\n\r\n"
        );
        let refused = written(&reply::Refusal::InFlight.reply(None));
        assert!(refused.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{refused}");
        assert!(refused.contains("\r\nretry-after: 5\r\n"), "{refused}");
    }

    #[test]
    fn the_short_way_to_the_head_of_a_json_answer_writes_the_same() {
        let begin = Beginning { status: StatusCode::OK, headers: Kind::Json.headers(), also: None };
        for date in ["Sun, 06 Nov 1994 08:49:37 GMT", ""] {
            for length in [0, 1, 9, 10, 99, 10_240, 1_048_576, usize::MAX] {
                let (mut long, mut short) = (Vec::new(), Vec::new());
                write_head(&begin, date, Some(length as u64), &mut long);
                write_json_head(date, length, &mut short);
                assert_eq!(String::from_utf8(short).unwrap(), String::from_utf8(long).unwrap());
            }
        }
    }
}
