//! The server's stderr, on a thread of its own.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    sync::mpsc::Sender,
};

use handraise_transport::complaints::{Complaints, LONGEST};

/// Logs each line until the end. `_ended` is dropped then.
pub(crate) fn log(stderr: File, _ended: Sender<()>) {
    let mut reader = BufReader::new(stderr);
    let mut complaints = Complaints::default();
    let mut line = Vec::new();
    while let Ok(1..) = (&mut reader).take(LONGEST).read_until(b'\n', &mut line) {
        complaints.log(&line);
        line.clear();
    }
}
