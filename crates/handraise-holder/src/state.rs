//! Everything a holder knows, under one lock.
//!
//! The lock orders `ask.*` and snapshots (S9), and an answer is delivered while it is held: whoever comes second finds
//! the ask ended. Nothing awaits under it.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use handraise_api::{
    frame::{AsksDeclined, Flags, Limits as WireLimits, SessionUpdated, Welcome, action},
    session::SessionState,
};
use handraise_core::{
    AskId, Moment,
    holder::{Courier, Delivery, EndCause, Engine, Limits, Receipt},
};
use handraise_transport::clock::SharedClock;
use tokio::sync::{Notify, mpsc};

use crate::{
    Command,
    presence::Operators,
    records::Records,
    settled::{Answered, InboxRefusal, Latest},
    transcript::{EntryReceipt, Transcripts},
    wire,
};

/// Sessions whose latest word is kept; of more, those that ended first are forgotten.
const SESSIONS: usize = 256;

/// The state and those who wait for it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) clock: SharedClock,
    /// Beside the lock: whoever asks on the way of a call waits for nobody.
    pub(crate) operators: Operators,
    /// What the inbox says of the flag `elicitation`; on until it has said something.
    pub(crate) elicitation: AtomicBool,
    /// How often the connection was lost.
    pub(crate) losses: AtomicU64,
    /// Beside the lock for the same reason.
    pub(crate) records: Records,
    /// There may be something to send.
    pub(crate) outgoing: Notify,
    /// The nearest deadline may have changed.
    pub(crate) timer: Notify,
    /// The inbox acknowledged something.
    pub(crate) settled: Notify,
    /// Do not wait for the next attempt to connect.
    pub(crate) hurry: Notify,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Engine,
    couriers: Couriers,
    pub(crate) transcripts: Transcripts,
    sessions: Sessions,
    /// Asks that were declined without reaching anyone, by reason, as far as the inbox has not been told.
    declined: BTreeMap<&'static str, u64>,
    pub(crate) commands: Option<mpsc::Sender<Command>>,
    pub(crate) answerers: Latest<Answered>,
    pub(crate) inbox_refusals: Latest<InboxRefusal>,
    pub(crate) flags: Flags,
    /// The stream is to be closed once everything is said.
    pub(crate) is_closing: bool,
    /// The stream was closed in good order.
    pub(crate) is_closed: bool,
}

/// Something that was sent and is to be acknowledged.
#[derive(Debug)]
pub(crate) enum Sent {
    Notice(Receipt),
    Entry(EntryReceipt),
    Records,
}

impl Shared {
    pub(crate) fn new(clock: SharedClock) -> Self {
        let state = State {
            engine: Engine::new(Limits::default(), wire::PART_BYTES),
            couriers: Couriers::default(),
            transcripts: Transcripts::default(),
            sessions: Sessions::default(),
            declined: BTreeMap::new(),
            commands: None,
            answerers: Latest::default(),
            inbox_refusals: Latest::default(),
            flags: Flags { acp_elicitation: false, elicitation: false, adaptive_profiles: false },
            is_closing: false,
            is_closed: false,
        };
        Self {
            state: Mutex::new(state),
            clock,
            operators: Operators::default(),
            elicitation: AtomicBool::new(true),
            losses: AtomicU64::new(0),
            records: Records::default(),
            outgoing: Notify::new(),
            timer: Notify::new(),
            settled: Notify::new(),
            hurry: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::from_millis(self.clock.boot_millis())
    }

    /// A look that changes nothing.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        look(&self.lock())
    }

