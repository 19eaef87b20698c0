//! Our stdin and stdout with flags of their own. Those that we were given may be shared with other processes, and with our
//! own log: they stay as they are.

use std::{fs::File, io};

use handraise_transport::pipes::{STDIN, STDOUT, has_name};
use rustix::fs::{FileType, Mode, OFlags};

/// What a descriptor is.
pub(crate) fn kind(file: &File) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// Our stdin, and whether a read of it never waits: where it is a pipe and the system lets us.
///
/// Only a pipe without a name: one with a name, opened once its last writer has gone, waits for another one, and its end is
/// not told to who waits.
pub(crate) fn stdin() -> io::Result<(File, bool)> {
    let given = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    if kind(&given)? == FileType::Fifo
        && !has_name(STDIN)
        && let Some(anew) = opened(STDIN, OFlags::RDONLY)
    {
        return Ok((anew, true));
    }
    Ok((given, false))
}

/// Our stdout, which is a pipe, so that a write never waits; `None` where the system does not let us.
pub(crate) fn stdout() -> Option<File> {
    opened(STDOUT, OFlags::WRONLY)
}

fn opened(path: &str, way: OFlags) -> Option<File> {
    rustix::fs::open(path, way | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok().map(File::from)
}
