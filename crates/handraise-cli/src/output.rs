//! The two streams: stdout carries the product, stderr everything else.

use std::io::{self, IsTerminal as _, Write as _};

/// Prints a line of the product.
///
/// # Errors
/// When stdout cannot be written, such as a closed pipe.
pub(crate) fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Says something to whoever started us.
pub(crate) fn complain(line: &str) {
    // Nobody listens when stderr is closed; the exit status still tells.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether somebody sits at the terminal that started us.
pub(crate) fn has_terminal() -> bool {
    io::stderr().is_terminal()
}