    /// A change, after which those who wait for it are woken.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State, Moment) -> R) -> R {
        let mut state = self.lock();
        // The clock is read under the lock, so that the engine sees time in the order of events.
        let now = self.now();
        let before = state.engine.next_deadline();
        let result = change(&mut state, now);
        let deadline_moved = state.engine.next_deadline() != before;
        let has_outgoing = state.has_outgoing();
        let spent = std::mem::take(&mut state.couriers.spent);
        drop(state);
        // What a courier owned may call the holder when it goes, so it goes after the lock.
        drop(spent);
        if deadline_moved {
            self.timer.notify_one();
        }
        if has_outgoing {
            self.outgoing.notify_one();
        }
        result
    }

    /// Whether there is something to send.
    pub(crate) fn has_outgoing(&self) -> bool {
        self.look(State::has_outgoing) || self.records.has_unsent()
    }

    /// The next frame of ours, and what its response acknowledges. Records come last: nobody waits for them.
    pub(crate) fn next_frame(&self, id: u64) -> Option<(String, Option<Sent>)> {
        self.change(|state, now| state.next_frame(id, now)).or_else(|| {
            let payload = self.records.next(self.clock.boot_millis())?;
            Some((wire::request(id, action::RECORDS_APPEND, &payload), Some(Sent::Records)))
        })
    }

    /// What was sent is acknowledged.
    pub(crate) fn acknowledged(&self, sent: &Sent) {
        match sent {
            Sent::Records => self.records.acknowledged(),
            sent => self.change(|state, _| state.acknowledged(sent)),
        }
    }

    /// Whether the inbox knows everything.
    pub(crate) fn is_told(&self) -> bool {
        self.records.is_told() && self.look(State::is_told)
    }

    /// A connection begins.
    pub(crate) fn connected(&self, welcome: &Welcome) {
        self.operators.welcomed(welcome.operators, self.clock.boot_millis());
        self.records.connected();
        self.elicitation.store(welcome.flags.elicitation, Ordering::Relaxed);
        self.change(|state, now| state.connected(welcome, now));
    }

    /// An operator has set a flag.
    pub(crate) fn flags_changed(&self, flags: Flags) {
        self.elicitation.store(flags.elicitation, Ordering::Relaxed);
        self.change(|state, _| state.flags = flags);
    }

    /// The connection is over.
    pub(crate) fn disconnected(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
        self.operators.lost(self.clock.boot_millis());
        self.change(|state, _| state.engine.disconnected());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of ours panics under the lock, and a courier's panic is caught.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The engine, and the courier it delivers with.
    pub(crate) fn adjudicator(&mut self) -> (&mut Engine, &mut dyn Courier) {
        (&mut self.engine, &mut self.couriers)
    }

    /// Keeps what is to be done with the one delivery of an ask.
    pub(crate) fn expect_delivery(&mut self, ask: AskId, deliver: Deliver, human: bool) {
        self.couriers.waiting.insert(ask, Waiting { deliver, human });
    }

    /// Whether a person's acceptance alone counts for an open ask.
    pub(crate) fn takes_persons_alone(&self, ask: &AskId) -> bool {
        self.couriers.waiting.get(ask).is_some_and(|waiting| waiting.human)
    }

    pub(crate) fn forget_delivery(&mut self, ask: &AskId) {
        let waiting = self.couriers.waiting.remove(ask);
        self.couriers.spent.extend(waiting.map(|waiting| waiting.deliver));
    }

    pub(crate) fn declined(&mut self, reason: &'static str) {
        *self.declined.entry(reason).or_default() += 1;
    }

    pub(crate) fn session_updated(&mut self, session: SessionUpdated) {
        self.sessions.update(session);
    }

    fn connected(&mut self, welcome: &Welcome, now: Moment) {
        self.flags = welcome.flags;
        self.engine.connected(now, limits(welcome.limits), &mut self.couriers);
        self.transcripts.connected();
        self.sessions.connected();
    }

    fn has_outgoing(&self) -> bool {
        self.sessions.has_unsent()
            || self.engine.has_notice()
            || !self.declined.is_empty()
            || self.transcripts.has_unsent()
    }

    /// The next frame of ours, and what its response acknowledges. Where sessions stand comes first, so that what
    /// refers to them finds them. A few words go before an ask, since most often they were said before it; a long
    /// transcript comes last, so that no ask waits for it.
    fn next_frame(&mut self, id: u64, now: Moment) -> Option<(String, Option<Sent>)> {
        if let Some(session) = self.sessions.next_unsent() {
            return Some((wire::event(action::SESSION_UPDATED, &wire::json(session)), None));
        }
        if self.engine.is_opening()
            && self.transcripts.is_short()
            && let Some(entry) = self.next_entry(id)
        {
            return Some(entry);
        }
        if let Some(notice) = self.engine.next_notice(now) {
            return Some((wire::notice(id, &notice, now), Some(Sent::Notice(notice.receipt()))));
        }
        if !self.declined.is_empty() {
            let counts = std::mem::take(&mut self.declined);
            let counts = counts.into_iter().map(|(reason, count)| (reason.to_owned(), count)).collect();
            return Some((wire::event(action::ASKS_DECLINED, &wire::json(&AsksDeclined { counts })), None));
        }
        self.next_entry(id)
    }

    fn next_entry(&mut self, id: u64) -> Option<(String, Option<Sent>)> {
        let (receipt, payload) = self.transcripts.next()?;
        Some((wire::request(id, action::SESSION_MESSAGE, &payload), Some(Sent::Entry(receipt))))
    }

    fn acknowledged(&mut self, sent: &Sent) {
        match sent {
            Sent::Notice(receipt) => self.engine.acknowledged(receipt),
            Sent::Entry(receipt) => self.transcripts.acknowledged(receipt),
            Sent::Records => {}
        }
    }

    /// The inbox will never take an ask: the asking side is told at once.
    pub(crate) fn ask_refused(&mut self, ask: &AskId, refusal: InboxRefusal, now: Moment) {
        // Before the delivery: whoever hears of it looks.
        self.inbox_refusals.insert(ask.clone(), refusal);
        self.engine.end(now, ask, EndCause::InboxRefused, &mut self.couriers);
    }

    fn is_told(&self) -> bool {
        self.engine.is_acknowledged()
            && self.transcripts.is_acknowledged()
            && !self.sessions.has_unsent()
            && self.declined.is_empty()
    }
}

