//! HTTP/1.1 by hand: as much as a test needs, and strict about it.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Write as _},
    net::TcpStream,
};

use serde_json::Value;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// By name in lower case; the last of equal names.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// The next request of a connection, until its end.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(bad("request line"));
        };
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(bad("end of headers"));
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad("header"))?;
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").map_or(Ok(0), |length| length.parse());
        let mut body = vec![0; length.map_err(|_| bad("content-length"))?];
        reader.read_exact(&mut body)?;
        Ok(Some(Self { method, path, headers, body }))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The way back on a connection.
pub(super) struct Response {
    stream: TcpStream,
}

impl Response {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream }
    }

    /// A response that is complete.
    pub(super) fn whole(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let head = head(status, headers) + &format!("Content-Length: {}\r\n\r\n", body.len());
        self.stream.write_all(&[head.as_bytes(), body].concat())
    }

    pub(super) fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.whole(status, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Begins a response that comes in pieces.
    pub(super) fn begin(&mut self, headers: &[(&str, &str)]) -> io::Result<()> {
        self.stream.write_all((head(200, headers) + "Transfer-Encoding: chunked\r\n\r\n").as_bytes())
    }

    pub(super) fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = format!("{:x}\r\n", bytes.len());
        self.stream.write_all(&[length.as_bytes(), bytes, b"\r\n"].concat())
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Whether the client has closed the connection.
    pub(super) fn is_gone(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let seen = self.stream.peek(&mut [0]);
        let is_blocking = self.stream.set_nonblocking(false).is_ok();
        !is_blocking
            || matches!(seen, Ok(0))
            || seen.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> String {
    let reason = match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        _ => "Status",
    };
    headers.iter().fold(format!("HTTP/1.1 {status} {reason}\r\n"), |head, (name, value)| {
        head + name + ": " + value + "\r\n"
    })
}
