//! `handraise hook`: what a client asks its hooks, answered in the inbox.

mod called;
mod claude;
mod event;
mod settings;

use std::ffi::OsStr;

use clap::Subcommand;

use crate::{Context, Exit, arguments::Global};

/// Answer a client's hooks from the inbox
///
/// Some clients ask a program of yours before they ask you, or instead. This is such a program: it puts what the client asks
/// into the inbox, waits, and prints the answer in the client's own words.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise hook claude --print-settings > handraise-hooks.json\n  claude -p \"Tidy the devices\" --settings handraise-hooks.json"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) client: Client,
}

/// Whose hooks.
#[derive(Subcommand)]
pub(crate) enum Client {
    Claude(claude::Arguments),
}

impl Arguments {
    /// The exit status of whatever error, where that is not the usual one.
    pub(crate) fn failed(&self) -> Option<u8> {
        let Client::Claude(claude) = &self.client;
        claude.failed()
    }
}

/// `program` is the name by which we were called.
pub(crate) fn run(
    context: &Context,
    arguments: &Arguments,
    global: &Global,
    program: Option<&OsStr>,
) -> Exit {
    let Client::Claude(claude) = &arguments.client;
    claude::run(context, claude, global, program)
}
