//! Who is watched for what, and what it means that somebody has gone away who is neither read nor written to.

use std::{fs::File, os::fd::AsFd as _, time::Duration};

use rustix::event::Timespec;

use crate::{
    run::{Gateway, now},
    waiter::{Interests, Ready, Until, Who},
};

/// How much of our own may wait for a side that does not read before nothing more is taken from the other side.
const MOST_MADE: usize = 16 * 1024 * 1024;

impl Gateway {
    /// Waits for somebody who is ready, at most so long, and notes who has gone.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> Ready {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let (up, down) = (&self.up.outlet, &self.down.outlet);
        let (client, to_server, to_client) = (self.client_until(), up.until(), down.until());
        let interests: Interests<'_> = [
            (Some(self.wakeups.pipe.as_fd()), Some(Until::Input)),
            (Some(self.up.source().as_fd()), client),
            (Some(self.down.source().as_fd()), self.reads_server().then_some(Until::Input)),
            (self.complaints.as_ref().map(File::as_fd), Some(Until::Input)),
            (up.file().map(File::as_fd), to_server),
            (down.file().map(File::as_fd), to_client),
        ];
        let ready = self.waiter.wait(&interests, timeout.as_ref());
        self.now = now();
        for (who, until) in [(Who::Client, client), (Who::ToServer, to_server), (Who::ToClient, to_client)] {
            if until == Some(Until::Deaf) && ready.has(who) {
                self.note_gone(who);
            }
        }
        ready
    }

    /// A client that is not read is watched all the same: what it has sent may never go on.
    fn client_until(&self) -> Option<Until> {
        if self.reads_client() {
            Some(Until::Input)
        } else {
            (!self.client_sends_no_more()).then_some(Until::Deaf)
        }
    }

    /// Whether all that will come of the client is here, or waits in its pipe.
    pub(crate) fn client_sends_no_more(&self) -> bool {
        self.up.has_ended || self.client_hung_up
    }

    /// Whether the client is read: when all that it has sent has gone on, and what that brings finds room.
    pub(crate) fn reads_client(&self) -> bool {
        self.up.wants_more() && self.down.outlet.made() <= MOST_MADE
    }

    /// The same of the server.
    pub(crate) fn reads_server(&self) -> bool {
        self.down.wants_more() && self.up.outlet.made() <= MOST_MADE
    }

    /// Somebody has gone of whom nothing else is asked. It is told once: they are not watched any more.
    fn note_gone(&mut self, who: Who) {
        match who {
            // What it sent before is still there, and is read when its turn comes.
            Who::Client => self.client_hung_up = true,
            Who::ToClient => {
                self.down.outlet.note_deaf();
                self.client_is_gone();
            }
            // A server that has read everything may still answer; what is sent from now on fails by itself.
            Who::ToServer => self.progress.upstream_deaf |= self.up.outlet.note_deaf(),
            Who::Wakeups | Who::Server | Who::Complaints => {}
        }
    }
}
