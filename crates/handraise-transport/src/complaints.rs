//! A server's stderr: to our log, and nowhere else.

use crate::{clock::SystemClock, escape, limited::Limited};

/// The longest piece that is logged as one line, in bytes.
pub const LONGEST: u64 = 4096;
/// How many lines are logged in ten seconds.
const BURST: u32 = 1000;

/// Logs the lines of one server.
#[derive(Debug)]
pub struct Complaints(Limited);

impl Default for Complaints {
    fn default() -> Self {
        Self(Limited::with_burst(SystemClock::shared(), BURST))
    }
}

impl Complaints {
    /// Logs a line, or a piece of one that is too long. Empty ones are left out, and so is what is too much; that is counted.
    pub fn log(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return;
        }
        if let Some(left_out) = self.0.admit() {
            if left_out > 0 {
                tracing::info!(left_out, "lines of an MCP server were left out");
            }
            tracing::info!(target: "mcp_server", "{}", escape::line(text));
        }
    }
}
