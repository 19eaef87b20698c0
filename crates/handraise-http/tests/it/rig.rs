//! A server of a few lines: every request comes out of a channel, and is answered by hand.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use handraise_http::upstream::{Arrivals, Link, Server, Target};

/// How long anything may take that has to happen.
const BOUND: Duration = Duration::from_secs(30);

/// A request, and the way to answer it.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) body: String,
    stream: TcpStream,
}

impl Asked {
    /// Answers, and keeps the connection open for whatever follows.
    pub(crate) fn begin(&mut self, head: &str) {
        self.stream.write_all(format!("HTTP/1.1 {head}\r\n\r\n").as_bytes()).unwrap();
    }

    /// Says a frame on a stream that has begun.
    pub(crate) fn say(&mut self, frame: &str) {
        let event = format!("data: {frame}\n\n");
        self.stream.write_all(event.as_bytes()).unwrap();
    }

    /// Answers with a body, and nothing more.
    pub(crate) fn answer(mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.begin(&format!(
            "{status}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ));
    }
}

/// The server.
pub(crate) struct Rig {
    pub(crate) url: String,
    requests: Receiver<Asked>,
}

impl Rig {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                thread::spawn(move || {
                    let asked = read(stream.ok()?)?;
                    sender.send(asked).ok()
                });
            }
        });
        Self { url, requests }
    }

    /// A link to it. Whoever lets go of the arrivals hears nothing more.
    pub(crate) fn link(&self) -> (Link, Arrivals) {
        link_to(&self.url)
    }

    /// The next request, which has to come.
    #[track_caller]
    pub(crate) fn next(&self) -> Asked {
        self.requests.recv_timeout(BOUND).expect("a request")
    }

    /// The next request, if one comes within this time.
    pub(crate) fn next_within(&self, time: Duration) -> Option<Asked> {
        self.requests.recv_timeout(time).ok()
    }
}

/// A link to a server at a URL.
pub(crate) fn link_to(url: &str) -> (Link, Arrivals) {
    let target = Target::new(url, []).unwrap();
    let server = Server::new(target, 1 << 20, 16, 1 << 24, &BTreeSet::new()).unwrap();
    Link::new(&Arc::new(server), "tests")
}

fn read(stream: TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next()?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { method, body: String::from_utf8(body).ok()?, stream })
}

pub(crate) fn frame(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
