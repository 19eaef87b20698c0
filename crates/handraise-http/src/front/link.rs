//! One server process and whom it serves: the envelope, the streams of its clients, and the way in, under one lock.
//!
//! A link serves one legacy session, or the modern requests of one principal (S6). What differs between the two is where
//! frames for the client go: see [`Desk`].

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use handraise_core::Moment;
use handraise_mcp::{
    confirm::Spent,
    envelope::{Caller, Envelope, InboxSaid, Out, Route},
    frame::{
        ClientFrame, Malformed, NoFrame, ServerFrame, each_of_batch, is_batch,
        overlong::{self, Overlong},
    },
};
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    ends::Ends,
};
use tokio_util::sync::CancellationToken;

use super::{
    Front,
    budget::Budget,
    desk::{Desk, Ready},
    known::Held,
    metrics::Count,
    pieces::Came,
    reply::Refusal,
    shared,
    state::{Errand, Errands, State},
    stdin::{Next, Stdin},
};
use crate::{now::now, upstream::Beside};

/// A running server and its clients.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) front: Arc<Front>,
    /// Whose it is.
    pub(crate) principal: Arc<str>,
    /// The bytes that it makes us hold.
    pub(crate) budget: Arc<Budget>,
    /// Asks the server to leave.
    pub(crate) leave: CancellationToken,
    number: u64,
    started: Moment,
    is_over: AtomicBool,
    /// When a client last came, in milliseconds of the boot clock.
    last_used: AtomicU64,
    state: Mutex<State>,
}

impl Link {
    pub(crate) fn new(
        front: &Arc<Front>,
        principal: Arc<str>,
        envelope: Envelope,
        desk: Desk,
        stdin: Stdin,
        budget: Arc<Budget>,
    ) -> Arc<Self> {
        let state = State::new(envelope, desk, stdin);
        Arc::new(Self {
            front: Arc::clone(front),
            principal,
            budget,
            leave: CancellationToken::new(),
            number: front.next_number(),
            started: now().boot,
            is_over: AtomicBool::new(false),
            last_used: AtomicU64::new(SystemClock.boot_millis()),
            state: Mutex::new(state),
        })
    }

