//! The processes that the tests run: the supervisor and the scripted agent.
//!
//! - `… supervise --parent PID -- CMD…` is the supervisor;
//! - `… fake-agent ARG…` is the scripted agent.

use std::process::ExitCode;

use handraise_transport::supervise;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == "supervise" => supervise::run(args),
        Some(word) if word == "fake-agent" => {
            ExitCode::from(handraise_fake_agent::run(args, std::io::stdin(), std::io::stdout()))
        }
        _ => ExitCode::FAILURE,
    }
}
