//! `handraise completions`: for shells.

use std::{io::Write as _, process::ExitCode};

use clap_complete::Shell;

use crate::Exit;

/// Print shell completions
///
/// Prints a completion script for a shell on stdout.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  handraise completions bash > ~/.local/share/bash-completion/completions/handraise"
)]
pub(crate) struct Arguments {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Exit {
    // Through memory, because writing to a closed pipe would be a panic in there.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::command(), "handraise", &mut script);
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&script)?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
