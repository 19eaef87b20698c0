//! Drives an ACP agent and holds its questions (acp.md).
//!
//! [`run`] starts the agent under the supervisor, introduces itself, opens a session and prompts it. What the agent
//! says becomes the session's transcript. What it asks goes to a [`Holder`](handraise_holder::Holder), and the
//! holder's verdict goes back **into the same request**: no new prompt, exactly one answer.
//!
//! No rule about forms, answers or outcomes lives here: the dialect is `handraise-acp`, the forms and the life
//! cycle of asks are `handraise-core`. What is decided here is when a turn, a session and a process end.

mod asks;
mod connection;
mod dispatch;
mod driver;
mod ended;
mod error;
mod files;
mod introduce;
mod link;
mod output;
mod process;
mod settings;
mod tail;
mod terminals;
mod transcript;
mod turns;

pub use driver::run;
pub use ended::Ended;
pub use error::AgentError;
pub use settings::{AgentSettings, PromptLines};
