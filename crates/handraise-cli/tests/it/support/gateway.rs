//! A client of `handraise mcp`: raw frames in and out, and the scripted server's witness.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    ops::Deref,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
};

use serde_json::{Value, json};

use super::{BOUND, Collected, Home, Witness, binary, kill, terminate, wait_for};

/// A running gateway with a server behind it, and us as its client.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    witness: Witness,
}

/// What is between us and the scripted server.
pub(crate) struct Setup<'a> {
    /// Arguments of the scripted server.
    pub(crate) server: &'a [&'a str],
    /// Variables of the gateway.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Commands before the server's, each of which runs what follows it: further gateways, launchers.
    pub(crate) before: &'a [&'a str],
}

/// How the scripted server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pair {
    /// It is started, and spoken to over its stdio.
    Stdio,
    /// It listens, and is spoken to over HTTP.
    Http,
    /// The same, and its streams end after every event.
    HttpCut,
    /// It listens, and so does another gateway in front of it, which asks nothing itself.
    HttpTwice,
}

impl Gateway {
    /// The scripted server behind a gateway.
    pub(crate) fn start(home: &Home, server: &[&str]) -> Self {
        Self::start_with(home, &Setup { server, variables: &[], before: &[] })
    }

    pub(crate) fn start_with(home: &Home, setup: &Setup<'_>) -> Self {
        let mut command = home.handraise(&["mcp", "--"]);
        command.args(setup.before).arg(binary()).arg("fake-server");
        command.args(Witness::arguments(home.path())).args(setup.server);
        command.envs(setup.variables.iter().copied());
        Self::run(home, command)
    }

    /// The scripted server, however it is reached.
    pub(crate) fn start_over(pair: Pair, home: &Home, setup: &Setup<'_>) -> Self {
        let arguments = match pair {
            Pair::Stdio => return Self::start_with(home, setup),
            Pair::Http | Pair::HttpTwice => setup.server.to_vec(),
            Pair::HttpCut => [setup.server, &["--cut", "1"]].concat(),
        };
        assert!(setup.before.is_empty(), "nothing is started before a server that listens");
        let url = match pair {
            Pair::HttpTwice => home.listener(&arguments),
            Pair::Stdio | Pair::Http | Pair::HttpCut => home.server(&arguments),
        };
        let mut command = home.handraise(&["mcp", "--upstream", &url]);
        command.envs(setup.variables.iter().copied());
        Self::run(home, command)
    }

    /// Any command of `handraise mcp`.
    pub(crate) fn command(home: &Home, arguments: &[&str]) -> Self {
        Self::command_with(home, arguments, &[])
    }

    /// The same, with variables of the gateway.
    pub(crate) fn command_with(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = home.handraise(&[&["mcp"], arguments].concat());
        command.envs(variables.iter().copied());
        Self::run(home, command)
    }

    fn run(home: &Home, mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Collected::from(child.stderr.take().unwrap());
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::with_capacity(1 << 20, stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, witness: Witness::new(home.path(), log) }
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a frame.
    pub(crate) fn send(&mut self, frame: &Value) {
        self.write(format!("{frame}\n").as_bytes());
    }

    /// Closes the gateway's stdin.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// The next line with its end, as it came.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<u8> {
        match self.lines.recv_timeout(BOUND) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line; the log: {}", self.log.text()),
            Err(RecvTimeoutError::Disconnected) => panic!("stdout ended; the log: {}", self.log.text()),
        }
    }

    /// The next frame.
    #[track_caller]
    pub(crate) fn receive(&self) -> Value {
        let line = self.line();
        serde_json::from_slice(&line).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&line)))
    }

    /// Every line that still comes until the end.
    pub(crate) fn rest(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => rest.extend(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("stdout stays open; the log: {}", self.log.text()),
            }
        }
    }

    /// Opens a session of the legacy era with these capabilities.
    #[track_caller]
    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "tests", "version": "1"},
        }}));
        let answer = self.receive();
        assert_eq!(answer["id"], "init", "{answer}");
        assert_eq!(answer["result"]["protocolVersion"], version);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    /// Calls a tool in the legacy era.
    pub(crate) fn call(&mut self, id: &Value, tool: &str, arguments: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}}));
    }

    /// Calls a tool and waits for its answer.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: &Value, tool: &str, arguments: &Value) -> Value {
        self.call(id, tool, arguments);
        let answer = self.receive();
        assert_eq!(answer["id"], *id, "{answer}");
        answer
    }

    /// The exit status, once there is one.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let child = &mut self.child;
        wait_for("the end of handraise mcp", || child.try_wait().unwrap()).code()
    }

    pub(crate) fn kill(&self) {
        kill(self.child.id());
    }
}

impl Deref for Gateway {
    type Target = Witness;

    fn deref(&self) -> &Witness {
        &self.witness
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            terminate(self.child.id());
            let _ = self.child.wait();
        }
    }
}
