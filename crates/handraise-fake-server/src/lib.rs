//! A scripted MCP server: for the demo, and for tests that need a real process behind the gateway.
//!
//! It has device tools over devices that do not exist. A call that names none of several devices is refused with
//! the candidates, as AutoMobile's servers refuse (`ambiguous_device_target`); a call that names one says where it
//! ran. It speaks the legacy era (`initialize`) and the modern one (`server/discover`, `_meta`), over stdio and over HTTP.
//!
//! It shares no code with the gateway on purpose: two independent readings of the protocol check each other.

mod args;
mod devices;
mod http;
mod raw;
mod refusal;
mod server;
mod subscriptions;
mod tools;
mod wire;
mod witness;

use std::{
    ffi::OsString,
    io::{Read, Write},
};

pub use args::USAGE;

/// Runs the server until its input ends, or a tool ends the process; returns the exit status.
///
/// `args` are those after the program or subcommand name; see [`USAGE`].
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    input: impl Read + Send,
    output: impl Write + Send + 'static,
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
    let outcome = match (&options.http, &options.raw) {
        (Some(http), _) => http::run(&options, http, output),
        (None, Some(answer)) => raw::run(&options, answer, input, output),
        (None, None) => server::run(&options, &server::World::new(&options), input, output),
    };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the scripted server: {error}");
            1
        }
    }
}
