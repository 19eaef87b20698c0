//! A server over HTTP that does what a test says, byte by byte.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use serde_json::Value;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// By name in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    /// The body as JSON, or `null`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// A server that is told what to write for each request. Each connection carries one.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Rig {
    /// Serves until the test's process ends. `answer` writes the response, and may take its time; the connection is closed
    /// after it.
    pub(crate) fn start(answer: impl Fn(&Asked, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (answer, list) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, answer, list) = (stream.unwrap(), Arc::clone(&answer), Arc::clone(&list));
                std::thread::spawn(move || {
                    let Some(asked) = read(&stream) else { return };
                    list.lock().unwrap().push(asked.clone());
                    answer(&asked, &mut stream);
                });
            }
        });
        Self { url, seen }
    }

    /// What came so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }
}

/// The next request of a connection, until its end.
pub(crate) fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next().filter(|method| !method.is_empty())?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, headers, body: String::from_utf8(body).unwrap() })
}

/// Writes a response with a body of known length.
pub(crate) fn respond(stream: &mut TcpStream, status: u16, headers: &str, body: &str) {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
    let _ = stream.write_all((head + body).as_bytes());
}

/// Begins a stream of events, which ends with the connection.
pub(crate) fn begin_events(stream: &mut TcpStream, headers: &str) {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n";
    let _ = stream.write_all(format!("{head}{headers}\r\n").as_bytes());
}

/// Writes bytes as they are.
pub(crate) fn write(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes);
    let _ = stream.flush();
}
