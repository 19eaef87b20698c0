//! The streams of a legacy session: its open POSTs, its GET stream, and what both have said lately.
//!
//! A frame goes to the client on one stream (2025-06-18, "Streamable HTTP"):
//!
//! - a response, progress, and a question of ours: on the stream of their call;
//! - a request of the server: on the stream of the newest open call, since the server asks on behalf of a call, else on
//!   the GET stream; its cancellation where it went;
//! - a log message: on the stream of the newest open call, so that it does not come behind the result;
//! - everything else: on the GET stream while there is one, else on the stream of the newest open call, else on the next
//!   GET stream.
//!
//! A client that disconnects has not cancelled. What its stream says is kept, and read with `Last-Event-ID`.

use std::sync::Arc;

use handraise_mcp::{
    envelope::Caller,
    frame::{ById, ClientFrame, Few, Id, Looks, RequestId, ServerFrame},
};

use super::{
    budget::Budget,
    desk::Unshown,
    events::{self, Events, comment, prime},
    handover::{AtOnce, Taker},
    outlet::{Outlet, QUIET},
    params::Params,
    pieces::{Came, Pieces},
    replay::{EventId, Replay},
};

/// The stream of GET.
const GENERAL: u64 = 0;
/// How many requests of the server are remembered, for their cancellations.
const MOST_ASKED: usize = 1024;
/// The first version whose clients take an event without data as a place to come back to.
const FIRST_PRIMED: &str = "\"2025-11-25\"";

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Desk {
    caller: Arc<Caller>,
    budget: Arc<Budget>,
    /// Open POSTs by the number of their stream: the highest is the newest.
    calls: Few<u64, Call>,
    by_id: ById<u64>,
    by_token: ById<u64>,
    /// On which streams the server's open requests went.
    asked: ById<u64>,
    streams: u64,
    general: General,
    replay: Replay,
    is_primed: bool,
}

/// An open POST.
#[derive(Debug)]
struct Call {
    id: RequestId,
    token: Option<RequestId>,
    outlet: Outlet,
    is_initialize: bool,
    params: Params,
}

/// The GET stream.
#[derive(Debug, Default)]
struct General {
    events: Option<Arc<Events>>,
    /// The last event that was handed to a client.
    sent: u64,
}

/// Why a request cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdInUse;

