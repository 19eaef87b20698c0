//! What the tests share: a home, an inbox, agents, and waiting with a bound.

mod certificates;
pub(crate) mod client;
mod connection;
mod frames;
mod front;
mod gateway;
mod http;
mod http_gateway;
mod processes;
mod relay;
pub(crate) mod rig;
#[path = "../../../../handraise-mcp/src/envelope/tests/scenarios.rs"]
pub(crate) mod scenarios;
mod servers;
mod states;
mod terminal;
mod witness;

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

pub(crate) use certificates::certificates;
pub(crate) use connection::{Connection, Head};
pub(crate) use frames::{initialize, mirrors, modern};
pub(crate) use front::{Front, FrontSetup};
pub(crate) use gateway::{Gateway, Pair, Setup};
pub(crate) use http::{Answer, Events, call, request, try_call};
pub(crate) use http_gateway::HttpGateway;
pub(crate) use processes::{alive, assert_gone, hears_hangup, kill, pause, resume, send, terminate, tree};
pub(crate) use relay::{Pass, Relay};
pub(crate) use rig::{Asked, Rig};
use serde_json::{Value, json};
use servers::Servers;
pub(crate) use states::aged;
use tempfile::TempDir;
pub(crate) use terminal::Terminal;
pub(crate) use witness::Witness;

/// How long anything may take before a test gives up.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// A home of its own: no test sees another's files or the developer's.
pub(crate) struct Home {
    /// Scripted MCP servers that listen, by their arguments.
    servers: Servers,
    folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("hr").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { servers: Servers::default(), folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The working directory of commands.
    pub(crate) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The binary with a clean environment.
    pub(crate) fn handraise(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HANDRAISE_DATA_DIR", self.data_dir())
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Makes a token of a scope.
    pub(crate) fn token(&self, scope: &str) -> String {
        self.stdout(&["token", "create", "--scope", scope]).trim_end().to_owned()
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.handraise(arguments).output().unwrap()
    }

    /// Runs the binary, which must succeed, and takes its stdout.
    #[track_caller]
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes a config file where it is looked for.
    pub(crate) fn write_config(&self, text: &str) {
        let folder = self.path().join(".config/handraise");
        std::fs::create_dir_all(&folder).unwrap();
        // In one step: a process that was started just now may be about to read it.
        let new = folder.join("handraise.toml.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, folder.join("handraise.toml")).unwrap();
    }
}

pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_handraise")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A running `handraise up`.
pub(crate) struct Up {
    pub(crate) child: Child,
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    /// The secret of the sign-in link.
    pub(crate) secret: String,
    /// A token of scope `operator`.
    pub(crate) operator: String,
    /// What it logs.
    pub(crate) log: Collected,
}

impl Up {
    pub(crate) fn start(home: &Home) -> Self {
        Self::start_with(home, &[], &[])
    }

    /// Starts it with further arguments and variables.
    pub(crate) fn start_with(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = home.handraise(&["up", "--no-open"]);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(arguments).envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Collected::from(child.stderr.take().unwrap());
        let printed = Collected::from(child.stdout.take().unwrap());
        let (url, secret) = wait_for_link(&printed, &mut child, &log);
        let operator = home.stdout(&["token", "create", "--scope", "operator", "--name", "tests"]);
        Self { child, url, secret, operator: operator.trim_end().to_owned(), log }
    }

    /// The live events, as the operator sees them.
    pub(crate) fn events(&self) -> Events {
        Events::open(&self.url, &self.operator)
    }

    /// The value of a line of `GET /metrics`, named with its labels.
    #[track_caller]
    pub(crate) fn metric(&self, line: &str) -> u64 {
        let text = request(&self.url, "GET", "/metrics", &[]).text;
        let value = text.lines().find_map(|known| known.strip_prefix(line)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {line} in\n{text}")).parse().unwrap()
    }

    /// Calls the API as the operator.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        call(&self.url, method, &format!("/api/v1{path}"), Some(&self.operator), body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.call("GET", path, None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// The open asks, once there are so many.
    #[track_caller]
    pub(crate) fn wait_for_asks(&self, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} open asks"), || {
            let asks = self.get("/asks?state=open")["asks"].as_array().cloned().unwrap();
            (asks.len() == count).then_some(asks)
        })
    }

    /// The one open ask.
    #[track_caller]
    pub(crate) fn wait_for_ask(&self) -> Value {
        self.wait_for_asks(1).remove(0)
    }

    /// Answers an ask.
    pub(crate) fn answer(&self, ask: &Value, submission: &Value) -> Answer {
        let id = ask["id"].as_str().unwrap();
        self.call("POST", &format!("/asks/{id}/answer"), Some(submission))
    }

    /// Answers an ask; `None` when the inbox ended before it had replied.
    pub(crate) fn try_answer(&self, ask: &Value, submission: &Value) -> Option<Answer> {
        let path = format!("/api/v1/asks/{}/answer", ask["id"].as_str().unwrap());
        try_call(&self.url, "POST", &path, Some(&self.operator), Some(submission))
    }

    /// An ask with its history.
    pub(crate) fn ask(&self, ask: &Value) -> Value {
        self.get(&format!("/asks/{}", ask["id"].as_str().unwrap()))
    }

    /// An ask, once it is in this state, with or without its holder.
    #[track_caller]
    pub(crate) fn wait_for_state(&self, ask: &Value, state: &str, holder_connected: bool) -> Value {
        wait_for(&format!("{state}, holder_connected {holder_connected}"), || {
            let ask = self.ask(ask);
            (ask["state"] == state && ask["holder_connected"] == holder_connected).then_some(ask)
        })
    }

    /// The settlement of an ask, once it has one.
    #[track_caller]
    pub(crate) fn wait_for_settlement(&self, ask: &Value) -> Value {
        let path = format!("/asks/{}", ask["id"].as_str().unwrap());
        wait_for("a settlement", || {
            let settlement = self.get(&path)["settlement"].clone();
            (!settlement.is_null()).then_some(settlement)
        })
    }

    /// Ends it in order.
    pub(crate) fn stop(mut self) {
        terminate(self.child.id());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log.text());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            terminate(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// The address and the secret of a printed sign-in link.
#[track_caller]
pub(crate) fn wait_for_link(printed: &Collected, child: &mut Child, log: &Collected) -> (String, String) {
    wait_for("a sign-in link", || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "it ended with {ended:?}: {}", log.text());
        let text = printed.text();
        let (url, secret) = text.lines().next()?.split_once("/#sign-in=")?;
        Some((url.to_owned(), secret.to_owned()))
    })
}

/// A process that ends with its test, also with one that fails.
pub(crate) struct Ending(pub(crate) Child);

impl Drop for Ending {
    fn drop(&mut self) {
        if self.0.try_wait().ok().flatten().is_none() {
            terminate(self.0.id());
            let _ = self.0.wait();
        }
    }
}

/// A running `handraise agent` around the scripted agent.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) log: Collected,
    pub(crate) text: Collected,
    record: PathBuf,
}

