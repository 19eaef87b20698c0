//! The `handraise` program: hands its arguments and environment to the library.

use std::process::ExitCode;

use handraise_config::Environment;

fn main() -> ExitCode {
    handraise_cli::run(std::env::args_os(), Environment::of_process)
}
