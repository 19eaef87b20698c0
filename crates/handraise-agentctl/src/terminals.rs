//! The terminals of a session: commands that are run for the agent, where that is allowed (`--allow-terminal`).
//!
//! A terminal is a command under a supervisor of its own (S35) with the agent's environment (S7), started beneath the
//! session's working directory (S45), and the end of what it writes. There is no terminal device: nothing is on stdin,
//! and stdout and stderr are one pipe. It lives until the agent releases it or the session ends.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use handraise_acp::terminal::{Exit, Order};
use handraise_transport::{
    ids,
    spawn::{Spawn, Supervised, Supervisor, spawn_joined},
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    files::{FileError, Files, entrance},
    tail::Tail,
};

/// How many terminals a session has at a time, those included whose commands are still ending after their release.
pub(crate) const MOST: usize = 16;
/// How many bytes of output are kept of a terminal, whatever its agent asks for.
pub(crate) const MOST_OUTPUT: usize = 1024 * 1024;
/// How much is read at once.
const PIECE: usize = 32 * 1024;
/// How long the output of a command that has ended may stay open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long the ends of all commands may take when the session ends: the supervisors' own time and a moment.
const CLOSING: Duration = Duration::from_secs(4);

/// Why a terminal method was refused. The words go to the agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TerminalError {
    #[error("cwd: {0}")]
    Cwd(#[from] FileError),
    #[error("the session has {MOST} terminals; release one first")]
    TooMany,
    #[error("there is no such terminal")]
    Unknown,
    #[error("the session is ending")]
    Closed,
    #[error("the command cannot be started: {0}")]
    Start(io::Error),
    #[error("interrupted")]
    Interrupted,
}

/// What the terminals of a session are run with, and those that there are.
pub(crate) struct Terminals {
    files: Arc<Files>,
    environment: Vec<(OsString, OsString)>,
    supervisor: Supervisor,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    is_closed: bool,
    terminals: BTreeMap<String, Arc<Terminal>>,
    /// One task for each command that has not ended.
    attended: JoinSet<()>,
}

/// One terminal.
struct Terminal {
    tail: Mutex<Tail>,
    exit: watch::Sender<Option<Exit>>,
    /// Whether we have asked the command to end.
    is_ending: AtomicBool,
    end: Notify,
}

impl Terminals {
    /// For commands with this environment, which is cleaned already.
    pub(crate) fn new(
        files: Arc<Files>,
        environment: Vec<(OsString, OsString)>,
        supervisor: Supervisor,
    ) -> Self {
        Self { files, environment, supervisor, open: Mutex::default() }
    }

