//! `cargo xtask peers`: real programs of others against the product, with models that follow a script.
//!
//! Everything runs where there is no network, in a home of its own, from packages of a pinned version. It is slow and
//! installs much, so it is a command of its own and no part of `cargo xtask test`.

mod agents;
mod elicits;
mod install;
mod model;
mod namespace;
mod tap;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::project::Project;

/// What to run.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// ACP agents behind `handraise agent`.
    Agents(agents::Arguments),
    /// Passes the lines between a client and an agent on, and writes them down.
    #[command(hide = true)]
    Tap(tap::Arguments),
    /// An MCP server that asks its client.
    #[command(hide = true)]
    Elicits(elicits::Arguments),
}

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.suite {
        Suite::Agents(arguments) => return agents::run(project, arguments),
        Suite::Tap(arguments) => tap::run(arguments)?,
        Suite::Elicits(arguments) => elicits::run(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
