//! A scripted ACP agent without a model: for the demo, and for tests that need a real process on the other side.
//!
//! It speaks ACP version 1 over a pair of streams. What a turn does is a [script](scripts::SCRIPTS), chosen by the
//! first word of the prompt or by `--script`. The forms it asks are those that
//! `@agentclientprotocol/claude-agent-acp` 0.65.0 sends, captured from the published package on 2026-11-29.
//!
//! It shares no code with the client side on purpose: two independent readings of the protocol check each other.

mod args;
mod forms;
mod odd;
pub mod scripts;
mod session;
mod terminals;
mod turn;
mod wire;

use std::{
    ffi::OsString,
    io::{Read, Write},
};

pub use args::USAGE;

/// Runs the agent until its input ends or a script ends the process; returns the exit status.
///
/// `args` are those after the program or subcommand name; see [`USAGE`].
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    input: impl Read + Send + 'static,
    output: impl Write + Send,
) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    if args.iter().any(|word| word == "--help" || word == "-h") {
        let mut output = output;
        return u8::from(writeln!(output, "{USAGE}").and_then(|()| output.flush()).is_err());
    }
    let options = match args::parse(args) {
        Ok(options) => options,
        Err(complaint) => {
            let _ = writeln!(std::io::stderr(), "{complaint}\n\n{USAGE}");
            return 2;
        }
    };
    let wire = match wire::Wire::new(input, output, options.record.as_deref()) {
        Ok(wire) => wire,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the record file cannot be written: {error}");
            return 2;
        }
    };
    session::serve(wire, &options)
}
