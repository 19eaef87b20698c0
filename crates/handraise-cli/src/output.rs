//! The two streams: stdout carries the product, stderr everything else.

use std::io::{self, IsTerminal as _, Write as _};

use handraise_transport::escape;

/// Prints a line of the product.
///
/// # Errors
/// When stdout cannot be written, such as a closed pipe.
pub(crate) fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Says something to whoever started us. What it quotes, such as a path or a key of a file, moves no terminal (S42).
pub(crate) fn complain(line: &str) {
    let line = escape::text(line);
    // Nobody listens when stderr is closed; the exit status still tells.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether somebody sits at the terminal that started us.
pub(crate) fn has_terminal() -> bool {
    io::stderr().is_terminal()
}
