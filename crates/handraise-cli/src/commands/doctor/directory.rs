//! The data directory: whether it is there, ours alone, and has room.

use std::{io::Write as _, os::unix::fs::MetadataExt as _, path::Path};

use super::{Finding, Word, fine, note, wrong};
use crate::local::Commands;

/// Bytes that are written to see whether there is room: a few pages of the database.
const ROOM: usize = 64 * 1024;

/// What is to be said of it, and whether it can be used.
pub(super) fn look(path: &Path, commands: &Commands) -> (Finding, bool) {
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let up = commands.quoted("up");
            return (note(format!("data directory: {shown} is not there yet; {up} makes it")), false);
        }
        Err(error) => return (wrong(format!("data directory: {shown} cannot be examined: {error}")), false),
    };
    let finding = if !metadata.is_dir() {
        wrong(format!("data directory: {shown} is no directory; name another with --data-dir"))
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        wrong(format!("data directory: {shown} belongs to another user; name your own with --data-dir"))
    } else if metadata.mode() & 0o077 != 0 {
        wrong(format!("data directory: others can look into {shown}; run `chmod 700 {shown}`"))
    } else if metadata.mode() & 0o700 != 0o700 {
        let mode = metadata.mode() & 0o777;
        wrong(format!(
            "data directory: {shown} has mode {mode:o}, and its owner has to read and write there; run `chmod 700 {shown}`"
        ))
    } else if let Err(error) = write(path) {
        wrong(format!(
            "data directory: nothing can be written in {shown}: {error}; free some space on its disk, or name another \
             with --data-dir"
        ))
    } else {
        fine(format!("data directory: {shown} is yours alone"))
    };
    let usable = finding.word == Word::Fine;
    (finding, usable)
}

/// Writes to a file without a name, which nobody sees and which is gone afterwards.
pub(super) fn write(folder: &Path) -> std::io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&vec![0; ROOM])?;
    file.sync_all()
}
