//! An HTTP client of a few lines: it shares no code with the server that it tests.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;

/// An answer with its JSON body, `null` when there is none.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Raw {
    /// A header's value; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
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
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", bearer.as_str())).collect();
    let body = body.map(ToString::to_string).unwrap_or_default();
    let Raw { status, text, .. } = try_request(url, method, path, &headers, &body)?;
    Some(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
}

/// Sends a request with headers of the test's own, among them `Host` if it is to be another.
pub(crate) fn request(url: &str, method: &str, path: &str, headers: &[(&str, &str)]) -> Raw {
    try_request(url, method, path, headers, "").unwrap()
}

fn try_request(url: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Raw> {
    let mut stream = open(url, method, path, headers, body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<_> = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let raw = Raw { status, headers, text: text.to_owned() };
    let is_chunked = raw.header("transfer-encoding") == "chunked";
    assert!(!is_chunked, "{path} is answered in chunks, which this client does not read");
    Some(raw)
}

/// Sends a request and leaves the answer to be read.
fn open(url: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<TcpStream> {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let is_named = headers.iter().any(|(name, _)| *name == "Host");
    let own = (!is_named).then_some(("Host", host));
    let head =
        own.iter().chain(headers).fold(format!("{method} {path} HTTP/1.1\r\n"), |head, (name, value)| {
            head + name + ": " + value + "\r\n"
        });
    let length = body.len();
    let request = format!(
        "{head}Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    Some(stream)
}

/// A live event stream, collected while it runs.
pub(crate) struct Events {
    stream: TcpStream,
    read: Arc<Mutex<Read>>,
}

#[derive(Default)]
struct Read {
    text: String,
    has_ended: bool,
}

impl Events {
    /// Opens `GET /events`.
    pub(crate) fn open(url: &str, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let stream =
            open(url, "GET", "/api/v1/events", &[("Authorization", &bearer)], "").expect("a connection");
        let mut answer = BufReader::new(stream.try_clone().unwrap());
        let mut status = String::new();
        answer.read_line(&mut status).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        let read = Arc::new(Mutex::new(Read::default()));
        let reading = Arc::clone(&read);
        std::thread::spawn(move || {
            let mut line = String::new();
            while line != "\r\n" {
                line.clear();
                answer.read_line(&mut line).unwrap();
            }
            while let Some(chunk) = chunk(&mut answer) {
                reading.lock().unwrap().text.push_str(&chunk);
            }
            reading.lock().unwrap().has_ended = true;
        });
        Self { stream, read }
    }

    /// Every event that is here whole: its name and its data.
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        let text = self.read.lock().unwrap().text.clone();
        let Some((whole, _)) = text.rsplit_once("\n\n") else { return Vec::new() };
        let field = |block: &str, name: &str| {
            block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
        };
        let blocks = whole.split("\n\n").filter(|block| block.contains("event: "));
        blocks
            .map(|block| (field(block, "event: "), serde_json::from_str(&field(block, "data: ")).unwrap()))
            .collect()
    }

    /// The data of every event of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<Value> {
        self.all().into_iter().filter(|(event, _)| event == name).map(|(_, data)| data).collect()
    }

    /// Whether the inbox has ended it.
    pub(crate) fn has_ended(&self) -> bool {
        self.read.lock().unwrap().has_ended
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The next chunk of a body; `None` at its end.
fn chunk(answer: &mut BufReader<TcpStream>) -> Option<String> {
    let mut size = String::new();
    answer.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim_end(), 16).ok().filter(|size| *size > 0)?;
    let mut chunk = vec![0; size + 2];
    answer.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(String::from_utf8(chunk).unwrap())
}
