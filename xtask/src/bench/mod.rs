//! `cargo xtask bench`: speed as ratios to a bare baseline, measured in the same run.
//!
//! The numbers of one machine mean little; the ratio between two things measured in turns on it means more.

mod agent;
mod gateway;
mod inbox;
mod samples;
mod websocket;

use clap::{Args, Subcommand};

use crate::{commands::Run, project::Project};

/// What to measure.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// The inbox: how soon it is ready, from submission to the frame at the agent beside open asks, whole lives of asks a
    /// second, and pages of lists.
    Inbox(inbox::Arguments),
    /// What `handraise mcp` costs, beside a direct connection and a process that copies bytes.
    Gateway(gateway::Arguments),
    /// The other processes of that measurement.
    #[command(hide = true)]
    GatewayPart(gateway::PartArguments),
    /// The agent of the measurement, started by `handraise agent`.
    #[command(hide = true)]
    Agent(agent::Arguments),
    /// The bare program of the baseline.
    #[command(hide = true)]
    Relay(agent::RelayArguments),
}

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.subject {
        Subject::Inbox(arguments) => inbox::run(project, arguments),
        // Client, server and baseline are this program: unoptimised they would be what is measured.
        Subject::Gateway(_) if cfg!(debug_assertions) => optimised(project),
        Subject::Gateway(arguments) => gateway::run(project, arguments),
        Subject::GatewayPart(arguments) => gateway::part(arguments),
        Subject::Agent(arguments) => agent::run(arguments),
        Subject::Relay(arguments) => agent::relay(arguments),
    }
}

/// Becomes the same command, built with optimisations.
fn optimised(project: &Project) -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut command = vec!["run", "--quiet", "--release", "--package", "xtask", "--"];
    command.extend(arguments.iter().map(String::as_str));
    Run::cargo(project, &command).become_it()
}
