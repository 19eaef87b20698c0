//! A session: the server as it is over stdio, with its lines on streams.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    args::Options,
    server::{self, World},
};

/// A server and its streams. The first stream is the one outside of requests.
pub(super) struct Session {
    input: Mutex<Option<Sender<Vec<u8>>>>,
    streams: Arc<Mutex<Vec<Arc<Stream>>>>,
}

/// The lines of one stream.
pub(super) struct Stream {
    /// The id of the request, as JSON text.
    request: Option<String>,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    lines: Vec<Vec<u8>>,
    is_over: bool,
}

impl Session {
    pub(super) fn start(options: &Options, world: &Arc<World>) -> Arc<Self> {
        let (input, lines) = channel();
        let streams = Arc::new(Mutex::new(vec![Stream::new(None)]));
        let output = Lines { streams: Arc::clone(&streams), line: Vec::new() };
        let options = Options { http: None, ..options.clone() };
        let world = Arc::clone(world);
        thread::spawn(move || {
            let _ = server::run(&options, &world, Input { lines, rest: VecDeque::new() }, output);
        });
        Arc::new(Self { input: Mutex::new(Some(input)), streams })
    }

    /// A line for the server.
    pub(super) fn line(&self, frame: &[u8]) -> io::Result<()> {
        let input = lock(&self.input);
        let sent = input.as_ref().is_some_and(|input| input.send([frame, b"\n"].concat()).is_ok());
        if sent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Opens the stream of a request.
    pub(super) fn open(&self, id: &Value) -> (usize, Arc<Stream>) {
        let stream = Stream::new(Some(id.to_string()));
        let mut streams = lock(&self.streams);
        streams.push(Arc::clone(&stream));
        (streams.len() - 1, stream)
    }

    pub(super) fn stream(&self, number: usize) -> Option<Arc<Stream>> {
        lock(&self.streams).get(number).cloned()
    }

    /// Ends the server and every stream.
    pub(super) fn end(&self) {
        lock(&self.input).take();
        lock(&self.streams).iter().for_each(|stream| stream.add(None, true));
    }
}

impl Stream {
    fn new(request: Option<String>) -> Arc<Self> {
        Arc::new(Self { request, inner: Mutex::default(), changed: Condvar::new() })
    }

    fn add(&self, line: Option<Vec<u8>>, is_over: bool) {
        let mut inner = lock(&self.inner);
        inner.lines.extend(line);
        inner.is_over |= is_over;
        self.changed.notify_all();
    }

    pub(super) fn lines(&self, from: usize) -> Vec<Vec<u8>> {
        lock(&self.inner).lines.get(from..).unwrap_or_default().to_vec()
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.inner).is_over
    }

    /// Waits for a line, the end, or the time.
    pub(super) fn wait(&self, from: usize, patience: Duration) {
        let inner = lock(&self.inner);
        let is_quiet = |inner: &mut Inner| inner.lines.len() <= from && !inner.is_over;
        let _ = self.changed.wait_timeout_while(inner, patience, is_quiet);
    }
}

/// What the server reads.
struct Input {
    lines: Receiver<Vec<u8>>,
    rest: VecDeque<u8>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let Ok(line) = self.lines.recv() else { return Ok(0) };
            self.rest.extend(line);
        }
        self.rest.read(buffer)
    }
}

/// What the server writes: answers to the streams of their requests, what belongs to a subscription to its stream,
/// everything else to the newest stream that is open.
struct Lines {
    streams: Arc<Mutex<Vec<Arc<Stream>>>>,
    line: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let Ok(frame) = serde_json::from_slice::<Value>(&line) else { continue };
            let is_answer = frame.get("method").is_none();
            let id = frame["id"].to_string();
            let streams = lock(&self.streams);
            let open = |stream: &&Arc<Stream>| !stream.is_over() && (stream.request.is_some() || !is_answer);
            let mut newest = streams.iter().rev().filter(open);
            let tag = &frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
            let request = if is_answer { &id } else { &tag.to_string() };
            let stream = if is_answer || !tag.is_null() {
                newest.find(|stream| stream.request.as_ref() == Some(request))
            } else {
                newest.next()
            };
            if let Some(stream) = stream {
                stream.add(Some(line), is_answer);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
