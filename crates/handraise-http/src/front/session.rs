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
//! A client that disconnects has not cancelled. What its stream says is kept, and read with `Last-Event-ID`. One that has
//! left before it was sent anything to come back to has not been shown what was asked there.

use std::sync::Arc;

use bytes::Bytes;
use handraise_mcp::{
    envelope::Caller,
    frame::{ClientFrame, Id, Looks, RequestId, ServerFrame},
};

use super::{
    asked::Asked,
    budget::Budget,
    calls::{self, Call, Calls},
    desk::Unshown,
    events::{self, Events, comment, prime},
    general::General,
    handover::{AtOnce, Taker},
    known::{Known, Refused},
    outlet::Outlet,
    params::Params,
    pieces::{Came, Pieces},
    question::Question,
    replay::{EventId, Replay},
    reply,
    shared::{ENDED, TOOLS_CHANGED},
    strays::Strays,
};

/// The stream of GET.
const GENERAL: u64 = 0;
/// The first version whose clients take an event without data as a place to come back to.
const FIRST_PRIMED: &str = "\"2025-11-25\"";

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Desk {
    caller: Arc<Caller>,
    budget: Arc<Budget>,
    calls: Calls,
    asked: Asked,
    streams: u64,
    general: General,
    replay: Replay,
    is_primed: bool,
    /// The server has answered to `initialize`.
    has_opened: bool,
    known: Known,
    /// How many calls were cancelled whose answers have not come.
    cancelled: u32,
    strays: Strays,
    is_closed: bool,
}

/// Why a request cannot be registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdInUse;