impl Desk {
    pub(crate) fn new(caller: Arc<Caller>, budget: Arc<Budget>, replay: Replay) -> Self {
        Self {
            caller,
            budget,
            calls: Few::default(),
            by_id: ById::default(),
            by_token: ById::default(),
            asked: ById::default(),
            streams: GENERAL,
            general: General::default(),
            replay,
            is_primed: false,
        }
    }

    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }

    /// Whether a request is open under this id.
    pub(crate) fn is_open(&self, id: Id<'_>) -> bool {
        self.by_id.get(id).is_some()
    }

    /// Opens the stream of a request.
    ///
    /// # Errors
    /// [`IdInUse`]: one stream has one request.
    pub(crate) fn open(
        &mut self,
        id: Id<'_>,
        frame: &ClientFrame<'_>,
        takes_events: bool,
        params: Params,
        at_once: Option<AtOnce>,
    ) -> Result<Taker, IdInUse> {
        if self.is_open(id) {
            return Err(IdInUse);
        }
        self.streams += 1;
        let (outlet, first) = Outlet::new(takes_events, at_once);
        let token = frame.progress_token().map(|(token, _)| token);
        if let Some(token) = token {
            self.by_token.insert(token, self.streams);
        }
        self.by_id.insert(id, self.streams);
        let call = Call {
            id: id.to_owned(),
            token: token.map(Id::to_owned),
            outlet,
            is_initialize: frame.method() == Some("initialize"),
            params,
        };
        self.calls.insert(self.streams, call);
        Ok(first)
    }

    /// What an open request came with.
    pub(super) fn params(&self, id: Id<'_>) -> Params {
        self.calls.get(self.by_id.get(id)?)?.params.clone()
    }

    /// Takes note of what else a client sends: a cancelled call's stream ends, for no response comes.
    pub(crate) fn note(&mut self, frame: &ClientFrame<'_>) {
        if let Some(stream) = frame.cancelled().and_then(|id| self.by_id.get(id)).copied()
            && let Some(call) = self.remove(stream)
        {
            call.outlet.end(&self.budget);
        }
        if frame.is_response()
            && let Some(id) = frame.id()
        {
            self.asked.remove(id);
        }
    }

    /// Takes a frame of the envelope's.
    pub(super) fn deliver(&mut self, for_call: Option<&RequestId>, frame: Vec<u8>) -> Result<(), Unshown> {
        let Some(stream) = for_call.and_then(|id| self.by_id.get(id.borrow())).copied() else {
            return Ok(());
        };
        let Ok(read) = ServerFrame::read(&frame, |_| Looks::default()) else { return Ok(()) };
        if read.response_id().is_some() {
            self.answer(stream, Came::own(&frame.into()));
            return Ok(());
        }
        let question = read.request_id().map(Id::to_owned);
        let is_shown = self.event(stream, &frame.into());
        match question {
            Some(id) if !is_shown => Err(Unshown(id)),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes a frame of the server's. Somebody always takes it: the GET stream that is or that comes.
    pub(super) fn forward(&mut self, frame: &ServerFrame<'_>, came: Came<'_>) -> Option<Vec<u8>> {
        if let Some(id) = frame.response_id() {
            // A late answer, to a call that was cancelled, has no stream any more.
            if let Some(stream) = self.by_id.get(id).copied() {
                self.learn(stream, frame);
                self.answer(stream, came);
            }
            return None;
        }
        let stream = self.stream_of(frame);
        if let Some(id) = frame.request_id()
            && self.asked.len() < MOST_ASKED
        {
            self.asked.insert(id, stream);
        }
        self.event(stream, &came.to_bytes().into());
        None
    }

    /// What the answer to `initialize` says about the client: how it takes streams.
    fn learn(&mut self, stream: u64, frame: &ServerFrame<'_>) {
        if self.calls.get(&stream).is_some_and(|call| call.is_initialize) {
            let version = frame.result_member("protocolVersion");
            self.is_primed = version.is_some_and(|version| version >= FIRST_PRIMED);
        }
    }

    /// Where a frame goes that is no response.
    fn stream_of(&self, frame: &ServerFrame<'_>) -> u64 {
        let newest = || self.calls.last(|call| call.outlet.takes_events()).copied();
        let is_open = |stream: &u64| self.calls.get(stream).is_some();
        if let Some((token, _)) = frame.progress_token() {
            return self.by_token.get(token).copied().filter(is_open).unwrap_or(GENERAL);
        }
        if let Some((id, _)) = frame.cancelled() {
            return self.asked.get(id).copied().filter(is_open).unwrap_or(GENERAL);
        }
        let is_for_call = frame.request_id().is_some() || frame.method() == Some("notifications/message");
        if !is_for_call && self.general.events.as_ref().is_some_and(|events| events.is_read()) {
            return GENERAL;
        }
        newest().unwrap_or(GENERAL)
    }

    /// Says something on a stream; false: nobody will ever read it.
    fn event(&mut self, stream: u64, frame: &Pieces) -> bool {
        let id = self.replay.next_id(stream);
        let event = events::event(&id.to_string(), frame);
        let is_kept = if let Some(call) = self.calls.get_mut(&stream) {
            call.outlet.event(&event, &self.budget) || matches!(call.outlet, Outlet::Detached)
        } else {
            if self.general.events.as_ref().is_some_and(|events| events.push(event.clone()).is_ok()) {
                self.general.sent = id.number;
            } else {
                self.general.events = None;
            }
            true
        };
        if is_kept {
            self.replay.keep(id, event);
        }
        is_kept
    }

    /// Says the last thing on a call's stream.
    fn answer(&mut self, stream: u64, came: Came<'_>) {
        if self.calls.get(&stream).is_some_and(|call| !call.outlet.is_silent()) {
            self.event(stream, &came.to_bytes().into());
            if let Some(call) = self.remove(stream) {
                call.outlet.end(&self.budget);
            }
        } else if let Some(Call { outlet: Outlet::Silent { first, .. }, .. }) = self.remove(stream) {
            // A client that has left knows nothing to come back to.
            first.answer([came.bytes(), b"", b""], || came.to_bytes().into());
        }
    }

    fn remove(&mut self, stream: u64) -> Option<Call> {
        let call = self.calls.remove(&stream)?;
        self.by_id.remove(call.id.borrow());
        if let Some(token) = &call.token
            && self.by_token.get(token.borrow()) == Some(&stream)
        {
            self.by_token.remove(token.borrow());
        }
        Some(call)
    }

    /// A GET: the general stream, or the rest of the one that `last` belongs to. One that was read elsewhere ends there.
    pub(crate) fn attach(&mut self, last: Option<EventId>) -> Arc<Events> {
        let events = Events::new(&self.budget);
        let last = last.unwrap_or(EventId { stream: GENERAL, number: self.general.sent });
        let mut sent = last.number;
        for (id, event) in self.replay.after(last) {
            // The queue is as large as what is kept.
            let _ = events.push(event);
            sent = id.number;
        }
        if last.stream == GENERAL {
            self.general.sent = self.general.sent.max(sent);
            if let Some(before) = self.general.events.replace(Arc::clone(&events)) {
                before.close();
            }
            if self.is_primed && self.general.sent == 0 {
                let id = self.replay.next_id(GENERAL);
                let _ = events.push(prime(&id.to_string()));
            }
        } else if let Some(call) = self.calls.get_mut(&last.stream)
            && !call.outlet.is_silent()
        {
            let before = std::mem::replace(&mut call.outlet, Outlet::Streaming(Arc::clone(&events)));
            before.end(&self.budget);
        } else {
            events.close();
        }
        events
    }

    /// Lets a second pass.
    pub(super) fn tick(&mut self) {
        for (stream, call) in self.calls.iter_mut() {
            let replay = &mut self.replay;
            let is_primed = self.is_primed;
            call.outlet.tick(&self.budget, || {
                if is_primed { prime(&replay.next_id(*stream).to_string()) } else { comment() }
            });
        }
        if let Some(events) = &self.general.events {
            events.tick(QUIET);
        }
    }

    /// Ends every stream.
    pub(super) fn close(&mut self) {
        for call in self.calls.take() {
            call.outlet.end(&self.budget);
        }
        (self.by_id, self.by_token) = (ById::default(), ById::default());
        if let Some(events) = self.general.events.take() {
            events.close();
        }
        // Nobody can come back for them, and somebody who waits for something else may hold the session.
        self.replay.clear();
    }

    /// Whether a client is there.
    pub(super) fn is_attended(&self) -> bool {
        self.calls.iter().any(|(_, call)| call.outlet.is_attended())
            || self.general.events.as_ref().is_some_and(|events| events.is_read())
    }

    /// How many events could not be kept since this was last asked.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        self.replay.take_dropped()
    }
}
