//! The processes that the tests run: the supervisor, the scripted agent, and `handraise agent` without an inbox.
//!
//! - `… supervise --parent PID -- CMD…` is the supervisor;
//! - `… fake-agent ARG…` is the scripted agent;
//! - `… run DIRECTORY PROMPT CMD…` runs an agent for one prompt and exits as `handraise agent` does.

use std::{ffi::OsString, future::pending, path::PathBuf, process::ExitCode, time::Duration};

use handraise_agentctl::{AgentSettings, run};
use handraise_core::form::Order;
use handraise_transport::{
    clock::SystemClock,
    spawn::{Supervisor, become_subreaper},
    supervise,
};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == "supervise" => supervise::run(args),
        Some(word) if word == "fake-agent" => {
            ExitCode::from(handraise_fake_agent::run(args, std::io::stdin(), std::io::stdout()))
        }
        Some(word) if word == "run" => run_agent(args),
        _ => ExitCode::FAILURE,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run_agent(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    if become_subreaper().is_err() {
        return ExitCode::FAILURE;
    }
    let settings = AgentSettings {
        cwd: args.next().map(PathBuf::from).unwrap_or_default(),
        prompt: args.next().map(|prompt| prompt.to_string_lossy().into_owned()),
        command: args.collect(),
        agent_id: None,
        session_id: None,
        attach: None,
        json: false,
        elicitation: None,
        allow_terminal: false,
        answer_timeout: Duration::from_secs(600),
        idle_timeout: Duration::from_secs(1200),
        mcp_servers: Vec::new(),
        environment: std::env::vars_os().collect(),
        question_order: Order::Series,
        supervisor: Supervisor::this_binary(),
        clock: SystemClock::shared(),
        version: "0.1.0".to_owned(),
    };
    match run(settings, None, std::io::stdout(), pending()).await {
        Ok(ended) => ExitCode::from(ended.exit_code()),
        Err(_) => ExitCode::FAILURE,
    }
}
