//! The stream of a session's GET, which belongs to no request.

use std::sync::Arc;

use super::{events::Events, outlet::QUIET, pieces::Pieces};

/// The GET stream.
#[derive(Debug, Default)]
pub(super) struct General {
    events: Option<Arc<Events>>,
    /// The last event that was handed to a client.
    sent: u64,
}

impl General {
    /// Whether a client reads it.
    pub(super) fn is_read(&self) -> bool {
        self.events.as_ref().is_some_and(|events| events.is_read())
    }

    /// The number of the last event that was handed to a client; 0: none was.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Says the event with this number, if a client takes it.
    pub(super) fn say(&mut self, number: u64, event: &Pieces) {
        if self.events.as_ref().is_some_and(|events| events.push(event.clone()).is_ok()) {
            self.sent = number;
        } else {
            self.events = None;
        }
    }

    /// Goes on with a client that has events up to `sent`. One that read it before has its end.
    pub(super) fn goes_on(&mut self, events: &Arc<Events>, sent: u64) {
        self.sent = self.sent.max(sent);
        if let Some(before) = self.events.replace(Arc::clone(events)) {
            before.close();
        }
    }

    /// Lets a second pass.
    pub(super) fn tick(&self) {
        if let Some(events) = &self.events {
            events.tick(QUIET);
        }
    }

    /// Ends it.
    pub(super) fn close(&mut self) {
        if let Some(events) = self.events.take() {
            events.close();
        }
    }
}
