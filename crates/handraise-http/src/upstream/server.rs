//! The server at a URL, as all links of the process see it.

use std::{collections::BTreeSet, fmt, io, sync::Arc};

use tokio::sync::Semaphore;

use super::{
    Target,
    dial::{self, Http},
    room::Room,
};

/// An MCP server at a URL, and the connections to it.
pub struct Server {
    pub(crate) http: Http,
    pub(crate) target: Target,
    /// The longest frame, in bytes.
    pub(crate) limit: usize,
    pub(crate) room: Arc<Room>,
    /// How many requests of a link may be under way at once.
    pub(crate) concurrency: usize,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Server {
    /// The server at a target. Frames are at most `max_frame` bytes long; a link has at most `concurrency` requests under
    /// way at once, and others wait. What the answers of all links hold is at most `in_flight` bytes, of which those of several
    /// `callers`, by their names, have shares.
    ///
    /// # Errors
    /// When connections cannot be prepared, as when this machine trusts nobody.
    pub fn new(
        target: Target,
        max_frame: usize,
        concurrency: usize,
        in_flight: usize,
        callers: &BTreeSet<&str>,
    ) -> io::Result<Self> {
        let http = dial::client(&target)?;
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self { http, target, limit: max_frame, room: Room::new(in_flight, callers), concurrency })
    }
}
