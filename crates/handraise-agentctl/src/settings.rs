//! What an agent is run with.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use handraise_acp::capabilities::agent_id_of;
use handraise_core::form::Order;
use handraise_transport::{clock::SharedClock, spawn::Supervisor};
use serde_json::Value;
use tokio::io::AsyncRead;

use crate::AgentError;

/// Lines that are prompts.
pub type PromptLines = Box<dyn AsyncRead + Send + Unpin>;

/// Everything that one agent is run with.
pub struct AgentSettings {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// `[[agent]] id` or `--agent-id`; the command's basename otherwise. Chooses the capabilities (AC-02).
    pub agent_id: Option<String>,
    /// Where the agent works, and the boundary of its file methods (S45).
    pub cwd: PathBuf,
    /// The inbox-wide session id (UUIDv7), when somebody else has minted it.
    pub session_id: Option<String>,
    /// Run this one turn, then end.
    pub prompt: Option<String>,
    /// Take each line of this as a prompt, after `prompt`.
    pub attach: Option<PromptLines>,
    /// Write events instead of text.
    pub json: bool,
    /// `--elicitation on|off`; the inbox's flag otherwise.
    pub elicitation: Option<bool>,
    /// `--allow-terminal`: the agent may have commands run, as our own user.
    pub allow_terminal: bool,
    /// How long an ask waits for a human (`HANDRAISE_ELICITATION_ANSWER_TIMEOUT`).
    pub answer_timeout: Duration,
    /// How long a silent agent lives (`HANDRAISE_ACP_IDLE_TIMEOUT`).
    pub idle_timeout: Duration,
    /// `mcpServers` of `session/new`, in ACP's own shape.
    pub mcp_servers: Vec<Value>,
    /// The whole environment of the agent, cleaned (S7).
    pub environment: Vec<(OsString, OsString)>,
    /// [`Order::Series`], or [`Order::Sorted`] for `acp.question_order = "sorted"`.
    pub question_order: Order,
    /// How processes are supervised.
    pub supervisor: Supervisor,
    /// Both clocks.
    pub clock: SharedClock,
    /// handraise's version, for `clientInfo`.
    pub version: String,
}

impl AgentSettings {
    /// Checks what can be checked before anything is started.
    ///
    /// # Errors
    /// When there is no command, or the answer timeout is not below the idle timeout (F13a).
    pub fn check(&self) -> Result<(), AgentError> {
        if self.command.is_empty() {
            return Err(AgentError::NoCommand);
        }
        let (answer, idle) = (self.answer_timeout, self.idle_timeout);
        if answer >= idle { Err(AgentError::AnswerOutlivesAgent { answer, idle }) } else { Ok(()) }
    }

    /// The agent's id: what was set, else the command's basename.
    pub fn agent_id(&self) -> String {
        self.agent_id.clone().unwrap_or_else(|| {
            let command = self.command.first().map(|command| command.to_string_lossy()).unwrap_or_default();
            agent_id_of(&command).to_owned()
        })
    }
}

/// Leaves out the prompt and the environment, which may hold secrets.
impl fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSettings")
            .field("command", &self.command)
            .field("agent_id", &self.agent_id)
            .field("cwd", &self.cwd)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}
