//! Sessions of agents and what happened in them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// One session of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Minted by the holder; inbox-wide.
    pub id: String,
    /// The agent's configured id, e.g. `claude-acp`.
    pub agent: String,
    /// The agent's own name for it, or the first words of the first prompt.
    #[schema(required)]
    pub title: Option<String>,
    /// Where it runs.
    #[schema(required)]
    pub cwd: Option<String>,
    /// Whether a turn is under way.
    pub state: SessionState,
    /// How the last turn ended, in ACP's words.
    #[schema(required)]
    pub stop_reason: Option<String>,
    /// Whether tool calls go on although no turn is under way.
    pub background: bool,
    /// `clarification` while an ask of it is open (AC-08, D3).
    #[schema(required)]
    pub pending_action: Option<PendingAction>,
    /// How many asks of it are open.
    pub waiting: u32,
    /// Whether its holder can be reached now.
    pub holder_connected: bool,
    /// The name of the token that its holder came with.
    pub holder_token: String,
    /// When it started.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// Whether a turn is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Waiting for a prompt.
    Idle,
    /// A turn is under way.
    Running,
    /// The agent is gone.
    Ended,
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PendingAction {
    /// A human's answer.
    Clarification,
}

/// One entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Message {
    /// Increases by one within a session; also the order.
    pub seq: u64,
    /// The session.
    pub session_id: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// Who speaks.
    pub author: Author,
    /// The words; what a tool call or plan says in one line.
    pub text: String,
    /// Whether `text` goes on where the entry before it stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Whether a human is asked for something.
    pub requests_input: bool,
    /// `pending_id` of an ask; `tool_call_id`, `status`, `tool_kind` of a tool call; `entries` of a plan;
    /// `stop_reason` of a turn's end.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// What a transcript entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// What the agent says.
    AgentText,
    /// What the agent thinks.
    Thought,
    /// What the operator prompted.
    UserText,
    /// A tool call, once per change of its status.
    ToolCall,
    /// The agent's plan.
    Plan,
    /// An ask was opened (AC-08).
    ClarificationRequest,
    /// A turn ended.
    TurnEnded,
    /// Something about the session itself, such as dropped entries.
    Notice,
}

/// Who a transcript entry is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The agent.
    Agent,
    /// A human, through the inbox or the command line.
    Operator,
    /// handraise.
    System,
}

/// `GET /sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// Newest first.
    pub sessions: Vec<Session>,
}

/// `GET /sessions/{id}/messages`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MessageList {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// Pass as `after` for the next page.
    #[schema(required)]
    pub next_after: Option<u64>,
}

/// `GET /agents`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// In the order of the configuration.
    pub agents: Vec<Agent>,
}

/// `[[agent]]`: an agent that the inbox may start. Its command stays in the configuration: it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    /// What `POST /sessions` calls it.
    pub id: String,
    /// Where it runs unless the request says otherwise.
    #[schema(required)]
    pub cwd: Option<String>,
}

/// Body of `POST /sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartSession {
    /// `[[agent]] id`.
    pub agent: String,
    /// Where; the agent's configured `cwd` otherwise.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The first prompt.
    #[serde(default)]
    pub prompt: Option<String>,
}

/// Body of `POST /sessions/{id}/prompt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptRequest {
    /// The operator's words.
    pub text: String,
}
