//! Streamable HTTP: one endpoint for both eras. Each session is a server of its own, as over stdio, whose lines go to
//! streams.

mod request;
mod session;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use self::{
    request::{Request, Response},
    session::{Session, Stream},
};
use crate::{
    args::{Http, Options},
    server::World,
    witness::Witness,
};

/// How long a response may wait for the next look at whether its client is still there.
const LOOK: Duration = Duration::from_millis(20);
const PROTOCOL_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Everything that connections share.
struct House {
    options: Options,
    http: Http,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    /// What requests of the modern era share. Each is a conversation of its own: two of them may have one id.
    modern: Arc<World>,
    requests: Witness,
}

/// Serves until the process ends.
pub(crate) fn run(options: &Options, http: &Http, mut output: impl Write) -> io::Result<()> {
    let listener = TcpListener::bind(&http.address)?;
    writeln!(output, "http://{}/mcp", listener.local_addr()?)?;
    output.flush()?;
    let house = Arc::new(House {
        options: options.clone(),
        http: http.clone(),
        sessions: Mutex::default(),
        modern: World::new(options),
        requests: Witness::open(http.requests.as_deref())?,
    });
    for stream in listener.incoming() {
        let (house, stream) = (Arc::clone(&house), stream?);
        thread::spawn(move || {
            // A client that is gone needs no answer.
            let _ = house.connection(stream);
        });
    }
    Ok(())
}

impl House {
    fn connection(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = io::BufReader::new(stream.try_clone()?);
        let mut response = Response::new(stream);
        while let Some(request) = Request::read(&mut reader)? {
            let seen = json!({
                "method": request.method, "headers": request.headers,
                "body": String::from_utf8_lossy(&request.body),
            });
            self.requests.bytes(format!("{seen}\n").as_bytes())?;
            self.answer(&request, &mut response)?;
        }
        Ok(())
    }

    fn answer(&self, request: &Request, response: &mut Response) -> io::Result<()> {
        if request.path != "/mcp" {
            return response.whole(404, &[], b"no such place");
        }
        match request.method.as_str() {
            "POST" => self.post(request, response),
            "GET" => match self.session(request) {
                Ok(session) => self.listen(&session, request, response),
                Err((status, problem)) => response.json(status, &error(&Value::Null, -32000, problem)),
            },
            "DELETE" => match self.session(request) {
                Ok(session) => {
                    session.end();
                    let id = request.header("mcp-session-id").unwrap_or_default();
                    self.sessions().remove(id);
                    response.whole(200, &[], b"")
                }
                Err((status, problem)) => response.json(status, &error(&Value::Null, -32000, problem)),
            },
            _ => response.whole(405, &[], b""),
        }
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, request: &Request) -> Result<Arc<Session>, (u16, &'static str)> {
        let Some(id) = request.header("mcp-session-id") else { return Err((400, "no session is named")) };
        self.sessions().get(id).cloned().ok_or((404, "no session has this name"))
    }

    fn post(&self, request: &Request, response: &mut Response) -> io::Result<()> {
        let Ok(frame) = serde_json::from_slice::<Value>(&request.body) else {
            return response.json(400, &error(&Value::Null, -32700, "no JSON"));
        };
        let accepted = request.header("accept").unwrap_or_default();
        if !accepted.contains("application/json") || !accepted.contains("text/event-stream") {
            return response
                .json(406, &error(&Value::Null, -32000, "both kinds of answers are to be accepted"));
        }
        let id = &frame["id"];
        let is_request = frame["method"].is_string() && !id.is_null();
        if let Some(version) = frame["params"]["_meta"][PROTOCOL_KEY].as_str() {
            if let Some(problem) = mismatch(request, &frame, version) {
                return response.json(400, &error(id, -32020, &format!("Header mismatch: {problem}")));
            }
            if !is_request {
                return response.whole(202, &[], b"");
            }
            let session = Session::start(&self.options, &self.modern);
            let answered = self.stream(&session, request, id, true, response, &[]);
            session.end();
            return answered;
        }
        if frame["method"] == "initialize" {
            let session = Session::start(&self.options, &World::new(&self.options));
            let name = format!("session-{}", self.sessions().len() + 1);
            if !self.http.forgets {
                self.sessions().insert(name.clone(), Arc::clone(&session));
            }
            return self.stream(&session, request, id, false, response, &[("Mcp-Session-Id", &name)]);
        }
        match self.session(request) {
            Ok(session) if is_request => self.stream(&session, request, id, false, response, &[]),
            Ok(session) => {
                session.line(&request.body)?;
                response.whole(202, &[], b"")
            }
            Err((status, problem)) => response.json(status, &error(&Value::Null, -32000, problem)),
        }
    }