impl Agent {
    /// Runs one turn of a script.
    pub(crate) fn prompt(home: &Home, script: &str) -> Self {
        Self::start(home, &["--prompt", script], &[], &[])
    }

    /// Starts it with arguments for `handraise agent`, arguments for the scripted agent, and variables.
    pub(crate) fn start(
        home: &Home,
        arguments: &[&str],
        agent_arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        // Every agent of a home has a record of its own.
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let record = home.path().join(format!("record-{number}"));
        std::fs::write(&record, "").unwrap();
        let mut command = home.handraise(&["agent"]);
        command.args(arguments).arg("--").arg(binary()).arg("fake-agent");
        command.arg("--record").arg(&record).args(agent_arguments).envs(variables.iter().copied());
        // Its stdin stays open, so that `--attach` goes on after the prompt.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Collected::from(child.stderr.take().unwrap());
        let text = Collected::from(child.stdout.take().unwrap());
        Self { child, log, text, record }
    }

    /// Every frame that the agent has received.
    pub(crate) fn received(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.record).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// What the agent's requests were answered with, in the order in which the answers came.
    pub(crate) fn responses(&self) -> Vec<Value> {
        self.received()
            .into_iter()
            .filter(|frame| frame.get("method").is_none())
            .map(|mut frame| frame["result"].take())
            .collect()
    }

    /// How often a method was called.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.received().iter().filter(|frame| frame["method"] == method).count()
    }

    /// The exit status, once there is one.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let child = &mut self.child;
        wait_for("the end of handraise agent", || child.try_wait().unwrap()).code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            terminate(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// What a process writes, collected while it runs.
#[derive(Clone)]
pub(crate) struct Collected(std::sync::Arc<std::sync::Mutex<String>>);

impl Collected {
    pub(crate) fn from(stream: impl std::io::Read + Send + 'static) -> Self {
        let collected = Self(std::sync::Arc::default());
        let text = collected.0.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let mut text = text.lock().unwrap();
                text.push_str(&String::from_utf8_lossy(&line));
                text.push('\n');
            }
        });
        collected
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Waits until these words are among it: what is written is collected by another thread, a moment later.
    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        let found = || self.text().contains(words).then_some(());
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wait_for(words, found)));
        assert!(found.is_ok(), "no {words:?} in\n{}", self.text());
    }

    /// Whether all of it is here: the other end is closed. Only without clones.
    pub(crate) fn is_closed(&self) -> bool {
        std::sync::Arc::strong_count(&self.0) == 1
    }
}

/// Looks again until something is there.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(what, BOUND, look)
}

/// The same with a bound of its own, for what has to be quick.
#[track_caller]
pub(crate) fn wait_within<T>(what: &str, bound: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    const PAUSE: Duration = Duration::from_millis(10);
    let clock = || rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let start = clock();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = Duration::try_from(clock() - start).unwrap_or_default();
        assert!(waited < bound, "no {what} within {bound:?}");
        std::thread::sleep(PAUSE);
    }
}

/// A submission that picks choices.
pub(crate) fn pick(question: &str, choices: &[&str]) -> Value {
    json!({"answers": [{"question_id": question, "selected_options": choices, "custom_text": ""}]})
}

/// A submission of free text.
pub(crate) fn say(question: &str, text: &str) -> Value {
    json!({"answers": [{"question_id": question, "selected_options": [], "custom_text": text}]})
}

/// The Skip control's submission.
pub(crate) fn skip() -> Value {
    json!({"answers": [], "rejected": true})
}
