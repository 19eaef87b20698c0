//! `cargo xtask bench`: speed as ratios to a bare baseline, measured in the same run.
//!
//! The numbers of one machine mean little; the ratio between two things measured in turns on it means more.

mod agent;
mod gateway;
mod inbox;
mod samples;
mod websocket;

use clap::{Args, Subcommand};

use crate::project::Project;

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
        Subject::Gateway(arguments) => gateway::run(project, arguments),
        Subject::GatewayPart(arguments) => gateway::part(arguments),
        Subject::Agent(arguments) => agent::run(arguments),
        Subject::Relay(arguments) => agent::relay(arguments),
    }
}
