//! Clients of `handraise mcp --listen`: raw HTTP, and the same client as over stdio. They share no code with the server.

use std::{
    cell::RefCell,
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    ops::Deref,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
};

use serde_json::{Value, json};

use super::{BOUND, Collected, Home, Pair, Setup, Witness, binary, terminate, wait_for};

/// A running `handraise mcp --listen` with the scripted server behind it.
pub(crate) struct Front {
    pub(crate) child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
    witness: Witness,
}

/// What is between the clients and the scripted server.
#[derive(Default)]
pub(crate) struct FrontSetup<'a> {
    /// Arguments of the scripted server.
    pub(crate) server: &'a [&'a str],
    /// Variables of the gateway.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Arguments of the gateway.
    pub(crate) arguments: &'a [&'a str],
    /// Commands before the server's.
    pub(crate) before: &'a [&'a str],
}

impl Front {
    pub(crate) fn start(home: &Home) -> Self {
        Self::start_with(home, &FrontSetup::default())
    }

    #[track_caller]
    pub(crate) fn start_with(home: &Home, setup: &FrontSetup<'_>) -> Self {
        let mut command = home.handraise(&["mcp", "--listen", "127.0.0.1:0"]);
        command.args(setup.arguments).arg("--").args(setup.before).arg(binary()).arg("fake-server");
        command
            .args(Witness::arguments(home.path()))
            .args(setup.server)
            .envs(setup.variables.iter().copied());
        Self::run(home, command)
    }

    /// In front of a server at a URL.
    #[track_caller]
    pub(crate) fn in_front_of(home: &Home, url: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = home.handraise(&["mcp", "--listen", "127.0.0.1:0", "--upstream", url]);
        command.envs(variables.iter().copied());
        Self::run(home, command)
    }

    #[track_caller]
    fn run(home: &Home, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Collected::from(child.stderr.take().unwrap());
        let printed = Collected::from(child.stdout.take().unwrap());
        let address = wait_for("an address", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?}: {}", log.text());
            let text = printed.text();
            let (_, rest) = text.lines().next()?.split_once("://")?;
            rest.strip_suffix("/mcp").map(str::to_owned)
        });
        Self { child, address, witness: Witness::new(home.path(), log) }
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(&self.address)
    }

    /// Sends a request on a connection of its own.
    pub(crate) fn request(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Connection {
        let mut connection = self.connect();
        connection.send(method, "/mcp", headers, body);
        connection
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &Value) -> Connection {
        self.request("POST", headers, body.to_string().as_bytes())
    }

    /// Opens a session; returns its id.
    #[track_caller]
    pub(crate) fn initialize(&self, version: &str, capabilities: &Value, headers: &[(&str, &str)]) -> String {
        let mut opened = self.post(headers, &initialize(version, capabilities));
        let head = opened.head();
        let answer: Value = serde_json::from_str(&opened.body(&head)).unwrap();
        assert_eq!(head.status, 200, "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        let session = head.header("mcp-session-id").to_owned();
        let headers = [headers, &[("Mcp-Session-Id", &session)]].concat();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(&headers, &initialized).head().status, 202);
        session
    }

    /// The value of a line of `GET /metrics`.
    #[track_caller]
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let mut connection = self.connect();
        connection.send("GET", "/metrics", &[], b"");
        let head = connection.head();
        let text = connection.body(&head);
        let value = text
            .lines()
            .find_map(|known| known.strip_prefix("handraise_mcp_")?.strip_prefix(line)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {line} in\n{text}")).parse().unwrap()
    }

    /// Ends it in order; its exit status.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        terminate(self.child.id());
        let child = &mut self.child;
        wait_for("the end of handraise mcp", || child.try_wait().unwrap()).code()
    }
}

impl Deref for Front {
    type Target = Witness;

    fn deref(&self) -> &Witness {
        &self.witness
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            terminate(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// The request that opens a session.
pub(crate) fn initialize(version: &str, capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "tests", "version": "1"},
    }})
}

