//! The server's stderr: to our log, and nowhere else.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    sync::mpsc::Sender,
};

use handraise_transport::{clock::SystemClock, escape, limited::Limited};

/// The longest piece that is logged as one line, in bytes.
const LINE: u64 = 4096;
/// How many lines are logged in ten seconds.
const BURST: u32 = 1000;

/// Logs each line until the end. `_ended` is dropped then.
pub(crate) fn log(stderr: File, _ended: Sender<()>) {
    let mut reader = BufReader::new(stderr);
    let mut limited = Limited::with_burst(SystemClock::shared(), BURST);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            continue;
        }
        if let Some(left_out) = limited.admit() {
            if left_out > 0 {
                tracing::info!(left_out, "lines of the MCP server were left out");
            }
            tracing::info!(target: "mcp_server", "{}", escape::line(text));
        }
    }
}
