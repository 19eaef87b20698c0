//! `handraise report`: what was measured, from the inbox of this machine.

mod asks;
mod sheet;
mod tally;

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use crate::{Context, Exit};

/// Say how asks ended
///
/// Counts what the inbox of this machine has kept: how asks ended, by client, era, rail, provenance or tool.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise report asks\n  handraise report asks --by tool --since 7d --format markdown"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    report: Report,
    /// The data directory of the inbox on this machine
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Report {
    /// Say how asks ended
    ///
    /// Counts the records of the inbox (GET /records): one for each rail that was tried for an ask. What a human did, what
    /// a client reports, and what was never shown to anybody are columns of their own. Tried is how many records there are;
    /// p50, p99 and waited are about those in which somebody was waited for.
    #[command(
        after_help = "Examples:\n  handraise report asks\n  handraise report asks --by rail --client \"some client\"\n  handraise report asks --by tool --since 7d --format csv"
    )]
    Asks(asks::Arguments),
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for a terminal.
    Table,
    /// A table of a Markdown document.
    Markdown,
    /// One object with everything; durations in milliseconds.
    Json,
    /// A line each; durations in milliseconds.
    Csv,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    match &arguments.report {
        Report::Asks(asks) => crate::block_on(asks::run(context, asks)),
    }
}
