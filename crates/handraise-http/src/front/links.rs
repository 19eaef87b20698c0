//! Which links there are: found, started and forgotten.

use std::{fmt, sync::Arc};

use handraise_core::Moment;
use handraise_mcp::envelope::{Caller, Envelope};
use handraise_transport::ids;

use super::{
    Front, Session, Taken, budget::Budget, child, desk::Desk, link::Link, lock, metrics::Count, remote,
    replay::Replay, reply::Refusal, session, shared, stdin::Stdin,
};
use crate::now::now;

impl Front {
    /// A principal's session.
    pub(super) fn session(&self, id: &str, principal: &str) -> Option<Arc<Link>> {
        let link = lock(&self.sessions).get(id).map(|session| Arc::clone(&session.link))?;
        // Somebody else's session is none (S10).
        (&*link.principal == principal && !link.is_over()).then_some(link)
    }

    /// Opens a session, and starts its server.
    pub(super) fn open_session(
        self: &Arc<Self>,
        principal: &Arc<str>,
    ) -> Result<(String, Arc<Link>), Refusal> {
        let id = ids::secret().map_err(|error| start_failed(&error))?;
        if let Some(seconds) = lock(&self.openings).get(principal).and_then(|known| known.wait(now().boot)) {
            return Err(Refusal::Restarting(seconds));
        }
        let mut sessions = lock(&self.sessions);
        let Some(place) = Taken::of(&self.places, principal) else {
            self.metrics.count(Count::Sessions);
            return Err(Refusal::Sessions);
        };
        let bound = Caller { principal: principal.to_string(), session: Some(id.clone()) };
        let replay = Replay::new(self.caps.replay_events, self.caps.replay_bytes, &self.metrics);
        let budget = self.part(principal);
        let is_remote = self.upstream.is_some();
        let desk = session::Desk::new(Arc::new(bound), Arc::clone(&budget), replay, is_remote);
        let link = self.start(principal, Desk::Session(Box::new(desk)), budget)?;
        sessions.insert(id.clone(), Session { link: Arc::clone(&link), _place: place });
        Ok((id, link))
    }

    /// The server of a principal's modern requests.
    pub(super) fn shared(self: &Arc<Self>, principal: &Arc<str>) -> Result<Arc<Link>, Refusal> {
        let mut shared = lock(&self.shared);
        if let Some(link) = shared.get(principal).filter(|link| !link.is_over()) {
            return Ok(Arc::clone(link));
        }
        if let Some(seconds) = lock(&self.restarts).get(principal).and_then(|known| known.wait(now().boot)) {
            return Err(Refusal::Restarting(seconds));
        }
        let budget = self.part(principal);
        let desk = shared::Desk::new(Arc::clone(&budget), self.caps.subscriptions, self.upstream.is_some());
        let link = self.start(principal, Desk::Shared(desk), budget)?;
        shared.insert(Arc::clone(principal), Arc::clone(&link));
        Ok(link)
    }

    fn start(
        self: &Arc<Self>,
        principal: &Arc<str>,
        desk: Desk,
        budget: Arc<Budget>,
    ) -> Result<Arc<Link>, Refusal> {
        let random = || ids::random().map_err(|error| start_failed(&error));
        if let Some(server) = &self.upstream {
            let envelope = Envelope::of(Arc::clone(&self.process), principal, random()?);
            return Ok(remote::start(self, server, Arc::clone(principal), envelope, desk, budget));
        }
        let Some(place) = Taken::of(&self.children, principal) else {
            self.metrics.count(Count::Children);
            return Err(Refusal::Children);
        };
        let seed = random()?;
        let mut started = child::start(self).map_err(|error| start_failed(&error))?;
        let envelope = Envelope::of(Arc::clone(&self.process), principal, seed);
        let stdin = Stdin::new(started.take_stdin().ok_or(Refusal::Start)?, &self.frames);
        let link = Link::new(self, Arc::clone(principal), envelope, desk, stdin, budget);
        child::attend(&link, started, place);
        Ok(link)
    }

    /// A session's server has answered to its opening.
    pub(super) fn has_opened(&self, principal: &Arc<str>) {
        lock(&self.openings).remove(principal);
    }

    /// A server of modern requests, or of a session that it never opened, has ended by itself.
    pub(super) fn ended_by_itself(&self, link: &Link, started: Moment, of_session: bool) {
        // Without randomness there is nothing to spread, and all of the wait.
        let random = ids::random().map_or(u8::MAX, |bytes| bytes[0]);
        let mut restarts = lock(if of_session { &self.openings } else { &self.restarts });
        let known = restarts.entry(Arc::clone(&link.principal)).or_default();
        let wait = known.ended(started, now().boot, random);
        if !wait.is_zero() {
            tracing::warn!(
                principal = &*link.principal,
                ?wait,
                "an MCP server keeps ending; none is started for a while"
            );
        }
    }

    /// A link's server has ended.
    pub(super) fn forget(&self, link: &Arc<Link>) {
        lock(&self.sessions).retain(|_, known| !Arc::ptr_eq(&known.link, link));
        lock(&self.shared).retain(|_, known| !Arc::ptr_eq(known, link));
    }

    /// Ends a session.
    pub(super) fn end_session(&self, id: &str) {
        let session = lock(&self.sessions).remove(id);
        if let Some(Session { link, .. }) = session {
            link.end();
        }
    }
}

fn start_failed(error: &dyn fmt::Display) -> Refusal {
    tracing::error!("the MCP server cannot be started: {error}");
    Refusal::Start
}