/// A request of the modern era, and the headers that mirror it.
pub(crate) fn modern(id: &Value, method: &str, params: &Value) -> (Value, Vec<(&'static str, String)>) {
    let mut params = params.clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "modern tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let own = params["_meta"].as_object().cloned().unwrap_or_default();
    params["_meta"] = meta;
    params["_meta"].as_object_mut().unwrap().extend(own);
    let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let headers = mirrors(&frame);
    (frame, headers)
}

/// The headers that mirror a frame; none of one that does not describe itself.
fn mirrors(frame: &Value) -> Vec<(&'static str, String)> {
    let version = frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let Some(version) = version.filter(|version| *version >= "2026-07-28") else { return Vec::new() };
    let mut headers = vec![
        ("MCP-Protocol-Version", version.to_owned()),
        ("Mcp-Method", frame["method"].as_str().unwrap().to_owned()),
    ];
    let params = &frame["params"];
    let name = params["name"].as_str().or(params["uri"].as_str()).or(params["taskId"].as_str());
    headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
    headers
}

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

    /// Sends a request. Headers that it needs are added, unless the test has its own.
    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
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
        // A server that turns somebody away need not read everything.
        let _ = self.write(&[head.as_bytes(), body].concat());
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
    pub(crate) fn event(&mut self) -> Option<Event> {
        let (mut id, mut data) = (String::new(), None::<String>);
        loop {
            let line = self.stream_line()?;
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

/// The client of the scenarios over stdio, over HTTP: what it sends is POSTed, and what comes on any stream is read.
pub(crate) struct HttpGateway {
    front: Front,
    session: Option<String>,
    lines: Receiver<Vec<u8>>,
    /// Gone once nothing more is sent.
    sender: RefCell<Option<Sender<Vec<u8>>>>,
}

impl HttpGateway {
    /// The scripted server behind a gateway that listens.
    pub(crate) fn start_over(pair: Pair, home: &Home, setup: &Setup<'_>) -> Self {
        assert_eq!(pair, Pair::Stdio, "a gateway that listens starts its servers");
        let Setup { server, variables, before } = *setup;
        let front = Front::start_with(home, &FrontSetup { server, variables, before, arguments: &[] });
        let (sender, lines) = channel();
        Self { front, session: None, lines, sender: RefCell::new(Some(sender)) }
    }

    /// Posts each line.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.post(line);
        }
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        self.post(frame.to_string().as_bytes());
    }

    fn post(&mut self, line: &[u8]) {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let mirrors = mirrors(&frame);
        let mut headers: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.extend(self.session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        let mut exchange = self.front.request("POST", &headers, line);
        let sender = self.sender.borrow().clone().expect("it is not closed");
        if frame["method"] == "initialize" {
            let head = exchange.head();
            self.session = Some(head.header("mcp-session-id").to_owned());
            let _ = sender.send(exchange.body(&head).into_bytes());
        } else if frame["method"].is_string() && frame.get("id").is_some() {
            std::thread::spawn(move || read(exchange, &sender));
        } else if frame["method"].is_null() && frame.get("id").is_some() {
            // An answer: what HTTP says to it is no frame of the conversation.
            exchange.head();
        } else {
            read(exchange, &sender);
        }
    }

    /// Ends the session, and sends nothing more.
    pub(crate) fn close(&mut self) {
        if let Some(session) = self.session.take() {
            let mut ended = self.front.request("DELETE", &[("Mcp-Session-Id", &session)], b"");
            assert_eq!(ended.head().status, 204);
        }
        self.sender.take();
    }

    /// The next line, as over stdio.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<u8> {
        match self.lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line; the log: {}", self.log.text()),
            Err(RecvTimeoutError::Disconnected) => panic!("nothing more comes; the log: {}", self.log.text()),
        }
    }

    /// The next frame.
    #[track_caller]
    pub(crate) fn receive(&self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&line)))
    }

    /// Every line that still comes.
    pub(crate) fn rest(&self) -> Vec<u8> {
        self.sender.take();
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => rest.extend(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("a stream stays open; the log: {}", self.log.text()),
            }
        }
    }

    #[track_caller]
    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) {
        self.send(&initialize(version, capabilities));
        let answer = self.receive();
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Calls a tool in the session, or, without one, in the modern era.
    pub(crate) fn call(&mut self, id: &Value, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        if self.session.is_some() {
            self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        } else {
            self.send(&modern(id, "tools/call", &params).0);
        }
    }

    #[track_caller]
    pub(crate) fn answer(&mut self, id: &Value, tool: &str, arguments: &Value) -> Value {
        self.call(id, tool, arguments);
        let answer = self.receive();
        assert_eq!(answer["id"], *id, "{answer}");
        answer
    }

    /// Ends the gateway, which does not end by itself; its exit status.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.front.stop()
    }
}

impl Deref for HttpGateway {
    type Target = Front;

    fn deref(&self) -> &Front {
        &self.front
    }
}

/// Reads a response to its end.
fn read(mut exchange: Connection, sender: &Sender<Vec<u8>>) {
    let Some(head) = exchange.try_head() else { return };
    let send = |text: String| drop(sender.send((text + "\n").into_bytes()));
    if head.header("content-type").starts_with("text/event-stream") {
        while let Some(event) = exchange.event() {
            if !event.data.is_empty() {
                send(event.data);
            }
        }
    } else {
        let body = exchange.body(&head);
        if !body.is_empty() {
            send(body);
        }
    }
}