    /// `terminal/create`: starts a command.
    pub(crate) async fn create(&self, order: Order) -> Result<Value, TerminalError> {
        let Order { program, args, env, cwd, output_byte_limit, .. } = order;
        // A directory on a network may take its time.
        let files = Arc::clone(&self.files);
        let directory = tokio::task::spawn_blocking(move || files.directory(cwd.as_deref())).await;
        let directory = directory.map_err(|_| TerminalError::Interrupted)??;
        // Where we are says nothing about where the command is.
        let inherited = self.environment.iter().filter(|(name, _)| name != "PWD").cloned();
        let order = Spawn {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            cwd: Some(entrance(&directory)),
            environment: inherited
                .chain(env.into_iter().map(|(name, value)| (name.into(), value.into())))
                .collect(),
        };
        let limit = output_byte_limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MOST_OUTPUT);
        let mut open = self.lock();
        while open.attended.try_join_next().is_some() {}
        if open.is_closed {
            return Err(TerminalError::Closed);
        }
        if open.terminals.len().max(open.attended.len()) >= MOST {
            return Err(TerminalError::TooMany);
        }
        let (child, output) = spawn_joined(&order, &self.supervisor).map_err(TerminalError::Start)?;
        let id = ids::mint();
        let terminal = Arc::new(Terminal {
            tail: Mutex::new(Tail::new(limit.min(MOST_OUTPUT))),
            exit: watch::Sender::new(None),
            is_ending: AtomicBool::new(false),
            end: Notify::new(),
        });
        open.attended.spawn(attend(Arc::clone(&terminal), child, output));
        open.terminals.insert(id.clone(), terminal);
        Ok(json!({"terminalId": id}))
    }

    /// `terminal/output`: what it has written so far, and how it ended once it has.
    pub(crate) fn output(&self, id: &str) -> Result<Value, TerminalError> {
        let terminal = self.find(id)?;
        // The exit first: it is there only once the output is whole.
        let exit = terminal.exit.borrow().clone();
        let (output, truncated) = terminal.tail().text(exit.is_some());
        let mut result = json!({"output": output, "truncated": truncated});
        if let Some(exit) = exit {
            result["exitStatus"] = exit.to_json();
        }
        Ok(result)
    }

    /// `terminal/wait_for_exit`
    pub(crate) async fn wait_for_exit(&self, id: &str) -> Result<Value, TerminalError> {
        let terminal = self.find(id)?;
        Ok(terminal.ended().await.to_json())
    }

    /// `terminal/kill`: ends the command, if it has not ended, and keeps the terminal.
    pub(crate) async fn kill(&self, id: &str) -> Result<Value, TerminalError> {
        let terminal = self.find(id)?;
        terminal.end();
        terminal.ended().await;
        Ok(json!({}))
    }

    /// `terminal/release`: the same, and forgets the terminal. Whoever waits for its exit is still told.
    pub(crate) async fn release(&self, id: &str) -> Result<Value, TerminalError> {
        let terminal = self.lock().terminals.remove(id).ok_or(TerminalError::Unknown)?;
        terminal.end();
        terminal.ended().await;
        Ok(json!({}))
    }

    /// The session ends: every command ends, and none is started any more.
    pub(crate) async fn close(&self) {
        let mut attended = {
            let mut open = self.lock();
            open.is_closed = true;
            for terminal in std::mem::take(&mut open.terminals).values() {
                terminal.end();
            }
            std::mem::take(&mut open.attended)
        };
        let all = async { while attended.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSING, all).await.is_err() {
            tracing::warn!("commands of the agent's terminals do not end");
        }
    }

    fn find(&self, id: &str) -> Result<Arc<Terminal>, TerminalError> {
        self.lock().terminals.get(id).map(Arc::clone).ok_or(TerminalError::Unknown)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminal {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        if self.exit.borrow().is_none() {
            self.is_ending.store(true, Ordering::Release);
            self.end.notify_one();
        }
    }

    async fn ended(&self) -> Exit {
        // The sender is in `self`, so that there is always an end to come.
        match self.exit.subscribe().wait_for(Option::is_some).await {
            Ok(exit) => exit.clone().unwrap_or(Exit::Unknown),
            Err(_) => Exit::Unknown,
        }
    }
}

/// Reads what a command writes until it has ended.
async fn attend(terminal: Arc<Terminal>, mut child: Supervised, mut output: pipe::Receiver) {
    let mut piece = vec![0; PIECE];
    let mut is_open = true;
    let status = loop {
        tokio::select! {
            read = output.read(&mut piece), if is_open => match read {
                Ok(count) if count > 0 => terminal.tail().push(&piece[..count]),
                Ok(_) | Err(_) => is_open = false,
            },
            () = terminal.end.notified() => child.terminate(),
            status = child.wait() => break status,
        }
    };
    // What it wrote last is in the pipe. Nothing of it is left to write more.
    let rest = async {
        while let Ok(count) = output.read(&mut piece).await
            && count > 0
        {
            terminal.tail().push(&piece[..count]);
        }
    };
    if is_open && tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
        tracing::debug!("the output of a command stayed open after its end");
    }
    let exit = match status {
        Ok(status) => exit_of(status, terminal.is_ending.load(Ordering::Acquire)),
        Err(error) => {
            tracing::warn!(%error, "it is unknown how a command of the agent ended");
            Exit::Unknown
        }
    };
    terminal.exit.send_replace(Some(exit));
}

/// The supervisor passes a status on, and 128 plus the number of a signal, as shells do. That is read back as the signal
/// where we sent it: a command may exit with such a number by itself.
fn exit_of(status: ExitStatus, was_ended: bool) -> Exit {
    match (status.code(), status.signal()) {
        (Some(143), _) if was_ended => Exit::Signal("SIGTERM".to_owned()),
        (Some(137), _) if was_ended => Exit::Signal("SIGKILL".to_owned()),
        (Some(code), _) => u32::try_from(code).map_or(Exit::Unknown, Exit::Code),
        // The supervisor itself was killed, and then everything below it; or ended before it had started anything.
        (None, Some(15)) => Exit::Signal("SIGTERM".to_owned()),
        (None, Some(_)) => Exit::Signal("SIGKILL".to_owned()),
        (None, None) => Exit::Unknown,
    }
}
