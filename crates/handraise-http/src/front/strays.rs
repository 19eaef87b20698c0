//! Answers of a server that belong to no open request: who waits for them waits for ever, and the log says why.

use handraise_mcp::frame::Id;
use handraise_transport::{clock::SystemClock, escape, limited::Limited};

/// How much of an id is logged, in characters.
const SHOWN: usize = 100;

/// Logs them, and not without end.
#[derive(Debug, Default)]
pub(crate) struct Strays(Option<Box<Limited>>);

impl Strays {
    /// An answer belongs to nobody. `is_late`: its request may have been cancelled, so that nobody misses it.
    pub(crate) fn found(&mut self, id: Id<'_>, is_late: bool) {
        let id = || escape::shortened(id.raw(), SHOWN);
        if is_late {
            tracing::debug!(id = %id(), "an MCP server has answered a request that was cancelled");
            return;
        }
        let limited = self.0.get_or_insert_with(|| Box::new(Limited::new(SystemClock::shared())));
        if let Some(left_out) = limited.admit() {
            tracing::warn!(left_out, id = %id(), "an MCP server has answered under an id that no open request has");
        }
    }
}
