//! What our stdin and stdout are.

/// Our stdin, as a path that leads to it.
pub const STDIN: &str = "/proc/self/fd/0";
/// Our stdout, likewise.
pub const STDOUT: &str = "/proc/self/fd/1";

/// Whether somebody else may open what [`STDIN`] or [`STDOUT`] leads to, as it is with a file, a terminal and a pipe that has
/// a name: such a pipe may get another writer or reader. Also where the system does not tell.
pub fn has_name(stream: &str) -> bool {
    !rustix::fs::readlink(stream, Vec::new())
        .is_ok_and(|name| [&b"pipe:"[..], b"socket:"].iter().any(|kind| name.as_bytes().starts_with(kind)))
}
