//! Builds, checks and runs the project: `cargo xtask --help`.
//!
//! Everything that CI does is `cargo xtask test`; nothing lives only in CI. This crate depends on nothing of the
//! product but its settings registry, so that it builds in seconds and still runs when the product does not.

mod bench;
mod clock;
mod commands;
mod demo;
mod generate;
mod http;
mod inbox;
mod packages;
mod page;
mod peers;
mod project;
mod sdks;
mod soak;
mod test;
mod tidy;
mod typescript;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::project::Project;

/// Builds, checks and runs handraise.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", version, propagate_version = false)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs everything that CI runs, and says what it had to skip and why.
    Test,
    /// Builds the page and the binary and runs `handraise demo`.
    Demo(demo::Arguments),
    /// Checks the rules about the source itself: layers, licences, sizes, headers.
    Tidy,
    /// Writes the generated files: docs/configuration.md, docs/openapi.json, docs/cli, the page's types.
    Generate {
        /// Changes nothing and fails when a generated file is not what it should be.
        #[arg(long)]
        check: bool,
    },
    /// Builds the page into the server crate.
    Ui,
    /// Runs real agents, with scripted models, against the product, and compares with what is expected.
    Peers(peers::Arguments),
    /// Measures the product against a bare baseline in the same run.
    Bench(bench::Arguments),
    /// Runs mixed load with restarts of every process for minutes, and judges what came of it.
    Soak(soak::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            project::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let project = Project::find()?;
    match command {
        Command::Test => test::run(&project),
        Command::Demo(arguments) => demo::run(&project, arguments),
        Command::Tidy => tidy::run(&project),
        Command::Generate { check } => generate::run(&project, *check),
        Command::Ui => page::build(&project),
        Command::Peers(arguments) => return peers::run(&project, arguments),
        Command::Bench(arguments) => bench::run(&project, arguments),
        Command::Soak(arguments) => return soak::run(&project, arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