    /// Answers a request with a stream, or with the last that would have been on it.
    fn stream(
        &self,
        session: &Session,
        request: &Request,
        id: &Value,
        is_modern: bool,
        response: &mut Response,
        headers: &[(&str, &str)],
    ) -> io::Result<()> {
        let (number, stream) = session.open(id);
        session.line(&request.body)?;
        if self.http.streams {
            // Streams of the modern era go on nowhere.
            let cut = self.http.cut.filter(|_| !is_modern);
            let is_gone = !tail(number, &stream, 0, cut, response, headers)?;
            if is_modern && is_gone {
                let cancel = json!({
                    "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
                });
                session.line(cancel.to_string().as_bytes())?;
            }
            return Ok(());
        }
        while !stream.is_over() {
            stream.wait(0, LOOK);
            if response.is_gone() {
                return Ok(());
            }
        }
        match stream.lines(0).last() {
            Some(line) => {
                response.whole(200, &[headers, &[("Content-Type", "application/json")]].concat(), line)
            }
            None => response.whole(500, &[], b"it ended"),
        }
    }

    /// The stream outside of requests, or one that broke, where it goes on.
    fn listen(&self, session: &Session, request: &Request, response: &mut Response) -> io::Result<()> {
        let place = request.header("last-event-id").and_then(|id| id.split_once('-'));
        let place = place.and_then(|(stream, event)| Some((stream.parse().ok()?, event.parse().ok()?)));
        let (number, from): (usize, usize) = place.unwrap_or((0, 0));
        match session.stream(number) {
            Some(stream) => tail(number, &stream, from, self.http.cut, response, &[]).map(drop),
            None => response.whole(400, &[], b"no such event"),
        }
    }
}

/// Sends a stream's lines as events; false when the client has left before the end.
fn tail(
    number: usize,
    stream: &Stream,
    from: usize,
    cut: Option<usize>,
    response: &mut Response,
    headers: &[(&str, &str)],
) -> io::Result<bool> {
    response
        .begin(&[headers, &[("Content-Type", "text/event-stream"), ("X-Accel-Buffering", "no")]].concat())?;
    if from == 0 {
        response.piece(format!("id: {number}-0\nretry: 20\ndata:\n\n").as_bytes())?;
    }
    let mut at = from;
    loop {
        for line in stream.lines(at) {
            at += 1;
            let mut event = format!("id: {number}-{at}\nevent: message\ndata: ").into_bytes();
            event.extend(line);
            event.extend(b"\n\n");
            if response.piece(&event).is_err() {
                return Ok(false);
            }
            if cut.is_some_and(|cut| at - from >= cut) {
                return response.end().map(|()| true);
            }
        }
        if stream.is_over() && stream.lines(at).is_empty() {
            return response.end().map(|()| true);
        }
        stream.wait(at, LOOK);
        if response.is_gone() {
            return Ok(false);
        }
    }
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": id})
}

/// What the headers of a modern request say otherwise than its body.
fn mismatch(request: &Request, frame: &Value, version: &str) -> Option<String> {
    let params = &frame["params"];
    let method = frame["method"].as_str().unwrap_or_default();
    let differs = |name: &str, expected: Option<&str>| {
        let found = request.header(name);
        (found != expected).then(|| format!("{name} is {found:?}, and the body says {expected:?}"))
    };
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let device = params["arguments"]["deviceId"].as_str().filter(|_| method == "tools/call");
    differs("mcp-protocol-version", Some(version))
        .or_else(|| differs("mcp-method", Some(method)))
        .or_else(|| differs("mcp-name", name))
        .or_else(|| differs("mcp-param-device", device))
}
