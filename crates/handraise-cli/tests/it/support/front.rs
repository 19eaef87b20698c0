//! `handraise mcp --listen`, as a process.

use std::{
    ops::Deref,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::{Collected, Connection, Home, Witness, binary, initialize, terminate, wait_for};

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
    /// Where it listens; a port of loopback, where nothing is said.
    pub(crate) listen: Option<&'a str>,
}

impl Front {
    pub(crate) fn start(home: &Home) -> Self {
        Self::start_with(home, &FrontSetup::default())
    }

    #[track_caller]
    pub(crate) fn start_with(home: &Home, setup: &FrontSetup<'_>) -> Self {
        let mut command = home.handraise(&["mcp", "--listen", setup.listen.unwrap_or("127.0.0.1:0")]);
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
