//! `handraise agent`: runs an ACP agent and holds its questions.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use handraise_agentctl::{AgentSettings, PromptLines};
use handraise_api::words::HolderKind;
use handraise_config::{McpServerEntry, QuestionOrder, Secret, lists::McpTransport};
use handraise_core::form::Order;
use handraise_transport::{
    clock::SystemClock,
    spawn::{self, Supervisor},
};
use serde_json::{Value, json};

use crate::{Context, Exit, holding, signals};

/// Run an ACP agent
///
/// Runs an ACP agent and brings its questions to the inbox. Without --prompt it waits for prompts from the inbox;
/// with --prompt it runs that one turn, streams the agent's text to stdout and exits: 0 when the turn ended, 4 when it
/// was cancelled, 6 when it stopped for another reason, 1 on an error.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise agent -- npx -y @agentclientprotocol/claude-agent-acp\n  handraise agent --prompt \"Set up the database\" --cwd ~/src/shop -- npx -y @agentclientprotocol/claude-agent-acp\n  handraise agent --inbox https://inbox.example --agent-id codex -- codex-acp"
)]
pub(crate) struct Arguments {
    /// Run this one turn and exit
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// Where the agent works
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The inbox: https://HOST, http://127.0.0.1:PORT, unix:SOCKET, or none; otherwise the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<String>,
    /// What the agent is called; otherwise the command's name
    #[arg(long, value_name = "ID")]
    pub(crate) agent_id: Option<String>,
    /// Whose answers count: operator (every operator's), caller, or not-the-caller, by the owners of both tokens
    #[arg(long, value_name = "WHO")]
    pub(crate) who: Option<String>,
    /// Take further prompts from stdin, one a line
    #[arg(long)]
    pub(crate) attach: bool,
    /// Write events to stdout instead of text, one JSON object {event, data} a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Overrides the flag features.acpElicitation for this agent: on or off
    #[arg(long, value_name = "ON|OFF", value_parser = ["on", "off"], hide_possible_values = true)]
    pub(crate) elicitation: Option<String>,
    /// Let the agent run commands here, as your own user, without asking you
    #[arg(long)]
    pub(crate) allow_terminal: bool,
    /// The data directory of the inbox on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The session's id, minted by the inbox that starts us
    #[arg(long, value_name = "UUID", hide = true)]
    pub(crate) session_id: Option<String>,
    /// The agent's program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    if arguments.prompt.as_deref().is_some_and(|prompt| prompt.trim().is_empty()) {
        bail!(
            "--prompt is empty; say what the agent is to do, or leave it out to wait for prompts from the inbox"
        );
    }
    let otherwise = ", or say --inbox none to have every question declined";
    let inbox = if arguments.session_id.is_some() {
        // Settings may name another inbox for agents that people start; this one belongs to the one that started it.
        Some(holding::local_inbox(context, otherwise)?)
    } else {
        holding::inbox(context, otherwise)?
    };
    let settings = agent_settings(context, arguments)?;
    crate::block_on_one_thread(async {
        let shutdown = signals::shutdown_or_hangup()?;
        // Only once the inbox answers is anything started.
        let holder = if let Some((inbox, token)) = inbox {
            Some(holding::connect(context, HolderKind::Agent, inbox, token).await?)
        } else {
            tracing::warn!("no inbox: every question of the agent is declined, every permission rejected");
            None
        };
        spawn::become_subreaper()?;
        let ended = handraise_agentctl::run(settings, holder, std::io::stdout(), shutdown).await?;
        Ok(ExitCode::from(ended.exit_code()))
    })
}

fn agent_settings(context: &Context, arguments: &Arguments) -> anyhow::Result<AgentSettings> {
    let ours = &context.settings;
    let cwd = match &arguments.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => std::env::current_dir().context("the working directory is gone; name one with --cwd")?,
    };
    let environment = context.environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok(AgentSettings {
        command: arguments.command.clone(),
        agent_id: arguments.agent_id.clone(),
        cwd,
        session_id: arguments.session_id.clone(),
        prompt: arguments.prompt.clone(),
        attach: arguments.attach.then(|| Box::new(tokio::io::stdin()) as PromptLines),
        json: arguments.json,
        allow_terminal: ours.allow_terminal,
        elicitation: arguments.elicitation.as_deref().map(|word| word == "on"),
        answer_timeout: ours.answer_timeout,
        idle_timeout: ours.idle_timeout,
        mcp_servers: ours.mcp_servers.iter().map(mcp_server).collect(),
        environment: spawn::clean_environment(environment, &ours.pass_env),
        question_order: match ours.question_order {
            QuestionOrder::Wire => Order::Series,
            QuestionOrder::Sorted => Order::Sorted,
        },
        supervisor: Supervisor::this_binary(),
        clock: SystemClock::shared(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// An MCP server in the words of ACP's `session/new`.
fn mcp_server(server: &McpServerEntry) -> Value {
    let pairs = |pairs: &BTreeMap<String, Secret>| -> Vec<Value> {
        pairs.iter().map(|(name, value)| json!({"name": name, "value": value.expose()})).collect()
    };
    match &server.transport {
        McpTransport::Stdio { command, env } => {
            let (program, arguments) =
                command.split_first().map_or(("", &[][..]), |(program, rest)| (program, rest));
            json!({"name": server.name, "command": program, "args": arguments, "env": pairs(env)})
        }
        McpTransport::Http { url, headers } => {
            json!({"type": "http", "name": server.name, "url": url, "headers": pairs(headers)})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_servers_are_told_in_acp_s_words() {
        let pairs = |name: &str| BTreeMap::from([(name.to_owned(), Secret::new("v"))]);
        let stdio = McpServerEntry {
            name: "files".into(),
            transport: McpTransport::Stdio {
                command: vec!["mcp-files".into(), "-r".into()],
                env: pairs("KEY"),
            },
        };
        assert_eq!(
            mcp_server(&stdio),
            json!({"name": "files", "command": "mcp-files", "args": ["-r"], "env": [{"name": "KEY", "value": "v"}]})
        );
        let http = McpServerEntry {
            name: "web".into(),
            transport: McpTransport::Http {
                url: "https://mcp.example/".into(),
                headers: pairs("Authorization"),
            },
        };
        assert_eq!(
            mcp_server(&http),
            json!({
                "type": "http", "name": "web", "url": "https://mcp.example/",
                "headers": [{"name": "Authorization", "value": "v"}]
            })
        );
    }
}
