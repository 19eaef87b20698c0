//! An HTTP client of a few lines: it shares no code with the server that it tests.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

/// An answer with its JSON body, `null` when there is none.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Sends one request on a connection of its own.
pub(crate) fn call(url: &str, method: &str, path: &str, token: Option<&str>, body: Option<&Value>) -> Answer {
    try_call(url, method, path, token, body).unwrap()
}

/// The same; `None` when the other side ends without an answer.
pub(crate) fn try_call(
    url: &str,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Option<Answer> {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let body = body.map(ToString::to_string).unwrap_or_default();
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n{authorization}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    assert!(!is_chunked, "{path} is answered in chunks, which this client does not read");
    Some(Answer { status, body: serde_json::from_str(body).unwrap_or(Value::Null) })
}
