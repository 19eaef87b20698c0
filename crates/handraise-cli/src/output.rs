//! The two streams: stdout carries the product, stderr everything else.

use std::io::{self, IsTerminal as _, Write as _};

use handraise_config::LogFormat;
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    escape,
};
use serde_json::json;

/// stdout that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("stdout cannot be written: {0}")]
pub(crate) struct Unwritten(pub(crate) io::Error);

/// The exit status of a command whose reader has gone: that of a process which SIGPIPE ended.
pub(crate) const READER_GONE: u8 = 141;

/// Prints a line of the product.
///
/// # Errors
/// When stdout cannot be written, such as a closed pipe.
pub(crate) fn print(line: &str) -> Result<(), Unwritten> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(Unwritten)
}

/// Whether an error is only that whoever reads stdout has gone, as `head` does.
pub(crate) fn reader_has_gone(error: &anyhow::Error) -> bool {
    let unwritten = error.downcast_ref::<Unwritten>();
    unwritten.is_some_and(|Unwritten(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

/// An error with its causes. A cause that an error's own words have already is not said again.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.contains(&cause) {
            told.push_str(": ");
            told.push_str(&cause);
        }
    }
    told
}

/// Says something to whoever started us. What it quotes, such as a path or a key of a file, moves no terminal (S42).
pub(crate) fn complain(line: &str) {
    let line = escape::text(line);
    // Nobody listens when stderr is closed; the exit status still tells.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// The last word of a command that failed: after `error: `, or as a line like those of the logs, whatever is logged.
pub(crate) fn fail(format: LogFormat, message: &str) {
    match format {
        LogFormat::Text => complain(&format!("error: {message}")),
        LogFormat::Json => {
            let line = json!({
                "timestamp": format!("{:.6}", SystemClock.wall()),
                "level": "ERROR",
                "message": message,
                "target": env!("CARGO_CRATE_NAME"),
            });
            let _ = writeln!(io::stderr().lock(), "{}", escape::json(&line.to_string()));
        }
    }
}

/// Whether somebody sits at the terminal that started us.
pub(crate) fn has_terminal() -> bool {
    io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot listen: {0}; is it taken?")]
    struct Twice(#[source] io::Error);

    #[test]
    fn a_cause_is_told_once() {
        let taken = || io::Error::from(io::ErrorKind::AddrInUse);
        let whole = anyhow::anyhow!(Unwritten(taken())).context("no report");
        assert_eq!(told(&whole), "no report: stdout cannot be written: address in use");
        assert_eq!(told(&Twice(taken()).into()), "cannot listen: address in use; is it taken?");
        let listed: anyhow::Result<()> = Err(taken()).context("cannot listen");
        assert_eq!(told(&listed.unwrap_err()), "cannot listen: address in use");
    }
}
