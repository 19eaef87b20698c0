//! Raw HTTP, written and read as it is. It shares no code with the server.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::BOUND;

/// An HTTP connection, read and written as it is.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
    /// What is left of the chunk of a stream.
    left: usize,
}

/// The head of a response.
pub(crate) struct Head {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    /// A header's value; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    #[track_caller]
    pub(crate) fn frame(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        stream.set_write_timeout(Some(BOUND)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream), left: 0 }
    }

    /// Writes bytes as they are; false when the other side takes no more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.reader.get_mut().write_all(bytes).is_ok()
    }

    /// Says that nothing more is sent, and reads on.
    pub(crate) fn send_no_more(&self) {
        self.reader.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Sends a request.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        // A server that turns somebody away need not read everything.
        let _ = self.write(&Self::request(method, path, headers, body));
    }

    /// The bytes of a request. Headers that it needs are added, unless the test has its own.
    pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        let has = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        let length = body.len().to_string();
        for (name, value) in [
            ("Host", "127.0.0.1"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", &length),
        ] {
            if !has(name) {
                write!(head, "{name}: {value}\r\n").unwrap();
            }
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        [head.as_bytes(), body].concat()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.reader.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end_matches("\r\n").to_owned())
    }

    /// The head of a response, if one comes.
    pub(crate) fn try_head(&mut self) -> Option<Head> {
        let status = self.line()?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Some(Head { status, headers })
    }

    #[track_caller]
    pub(crate) fn head(&mut self) -> Head {
        self.try_head().expect("a response")
    }

    /// The body of a response that is no stream.
    #[track_caller]
    pub(crate) fn body(&mut self, head: &Head) -> String {
        assert!(!head.header("content-type").starts_with("text/event-stream"), "it is a stream");
        let mut body = vec![0; head.header("content-length").parse().unwrap_or(0)];
        self.reader.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// How many bytes still come until the connection ends.
    pub(crate) fn rest(&mut self) -> u64 {
        std::io::copy(&mut self.reader, &mut std::io::sink()).unwrap_or(0)
    }

    /// The whole response as JSON.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> (u16, Value) {
        let head = self.head();
        let body = self.body(&head);
        (head.status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// The answer to a request, however it comes: a stream when it took its time, else a body.
    #[track_caller]
    pub(crate) fn answer_in_time(&mut self) -> Value {
        let head = self.head();
        let text = if head.header("content-type").starts_with("text/event-stream") {
            std::iter::from_fn(|| self.event()).last().map_or_else(String::new, |event| event.data)
        } else {
            self.body(&head)
        };
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// The head of a response that is a stream.
    #[track_caller]
    pub(crate) fn stream(&mut self) -> Head {
        let head = self.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), "text/event-stream");
        head
    }

    /// The next event of a stream, without comments; `None` at the end.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Option<Event> {
        let (mut id, mut data) = (String::new(), None::<String>);
        let begun = SystemClock.boot_millis();
        loop {
            let line = self.stream_line()?;
            // Signs of life come for as long as nothing else does.
            let waited = Duration::from_millis(SystemClock.boot_millis() - begun);
            assert!(!line.starts_with(':') || waited < 3 * BOUND, "nothing but signs of life");
            if line.is_empty() {
                if let Some(data) = data.take() {
                    return Some(Event { id, data });
                }
                continue;
            }
            match line.split_once(": ") {
                Some(("id", value)) => id = value.to_owned(),
                Some(("data", value)) => {
                    let data = data.get_or_insert_default();
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                _ => {}
            }
        }
    }

    /// A line of a stream.
    fn stream_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            match self.stream_byte()? {
                b'\n' => return String::from_utf8(line).ok(),
                byte => line.push(byte),
            }
        }
    }

    /// A byte of a stream, out of its chunks.
    fn stream_byte(&mut self) -> Option<u8> {
        if self.left == 0 {
            let size = self.line()?;
            self.left = usize::from_str_radix(&size, 16).unwrap();
            if self.left == 0 {
                self.line();
                return None;
            }
        }
        let mut byte = [0];
        self.reader.read_exact(&mut byte).ok()?;
        self.left -= 1;
        if self.left == 0 {
            self.line();
        }
        Some(byte[0])
    }
}
