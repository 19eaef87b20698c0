//! The one place that knows how an agent is run.

use std::{
    ffi::OsString,
    future::pending,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use handraise_agentctl::{AgentError, AgentSettings, Ended, run};
use handraise_core::form::Order;
use handraise_transport::{clock::SystemClock, spawn::Supervisor};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take that has no limit of its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The example that is built next to the tests.
pub(crate) fn fixture() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples/agent_fixture");
    assert!(path.exists(), "{} is missing: run `cargo test -p handraise-agentctl`", path.display());
    path
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::other(fixture(), ["supervise".into()])
}

/// A place for one agent: its working directory, and the record of what it received beside it.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn record(&self) -> PathBuf {
        self.dir.path().join("record")
    }

    /// Settings for the scripted agent with these arguments, and one prompt.
    pub(crate) fn settings(&self, args: &[&str], prompt: &str) -> AgentSettings {
        let mut command: Vec<OsString> = vec![fixture().into(), "fake-agent".into()];
        command.extend(args.iter().map(OsString::from));
        command.extend(["--record".into(), self.record().into()]);
        AgentSettings {
            command,
            agent_id: Some("fake-agent".to_owned()),
            cwd: self.work(),
            session_id: None,
            prompt: Some(prompt.to_owned()),
            attach: None,
            json: false,
            elicitation: None,
            allow_terminal: false,
            answer_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(1200),
            mcp_servers: Vec::new(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            question_order: Order::Series,
            supervisor: supervisor(),
            clock: SystemClock::shared(),
            version: "0.1.0".to_owned(),
        }
    }

    /// Every line that the agent received, in order.
    pub(crate) fn received_lines(&self) -> Vec<String> {
        let record = std::fs::read_to_string(self.record()).unwrap_or_default();
        record.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
    }

    /// Every frame that the agent received, in order.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.received_lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The results of its requests that the agent received, in order.
    pub(crate) fn results(&self) -> Vec<Value> {
        self.received().iter().filter_map(|frame| frame.get("result").cloned()).collect()
    }

    /// The methods of the requests and notifications that the agent received, in order.
    pub(crate) fn received_methods(&self) -> Vec<String> {
        self.received().iter().filter_map(|frame| Some(frame.get("method")?.as_str()?.to_owned())).collect()
    }
}

/// What was written to stdout.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stdout(Arc<Mutex<Vec<u8>>>);

impl Stdout {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs an agent without an inbox to its end.
pub(crate) async fn run_alone(settings: AgentSettings) -> (Result<Ended, AgentError>, String) {
    let stdout = Stdout::default();
    let ended = tokio::time::timeout(PATIENCE, run(settings, None, stdout.clone(), pending())).await;
    (ended.expect("the agent's run ends"), stdout.text())
}

/// The stop reason of a run that ended well.
#[track_caller]
pub(crate) fn stop_reason(ended: Result<Ended, AgentError>) -> String {
    ended.unwrap().stop_reason().unwrap().to_owned()
}

/// Waits for something that a process does.
pub(crate) async fn eventually(what: &str, mut is_done: impl FnMut() -> bool) {
    let looking = async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}
