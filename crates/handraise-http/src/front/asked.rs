//! On which streams of a session the server's open requests went: their cancellations go there as well.

use handraise_mcp::frame::{ById, Id};

/// How many are remembered.
const MOST: usize = 1024;
/// The longest id that is, in bytes. Ids of servers have no bound of their own.
const LONGEST_ID: usize = 1024;

/// The streams of open requests of the server.
#[derive(Debug, Default)]
pub(super) struct Asked(ById<u64>);

impl Asked {
    /// A request went there.
    pub(super) fn went(&mut self, id: Id<'_>, stream: u64) {
        if self.0.len() < MOST && id.raw().len() <= LONGEST_ID {
            self.0.insert(id, stream);
        }
    }

    /// Where a request went.
    pub(super) fn stream_of(&self, id: Id<'_>) -> Option<u64> {
        self.0.get(id).copied()
    }

    /// A request has been answered.
    pub(super) fn answered(&mut self, id: Id<'_>) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_what_is_kept_of_a_servers_requests_is_bounded() {
        let mut asked = Asked::default();
        let is_known = |asked: &mut Asked, raw: &str| {
            let id = Id::parse(raw).unwrap();
            asked.went(id, 7);
            let is_known = asked.stream_of(id) == Some(7);
            asked.answered(id);
            assert_eq!(asked.stream_of(id), None);
            is_known
        };
        let long = |length: usize| format!("\"{}\"", "x".repeat(length));
        assert!(is_known(&mut asked, &long(1022)) && !is_known(&mut asked, &long(1023)));
        (0..MOST as u64).for_each(|number| asked.went(Id::parse(&number.to_string()).unwrap(), number));
        assert!(!is_known(&mut asked, "\"one more\""));
    }
}
