//! What the threads share: the envelope, what waits to be sent, and how far each direction has come.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, mpsc::Sender},
    thread,
};

use handraise_core::Moment;
use handraise_mcp::{
    Now,
    envelope::{Caller, Envelope, Out, Process, Spend},
    record::Recorder,
};
use handraise_transport::clock::{Clock as _, SystemClock};

use crate::{
    outlet::{Batch, Gone, Outlet, Pen},
    wake::Waker,
};

/// How much may wait for a side that does not read before nothing more is taken from the other side.
const MOST_BACKLOG: usize = 16 * 1024 * 1024;

/// A direction, named after where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Upstream,
}

/// What the threads share.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something has come to a backlog, or has gone from it.
    moved: Condvar,
    to_client: Outlet,
    to_upstream: Outlet,
    pub(crate) process: Arc<Process>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) waker: Waker,
    /// The server's thread waits for the server, and not for the client.
    pub(crate) upstream_is_silent: AtomicBool,
    recorder: Mutex<Box<dyn Recorder + Send>>,
    /// To the thread that asks the store of spent nonces.
    spender: Sender<Spend>,
}

/// What is decided under one lock.
pub(crate) struct State {
    pub(crate) envelope: Envelope,
    for_client: Backlog,
    for_upstream: Backlog,
    pub(crate) progress: Progress,
    /// The client has ended, and the server is kept open for guarded calls.
    lasts_for_guarded: bool,
    /// Until when the main thread sleeps.
    pub(crate) sleeps_until: Option<Moment>,
}

/// Frames with their line ends that wait for the pen of their direction.
#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    has_courier: bool,
    /// Bytes that a courier has taken and not written yet.
    under_way: usize,
}

/// How far each direction has come.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// The client sends nothing more, and all that it sent is with the server.
    pub(crate) client_ended: bool,
    /// The client reads nothing more.
    pub(crate) client_gone: bool,
    /// The server says nothing more, and all that it said is with the client.
    pub(crate) upstream_ended: bool,
    /// The server takes nothing more: what was sent to it last is lost.
    pub(crate) upstream_deaf: bool,
}

impl Shared {
    pub(crate) fn new(
        envelope: Envelope,
        process: Arc<Process>,
        to_client: Outlet,
        to_upstream: Outlet,
        waker: Waker,
        recorder: Box<dyn Recorder + Send>,
        spender: Sender<Spend>,
    ) -> Self {
        let state = State {
            envelope,
            for_client: Backlog::default(),
            for_upstream: Backlog::default(),
            progress: Progress::default(),
            lasts_for_guarded: false,
            sleeps_until: None,
        };
        // One client, by its pipe: there is nobody else whom a state could belong to.
        let caller = Arc::new(Caller { principal: "stdio".to_owned(), session: None });
        Self {
            state: Mutex::new(state),
            moved: Condvar::new(),
            to_client,
            to_upstream,
            process,
            caller,
            waker,
            upstream_is_silent: AtomicBool::new(false),
            recorder: Mutex::new(recorder),
            spender,
        }
    }

    pub(crate) fn outlet(&self, side: Side) -> &Outlet {
        match side {
            Side::Client => &self.to_client,
            Side::Upstream => &self.to_upstream,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a direction has come further, and wakes the main thread.
    pub(crate) fn advance(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock().progress);
        self.waker.wake();
        self.moved.notify_all();
    }

    /// Carries out what the envelope has said, by a thread that holds no pen.
    pub(crate) fn carry_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>, out: &mut Vec<Out>) {
        let carried = state.carry_out(None, out);
        self.finish(state, &carried);
    }

    /// Lets go of the lock and does what must not be done under it.
    pub(crate) fn finish(self: &Arc<Self>, mut state: MutexGuard<'_, State>, carried: &Carried) {
        let starts = [Side::Client, Side::Upstream].map(|side| {
            let backlog = state.backlog(side);
            let starts = !backlog.bytes.is_empty() && !backlog.has_courier;
            backlog.has_courier |= starts;
            (side, starts)
        });
        let deadline = state.envelope.next_deadline();
        let wakes = deadline.is_some_and(|next| state.sleeps_until.is_none_or(|until| next < until));
        if wakes {
            // Once is enough, until it has looked.
            state.sleeps_until = deadline;
        }
        let is_awaited = state.lasts_for_guarded && state.envelope.guarded_calls() == 0;
        drop(state);
        if wakes {
            self.waker.wake();
        }
        for spend in &carried.spends {
            // Without the thread nothing is said, and nothing runs: the envelope waits for so long only.
            let _ = self.spender.send(*spend);
        }
        if carried.queued || is_awaited {
            self.moved.notify_all();
        }
        for (side, _) in starts.into_iter().filter(|(_, starts)| *starts) {
            self.start_courier(side);
        }
        if !carried.records.is_empty() {
            let recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            for record in &carried.records {
                recorder.record(record);
            }
        }
    }