fn limits(limits: WireLimits) -> Limits {
    let WireLimits { open_asks, open_bytes, session_open_asks, session_parked_asks, asks_per_second } =
        limits;
    Limits { open_asks, open_bytes, session_open_asks, session_parked_asks, asks_per_second }
}

/// What to do with the one delivery of an ask; says whether a live connection took it.
pub(crate) type Deliver = Box<dyn FnOnce(Delivery) -> bool + Send>;

/// What one open ask waits for.
struct Waiting {
    deliver: Deliver,
    /// A person's acceptance alone counts.
    human: bool,
}

/// The couriers of the open asks, and those that were never needed.
#[derive(Default)]
struct Couriers {
    waiting: BTreeMap<AskId, Waiting>,
    spent: Vec<Deliver>,
}

impl std::fmt::Debug for Couriers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Couriers").field(&self.waiting.len()).finish()
    }
}

impl Courier for Couriers {
    fn deliver(&mut self, ask: &AskId, delivery: Option<Delivery>) -> bool {
        let Some(Waiting { deliver, .. }) = self.waiting.remove(ask) else { return false };
        let Some(delivery) = delivery else {
            self.spent.push(deliver);
            return false;
        };
        // A courier that panics did not deliver; the other asks must not suffer for it.
        catch_unwind(AssertUnwindSafe(|| deliver(delivery))).unwrap_or(false)
    }
}

/// The latest word on each session. An event is not acknowledged, so it is said again on every connection.
#[derive(Debug, Default)]
struct Sessions {
    latest: BTreeMap<String, Session>,
    changes: u64,
}

#[derive(Debug)]
struct Session {
    update: SessionUpdated,
    changed: u64,
    is_unsent: bool,
}

impl Sessions {
    fn update(&mut self, update: SessionUpdated) {
        self.changes += 1;
        let id = update.session_id.clone();
        self.latest.insert(id, Session { update, changed: self.changes, is_unsent: true });
        if self.latest.len() > SESSIONS {
            let forgettable =
                |session: &Session| (session.update.state != SessionState::Ended, session.changed);
            let oldest = self.latest.iter().min_by_key(|(_, session)| forgettable(session));
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.latest.remove(&oldest);
            }
        }
    }

    fn connected(&mut self) {
        for session in self.latest.values_mut() {
            session.is_unsent = true;
        }
    }

    fn has_unsent(&self) -> bool {
        self.latest.values().any(|session| session.is_unsent)
    }

    fn next_unsent(&mut self) -> Option<&SessionUpdated> {
        let session = self.latest.values_mut().find(|session| session.is_unsent)?;
        session.is_unsent = false;
        Some(&session.update)
    }
}