impl Desk {
    pub(crate) fn new(caller: Arc<Caller>, budget: Arc<Budget>, replay: Replay, is_remote: bool) -> Self {
        Self {
            caller,
            budget,
            calls: Calls::default(),
            asked: Asked::default(),
            streams: GENERAL,
            general: General::default(),
            replay,
            is_primed: false,
            has_opened: false,
            known: Known::new(is_remote),
            cancelled: 0,
            strays: Strays::default(),
            is_closed: false,
        }
    }

    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller)
    }

    /// Whether the server has answered to the opening of the session, whatever it said.
    pub(crate) fn has_opened(&self) -> bool {
        self.has_opened
    }

    /// Whether a request is open under this id.
    pub(crate) fn is_open(&self, id: Id<'_>) -> bool {
        self.calls.stream_of(id).is_some()
    }

    /// By which key the newest request is held.
    pub(crate) fn newest(&self) -> u64 {
        self.streams
    }

    /// Whose an open request is.
    pub(super) fn caller_of(&self, stream: u64) -> Option<Arc<Caller>> {
        self.calls.get(stream).map(|_| self.caller())
    }

    /// What is known of the server.
    pub(super) fn known(&mut self) -> &mut Known {
        &mut self.known
    }

    /// Ends a request with its refusal.
    pub(super) fn refuse(&mut self, stream: u64, refused: &Refused) {
        if let Some(Call { id, outlet, .. }) = self.remove(stream) {
            outlet.refuse(refused.reply(Some(id.borrow())).into(), &self.budget);
        }
    }

    /// Opens a question of ours. Its id is none that a client would choose.
    pub(super) fn ask(&mut self, question: &Question) -> Option<(u64, Bytes)> {
        self.streams += 1;
        let raw = format!("\"handraise-known-{}\"", self.streams);
        let id = Id::parse(&raw).filter(|id| !self.is_open(*id))?;
        let call = Call {
            id: id.to_owned(),
            token: None,
            outlet: Outlet::Lost,
            is_initialize: false,
            params: Params::default(),
            tells: Some(question.tells),
            is_ours: true,
            question: None,
        };
        self.calls.insert(self.streams, call);
        Some((self.streams, question.frame(&raw)))
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
        let call = Call {
            id: id.to_owned(),
            token: calls::token(frame).map(Id::to_owned),
            outlet,
            is_initialize: frame.method() == Some("initialize"),
            params,
            tells: self.known.tells(frame),
            is_ours: false,
            question: None,
        };
        self.calls.insert(self.streams, call);
        Ok(first)
    }

    /// What an open request came with.
    pub(super) fn params(&self, id: Id<'_>) -> Params {
        self.calls.get(self.calls.stream_of(id)?)?.params.clone()
    }

    /// Takes note of what else a client sends: a cancelled call's stream ends, for no response comes.
    pub(crate) fn note(&mut self, frame: &ClientFrame<'_>) {
        if let Some(stream) = frame.cancelled().and_then(|id| self.calls.stream_of(id))
            && let Some(call) = self.remove(stream)
        {
            self.cancelled = self.cancelled.saturating_add(1);
            call.outlet.end(&self.budget);
        }
        if frame.is_response()
            && let Some(id) = frame.id()
        {
            self.asked.answered(id);
        }
    }

    /// Takes a frame of the envelope's.
    pub(super) fn deliver(&mut self, for_call: Option<&RequestId>, frame: Vec<u8>) -> Result<(), Unshown> {
        let Some(stream) = for_call.and_then(|id| self.calls.stream_of(id.borrow())) else {
            return Ok(());
        };
        let Ok(read) = ServerFrame::read(&frame, |_| Looks::default()) else { return Ok(()) };
        if read.response_id().is_some() {
            if self.learn(stream, &read) {
                return Ok(());
            }
            self.answer(stream, Came::own(&frame.into()));
            return Ok(());
        }
        let question = read.request_id().map(Id::to_owned);
        let is_shown = self.event(stream, &frame.into());
        match question {
            Some(id) if !is_shown => return Err(Unshown(id)),
            Some(id) => {
                if let Some(call) = self.calls.get_mut(stream) {
                    call.question = Some(id);
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Takes a frame of the server's. Somebody always takes it: the GET stream that is or that comes.
    pub(super) fn forward(&mut self, frame: &ServerFrame<'_>, came: Came<'_>) -> Option<Vec<u8>> {
        if let Some(id) = frame.response_id() {
            if let Some(stream) = self.calls.stream_of(id) {
                if !self.learn(stream, frame) {
                    self.answer(stream, came);
                }
            } else {
                // One that was cancelled may be answered all the same.
                let is_late = self.cancelled > 0;
                self.cancelled = self.cancelled.saturating_sub(1);
                self.strays.found(id, is_late);
            }
            return None;
        }
        if frame.method() == Some(TOOLS_CHANGED) {
            self.known.tools_changed();
        }
        let stream = self.stream_of(frame);
        if let Some(id) = frame.request_id() {
            self.asked.went(id, stream);
        }
        self.event(stream, &came.to_bytes().into());
        None
    }

    /// What an answer says about the server, and the one to `initialize` about the client: how it takes streams. True: it
    /// was to a question of ours, and goes nowhere.
    fn learn(&mut self, stream: u64, frame: &ServerFrame<'_>) -> bool {
        let Some(call) = self.calls.get(stream) else { return false };
        let is_ours = call.is_ours;
        if call.is_initialize {
            let version = frame.result_member("protocolVersion");
            self.is_primed = version.is_some_and(|version| version >= FIRST_PRIMED);
            self.has_opened = true;
        }
        if let Some(tells) = call.tells {
            self.known.learn(tells, frame, is_ours);
        }
        if is_ours {
            self.remove(stream);
        }
        is_ours
    }

    /// Where a frame goes that is no response.
    fn stream_of(&self, frame: &ServerFrame<'_>) -> u64 {
        let is_open = |stream: &u64| self.calls.get(*stream).is_some();
        if let Some((token, _)) = frame.progress_token() {
            return self.calls.stream_of_token(token).unwrap_or(GENERAL);
        }
        if let Some((id, _)) = frame.cancelled() {
            return self.asked.stream_of(id).filter(is_open).unwrap_or(GENERAL);
        }
        let is_for_call = frame.request_id().is_some() || frame.method() == Some("notifications/message");
        if !is_for_call && self.general.is_read() {
            return GENERAL;
        }
        self.calls.newest().unwrap_or(GENERAL)
    }

    /// Says something on a stream; false: nobody will ever read it.
    fn event(&mut self, stream: u64, frame: &Pieces) -> bool {
        let id = self.replay.next_id(stream);
        let event = events::event(&id.to_string(), frame);
        let is_kept = if let Some(call) = self.calls.get_mut(stream) {
            call.outlet.event(&event, &self.budget) || matches!(call.outlet, Outlet::Detached)
        } else {
            self.general.say(id.number, &event);
            true
        };
        if is_kept {
            self.replay.keep(id, event);
        }
        is_kept
    }

    /// Says the last thing on a call's stream.
    fn answer(&mut self, stream: u64, came: Came<'_>) {
        if self.calls.get(stream).is_some_and(|call| !call.outlet.is_silent()) {
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
        let call = self.calls.remove(stream)?;
        self.known.forget(stream);
        Some(call)
    }

    /// A GET: the general stream, or the rest of the one that `last` belongs to. One that was read elsewhere ends there.
    /// `None`: the session has ended.
    pub(crate) fn attach(&mut self, last: Option<EventId>) -> Option<Arc<Events>> {
        if self.is_closed {
            return None;
        }
        let events = Events::resumed(&self.budget);
        let last = last.unwrap_or(EventId { stream: GENERAL, number: self.general.sent() });
        let mut sent = last.number;
        for (id, event) in self.replay.after(last) {
            // The queue is as large as what is kept.
            let _ = events.push(event);
            sent = id.number;
        }
        if last.stream == GENERAL {
            self.general.goes_on(&events, sent);
            if self.is_primed && self.general.sent() == 0 {
                let id = self.replay.next_id(GENERAL);
                let _ = events.push(prime(&id.to_string()));
            }
        } else if let Some(call) = self.calls.get_mut(last.stream)
            && !call.outlet.is_silent()
        {
            let before = std::mem::replace(&mut call.outlet, Outlet::Streaming(Arc::clone(&events)));
            before.end(&self.budget);
        } else {
            events.close();
        }
        Some(events)
    }

    /// Lets a second pass. Returns questions of ours that nobody can read any more.
    pub(super) fn tick(&mut self) -> Vec<Unshown> {
        if self.known.tick() {
            let ours = self.calls.iter().find(|(_, call)| call.is_ours).map(|(stream, _)| stream);
            ours.and_then(|stream| self.remove(stream));
        }
        let mut unshown = Vec::new();
        for (stream, call) in self.calls.iter_mut() {
            if self.known.holds(stream) {
                continue;
            }
            let replay = &mut self.replay;
            let is_primed = self.is_primed;
            call.outlet.tick(&self.budget, || {
                if is_primed { prime(&replay.next_id(stream).to_string()) } else { comment() }
            });
            if call.outlet.is_lost() {
                unshown.extend(call.question.take().map(Unshown));
            }
        }
        self.general.tick();
        unshown
    }

    /// Ends every stream.
    pub(super) fn close(&mut self) {
        for held in self.known.take_waiting() {
            if let Some(Call { id, outlet, .. }) = self.remove(held.key) {
                outlet.settle(&reply::error(id.raw(), reply::INTERNAL, ENDED).into(), &self.budget);
            }
        }
        self.is_closed = true;
        for call in self.calls.take() {
            call.outlet.end(&self.budget);
        }
        self.general.close();
        // Nobody can come back for them, and somebody who waits for something else may hold the session.
        self.replay.clear();
    }

    /// Whether a client is there.
    pub(super) fn is_attended(&self) -> bool {
        self.calls.iter().any(|(_, call)| call.outlet.is_attended()) || self.general.is_read()
    }
}