    fn start_courier(self: &Arc<Self>, side: Side) {
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("courier".to_owned()).spawn(move || shared.courier(side));
        if started.is_err() {
            // Without a thread, the next one who holds the pen takes it along.
            self.lock().backlog(side).has_courier = false;
        }
    }

    /// Writes what others have queued for a direction, for ever.
    fn courier(&self, side: Side) {
        loop {
            let mut state = self.lock();
            while state.backlog(side).bytes.is_empty() {
                state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let mut pen = self.outlet(side).pen();
            let mut state = self.lock();
            let backlog = state.backlog(side);
            let bytes = std::mem::take(&mut backlog.bytes);
            backlog.under_way = bytes.len();
            drop(state);
            let written = pen.write(&bytes);
            drop(pen);
            self.lock().backlog(side).under_way = 0;
            self.moved.notify_all();
            self.waker.wake();
            if written == Err(Gone) {
                self.gone(side);
            }
        }
    }

    /// Writes what others have queued, by the thread that holds the side's pen, until nothing is.
    pub(crate) fn drain(&self, side: Side, pen: &mut Pen, batch: &mut Batch) -> Result<(), Gone> {
        loop {
            self.lock().take_along(side, batch);
            if batch.is_empty() {
                return Ok(());
            }
            batch.write(pen, |_| &[])?;
        }
    }

    /// Notes that a side reads no more.
    pub(crate) fn gone(&self, side: Side) {
        self.advance(|progress| match side {
            Side::Client => progress.client_gone = true,
            Side::Upstream => progress.upstream_deaf = true,
        });
    }

    /// Waits while too much is queued for a side.
    pub(crate) fn wait_for_room(&self, side: Side) {
        let mut state = self.lock();
        while state.backlog(side).len() > MOST_BACKLOG && !state.progress.client_gone {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until no guarded call needs the server any more. Each of them has a time limit of its own.
    pub(crate) fn wait_for_guarded(&self) {
        let mut state = self.lock();
        state.lasts_for_guarded = true;
        while state.envelope.guarded_calls() > 0 && !state.progress.client_gone {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether everything that is queued for the client has been written.
    pub(crate) fn is_drained(&self) -> bool {
        self.lock().backlog(Side::Client).len() == 0
    }
}

impl Backlog {
    fn len(&self) -> usize {
        self.bytes.len() + self.under_way
    }
}

/// What is left to do once the lock is gone.
#[derive(Default)]
#[must_use]
pub(crate) struct Carried {
    /// Something was queued for a direction that is not the caller's.
    pub(crate) queued: bool,
    records: Vec<handraise_mcp::record::Record>,
    spends: Vec<Spend>,
}

impl State {
    fn backlog(&mut self, side: Side) -> &mut Backlog {
        match side {
            Side::Client => &mut self.for_client,
            Side::Upstream => &mut self.for_upstream,
        }
    }

    /// Takes along what others have queued for the side whose pen the caller holds, before the caller decides anything.
    pub(crate) fn take_along(&mut self, side: Side, batch: &mut Batch) {
        let backlog = self.backlog(side);
        if !backlog.bytes.is_empty() {
            batch.add(std::mem::take(&mut backlog.bytes));
        }
    }

    /// Puts frames where they belong: those for the side whose pen the caller holds into its batch, others into their
    /// backlog.
    pub(crate) fn carry_out(&mut self, mut mine: Option<(Side, &mut Batch)>, out: &mut Vec<Out>) -> Carried {
        let mut carried = Carried::default();
        for out in out.drain(..) {
            let (side, mut frame) = match out {
                Out::ToClient { frame, .. } => (Side::Client, frame),
                Out::ToUpstream(frame) => (Side::Upstream, frame),
                Out::Record(record) => {
                    carried.records.push(record);
                    continue;
                }
                Out::Spend(spend) => {
                    carried.spends.push(spend);
                    continue;
                }
            };
            frame.push(b'\n');
            match &mut mine {
                Some((my_side, batch)) if *my_side == side => batch.add(frame),
                _ => {
                    self.backlog(side).bytes.append(&mut frame);
                    carried.queued = true;
                }
            }
        }
        carried
    }
}

/// Both clocks.
pub(crate) fn now() -> Now {
    let wall = SystemClock.wall().as_millisecond();
    Now { boot: Moment::from_millis(SystemClock.boot_millis()), wall_ms: u64::try_from(wall).unwrap_or(0) }
}
