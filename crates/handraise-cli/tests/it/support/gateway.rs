//! The client of `handraise mcp` on stdin and stdout.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    ops::Deref,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::channel,
};

use serde_json::{Value, json};

use super::{
    Collected, Home, Witness, binary,
    client::{Client, Way},
    kill, terminate, wait_for,
};

/// A running gateway with a server behind it, and us as its client.
pub(crate) type Gateway = Client<Pipe>;

/// A gateway's process and its stdin.
pub(crate) struct Pipe {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
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

impl Client<Pipe> {
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
        Self::new(Pipe { child, stdin, witness: Witness::new(home.path(), log) }, lines)
    }
}

impl Pipe {
    /// Closes the gateway's stdin.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
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

impl Way for Pipe {
    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// In the legacy era.
    fn call(&self, id: &Value, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    fn witness(&self) -> &Witness {
        &self.witness
    }
}

impl Deref for Pipe {
    type Target = Witness;

    fn deref(&self) -> &Witness {
        &self.witness
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            terminate(self.child.id());
            let _ = self.child.wait();
        }
    }
}
