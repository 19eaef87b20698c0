//! The agent's process: started under the supervisor, its stderr in the log.

use std::{
    collections::VecDeque,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use handraise_transport::{
    clock::SharedClock,
    escape,
    limited::Limited,
    lines::Lines,
    spawn::{Spawn, Supervised, spawn},
};
use tokio::{io::AsyncRead, task::JoinHandle};

use crate::{AgentError, AgentSettings};

/// The longest piece of stderr that is logged as one line, in bytes.
const STDERR_LINE: usize = 4096;
/// How many of the last lines are kept for the error message.
const LAST_WORDS: usize = 5;
/// How many characters of each.
const LAST_WORDS_LENGTH: usize = 300;
/// How long the agent may take to end by itself once its stdin is closed.
const LEAVE: Duration = Duration::from_millis(500);

/// A running agent.
pub(crate) struct Process {
    child: Supervised,
    last_words: Arc<Mutex<VecDeque<String>>>,
    stderr: Option<JoinHandle<()>>,
}

impl Process {
    pub(crate) fn start(settings: &AgentSettings) -> Result<Self, AgentError> {
        let mut words = settings.command.iter().cloned();
        let program = words.next().ok_or(AgentError::NoCommand)?;
        let command = program.to_string_lossy().into_owned();
        let order = Spawn {
            program,
            args: words.collect(),
            cwd: Some(settings.cwd.clone()),
            environment: settings.environment.clone(),
        };
        let mut child =
            spawn(&order, &settings.supervisor).map_err(|source| AgentError::Spawn { command, source })?;
        let last_words = Arc::default();
        let stderr = child.stderr.take().map(|stderr| {
            tokio::spawn(log_stderr(stderr, Arc::clone(&last_words), Arc::clone(&settings.clock)))
        });
        Ok(Self { child, last_words, stderr })
    }

    /// The agent's stdout and stdin; once.
    pub(crate) fn pipes(&mut self) -> Option<(tokio::process::ChildStdout, tokio::process::ChildStdin)> {
        self.child.stdout.take().zip(self.child.stdin.take())
    }

    /// Waits for the end. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the agent, which is given a moment to leave by itself because its stdin is closed.
    pub(crate) async fn stop(&mut self) {
        if tokio::time::timeout(LEAVE, self.child.wait()).await.is_err()
            && let Err(error) = self.child.stop().await
        {
            tracing::warn!(%error, "it is unknown how the agent ended");
        }
    }

    /// How it ended by itself, for people.
    pub(crate) async fn ended(&mut self) -> AgentError {
        let how = match self.wait().await {
            Ok(status) => match status.code() {
                Some(code) => format!("with exit status {code}"),
                None => "because its supervisor was killed".to_owned(),
            },
            Err(error) => format!("in an unknown way ({error})"),
        };
        // Whatever it said last is in the pipe by now.
        if let Some(stderr) = self.stderr.take() {
            let _ = tokio::time::timeout(LEAVE, stderr).await;
        }
        let stderr = self.last_words.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        AgentError::Ended { how, stderr }
    }
}

async fn log_stderr(
    stderr: impl AsyncRead + Unpin,
    last_words: Arc<Mutex<VecDeque<String>>>,
    clock: SharedClock,
) {
    let mut lines = Lines::in_pieces(stderr, STDERR_LINE);
    let mut limited = Limited::new(clock);
    while let Ok(Some(line)) = lines.next().await {
        let line = line.lossy();
        if let Some(left_out) = limited.admit() {
            // What an agent says of its work may hold questions and answers, so it stays at DEBUG; its last words
            // are in the error when it fails.
            tracing::debug!(left_out, "agent: {}", escape::line(&line));
        }
        let mut last = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == LAST_WORDS {
            last.pop_front();
        }
        last.push_back(escape::shortened(&line, LAST_WORDS_LENGTH));
    }
}