    /// Whether the server has ended, or has been asked to.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Takes a frame of a client. `register` says, under the lock and before anything is decided, who sends it and what its
    /// answers belong to; `settle` draws conclusions.
    ///
    /// # Errors
    /// What `register` refuses.
    pub(crate) fn client_frame<T>(
        self: &Arc<Self>,
        frame: &ClientFrame<'_>,
        own: Came<'_>,
        beside: Beside,
        register: impl FnOnce(&mut Desk) -> Result<(T, Arc<Caller>), Refusal>,
        settle: impl FnOnce(&mut Desk),
    ) -> Result<T, Refusal> {
        let now = now();
        self.last_used.store(now.boot.as_millis(), Ordering::Relaxed);
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        let (registered, caller) = register(&mut state.desk)?;
        let route = state.envelope.client_frame(frame, &caller, now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        if route == Route::Forward {
            state.send(own, beside);
        }
        settle(&mut state.desk);
        self.finish(state, errands);
        Ok(registered)
    }

    /// Takes a request that waits until more is known of the server: `register` opens it.
    ///
    /// # Errors
    /// What `register` refuses.
    pub(crate) fn hold<T>(
        self: &Arc<Self>,
        register: impl FnOnce(&mut Desk) -> Result<(T, Held), Refusal>,
    ) -> Result<T, Refusal> {
        self.last_used.store(SystemClock.boot_millis(), Ordering::Relaxed);
        let mut state = self.lock();
        let (registered, held) = register(&mut state.desk)?;
        state.desk.known().wait(held);
        self.finish(state, Errands::new());
        Ok(registered)
    }

    /// Lets those go on who have waited, and asks what the next ones wait for.
    fn go_on(self: &Arc<Self>, ready: Ready) {
        self.front.metrics.add(Count::HeaderMismatches, ready.mismatches);
        // Who has left meanwhile has nobody behind it.
        let whose = |key| move |desk: &mut Desk| Ok(((), desk.caller_of(key).ok_or(Refusal::Ended)?));
        if let Some((key, frame)) = ready.question
            && let Ok(read) = ClientFrame::read(&frame)
        {
            let _ = self.client_frame(&read, Came::own(&frame), Beside::default(), whose(key), |_| ());
        }
        for Held { key, frame, beside, .. } in ready.requests {
            if let Ok(read) = ClientFrame::read(&frame) {
                let _ = self.client_frame(&read, Came::own(&frame), beside, whose(key), |_| ());
            }
        }
    }

    /// The client of a modern request has left, which cancels it.
    pub(crate) fn abandoned(self: &Arc<Self>, number: u64) {
        let frame = shared::cancellation(number);
        let Ok(cancellation) = ClientFrame::read(&frame) else { return };
        let abandon = |desk: &mut Desk| match desk {
            Desk::Shared(desk) => desk.abandon(number).ok_or(Refusal::Ended).map(|caller| ((), caller)),
            Desk::Session(_) => Err(Refusal::Ended),
        };
        // What was over before needs no cancellation.
        let _ = self.client_frame(&cancellation, Came::lent(&frame), Beside::default(), abandon, |_| ());
    }

    /// Takes what a client sent that is no frame; returns what it is told. Who meant to answer a question of ours has done
    /// so, and is told nothing.
    pub(crate) fn client_malformed(self: &Arc<Self>, malformed: &Malformed) -> Option<Vec<u8>> {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        state.envelope.client_malformed(malformed, now, &mut out);
        let told = out.extract_if(.., |out| matches!(out, Out::ToClient { for_call: None, .. })).last();
        state.carry_out(&mut out, now, &self.front, &mut errands);
        self.finish(state, errands);
        told.and_then(|out| if let Out::ToClient { frame, .. } = out { Some(frame) } else { None })
    }

    /// Takes an answer of the client that was too long to be read. To a question of ours it is one that says nothing; to
    /// the server's it is an error.
    pub(crate) fn client_too_long(self: &Arc<Self>, id: &str) {
        let unreadable = overlong::without_answer(id);
        let Ok(frame) = ClientFrame::read(&unreadable) else { return };
        let caller = |desk: &mut Desk| match desk {
            Desk::Session(desk) => Ok(((), desk.caller())),
            Desk::Shared(_) => Err(Refusal::UnknownSession),
        };
        let own = overlong::reply(id, self.front.max_frame);
        // What is no session has no questions.
        let _ = self.client_frame(&frame, Came::lent(&own), Beside::default(), caller, |_| ());
    }

    /// Takes a line of the server; false when it is no frame.
    pub(crate) fn upstream_line(self: &Arc<Self>, came: Came<'_>) -> bool {
        let bytes = came.bytes();
        if let Ok(frame) = self.front.process.read_server_frame(bytes) {
            self.upstream_frame(&frame, came);
            return true;
        }
        let mut are_frames = true;
        let each = |element: &[u8]| match self.front.process.read_server_frame(element) {
            Ok(frame) => self.upstream_frame(&frame, Came::lent(element)),
            Err(NoFrame) => are_frames = false,
        };
        is_batch(bytes) && each_of_batch(bytes, each).is_ok() && are_frames
    }

    fn upstream_frame(self: &Arc<Self>, frame: &ServerFrame<'_>, came: Came<'_>) {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        if let Some(bytes) = state.desk.respelled(frame)
            && let Ok(frame) = self.front.process.read_server_frame(&bytes)
        {
            drop(state);
            self.upstream_frame(&frame, Came::own(&bytes));
            return;
        }
        let route = state.envelope.upstream_frame(frame, now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        if route == Route::Forward
            && let Some(reply) = state.desk.forward(frame, came)
        {
            state.send(Came::lent(&reply), Beside::default());
        }
        self.finish(state, errands);
    }

    /// Takes both ends of a line that was too long to be taken.
    pub(crate) fn upstream_too_long(self: &Arc<Self>, ends: &Ends) {
        let limit = self.front.max_frame;
        tracing::warn!(limit, "a frame of an MCP server is too long and is thrown away");
        self.thrown_away(ends, |id| overlong::reply(id, limit));
    }

    /// Takes both ends of a line for which there was no room beside what its client has not taken yet.
    pub(crate) fn upstream_without_room(self: &Arc<Self>, ends: &Ends) {
        let limit = self.budget.limit();
        tracing::warn!(limit, "there is no room for a frame of an MCP server, and it is thrown away");
        self.thrown_away(ends, |id| overlong::no_room(id, limit));
    }

    fn thrown_away(self: &Arc<Self>, ends: &Ends, reply: impl Fn(&str) -> Vec<u8>) {
        match overlong::read(&ends.head, &ends.tail) {
            // The client hears that no answer will come.
            Overlong::Response(Some(id)) => {
                self.upstream_line(Came::lent(&reply(&id)));
            }
            Overlong::Request(id) => {
                let mut state = self.lock();
                state.send(Came::lent(&reply(&id)), Beside::default());
                self.finish(state, Errands::new());
            }
            Overlong::Response(None) | Overlong::Unknown => {}
        }
    }

    /// Changes something about the streams.
    pub(crate) fn at_desk<T>(self: &Arc<Self>, act: impl FnOnce(&mut Desk) -> T) -> T {
        self.last_used.store(SystemClock.boot_millis(), Ordering::Relaxed);
        act(&mut self.lock().desk)
    }

    /// Takes the time.
    pub(crate) fn wake(self: &Arc<Self>) {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        state.alarm = None;
        state.envelope.tick(now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        self.finish(state, errands);
    }

    /// Takes what the store says about a nonce.
    pub(crate) fn spent(self: &Arc<Self>, ticket: u64, was: Spent) {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        state.envelope.spent(ticket, was, now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        self.finish(state, errands);
    }

    /// Takes what became of a question in the inbox.
    pub(crate) fn inbox_said(self: &Arc<Self>, key: &str, said: &InboxSaid) {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        state.envelope.inbox_said(key, said, now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        self.finish(state, errands);
    }

    /// Lets a second pass; true when nobody has used it for `idle` milliseconds.
    pub(crate) fn tick(self: &Arc<Self>, idle: u64) -> bool {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        for unshown in state.desk.tick() {
            state.not_shown(&unshown, now, &mut out);
        }
        state.carry_out(&mut out, now, &self.front, &mut errands);
        let unused = now.boot.as_millis().saturating_sub(self.last_used.load(Ordering::Relaxed));
        let is_unused = unused >= idle && !state.desk.is_attended();
        self.finish(state, errands);
        is_unused
    }

    /// Ends it: open questions are withdrawn, streams end, and the server is asked to leave.
    pub(crate) fn end(self: &Arc<Self>) {
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        state.envelope.client_closed(now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        if !self.is_over.swap(true, Ordering::Relaxed) {
            state.envelope.upstream_ended("its session was ended", now, &mut out);
            state.carry_out(&mut out, now, &self.front, &mut errands);
        }
        state.desk.close();
        // What was taken in this very turn goes before the end, as far as the server takes it.
        let _ = state.stdin.write_gathered();
        state.stdin.close();
        self.finish(state, errands);
        self.leave.cancel();
    }

    /// The server has ended: every open call gets an error.
    pub(crate) fn upstream_ended(self: &Arc<Self>, how: &str) {
        // Before it is over, so that nobody starts another one in between.
        let of_session = match &self.lock().desk {
            Desk::Shared(_) => Some(false),
            Desk::Session(desk) => (!desk.has_opened()).then_some(true),
        };
        if let Some(of_session) = of_session.filter(|_| !self.is_over()) {
            self.front.ended_by_itself(self, self.started, of_session);
        }
        let was_over = self.is_over.swap(true, Ordering::Relaxed);
        self.front.forget(self);
        let now = now();
        let (mut out, mut errands) = (Vec::new(), Errands::new());
        let mut state = self.lock();
        let open = state.envelope.open_requests();
        state.envelope.upstream_ended(how, now, &mut out);
        state.carry_out(&mut out, now, &self.front, &mut errands);
        state.desk.close();
        state.stdin.close();
        self.finish(state, errands);
        if was_over || self.front.shutdown.is_cancelled() {
            tracing::debug!(principal = &*self.principal, "an MCP server has ended: {how}");
        } else {
            tracing::warn!(principal = &*self.principal, open_calls = open, "an MCP server has ended: {how}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the lock and does what is left.
    fn finish(self: &Arc<Self>, mut state: MutexGuard<'_, State>, errands: Errands) {
        let mut spends = Vec::new();
        for errand in errands {
            match errand {
                Errand::Spend(spend) => spends.push(spend),
                // Under the lock, so that nothing is taken back before it was asked. Neither waits for anybody.
                Errand::Ask(ask) => self.front.asker.ask(Arc::clone(self), &ask),
                Errand::Withdraw(key, why, record) => {
                    let record = self.front.asker.withdraw(&key, why, *record);
                    self.front.record(std::iter::once(&record));
                }
            }
        }
        let next = state.envelope.next_deadline();
        let is_new = next != state.alarm;
        state.alarm = next;
        let needs_server = std::mem::take(&mut state.needs_server);
        let needs_flush = std::mem::take(&mut state.needs_flush);
        let ready = state.desk.due();
        drop(state);
        if let Some(ready) = ready {
            self.go_on(ready);
        }
        if is_new && let Some(next) = next {
            self.front.clockwork.set(next, self.number, self);
        }
        if needs_flush {
            // Behind all who are ready now.
            self.front.tasks.spawn(flush(Arc::clone(self)));
        }
        if needs_server {
            self.front.tasks.spawn(serve(Arc::clone(self)));
        }
        for spend in spends {
            self.front.spender.ask(&self.principal, Arc::clone(self), spend);
        }
    }
}

/// Writes what was gathered for a server.
async fn flush(link: Arc<Link>) {
    let next = link.lock().stdin.write_gathered();
    if next == Next::Serve {
        serve(link).await;
    }
}

/// Writes what is queued for a server whenever its pipe has room.
async fn serve(link: Arc<Link>) {
    loop {
        let Some(pipe) = link.lock().stdin.flush() else { return };
        tokio::select! {
            ready = pipe.writable() => if ready.is_err() { return },
            // A server that reads nothing and does not end is made to.
            () = link.leave.cancelled() => return,
            () = link.front.shutdown.cancelled() => return,
        }
    }
}
