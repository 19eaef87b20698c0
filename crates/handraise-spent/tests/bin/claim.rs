//! Claims the nonces whose numbers come on stdin, one a line, and says what each was. Its argument is the folder.

use std::io::{BufRead as _, Write as _};

use handraise_spent::Store;

fn main() -> std::io::Result<()> {
    let base = std::env::args_os().nth(1).unwrap_or_default();
    let store = Store::files(base.as_ref(), &["spent"]).map_err(std::io::Error::other)?;
    let mut stdout = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let number: u128 = line?.parse().map_err(std::io::Error::other)?;
        let was = store.claim(number.to_be_bytes(), 1_000, 0);
        writeln!(stdout, "{was:?}")?;
        stdout.flush()?;
    }
    Ok(())
}
