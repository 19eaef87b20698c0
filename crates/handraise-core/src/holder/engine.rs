//! The engine: what is open, who may end it, and what follows.

mod judging;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    ask::{AskId, SubmissionId},
    holder::{
        Delivery, EndCause, Ended, Limits, NewAsk, Notice, Reason, Receipt, Refused,
        ask::{Judged, Open},
        ledger::Ledger,
        limits::RateWindow,
        link::Link,
    },
    time::Moment,
    words::{Outcome, Provenance, WireAction},
};

/// Takes a delivery to the asking side.
///
/// The engine calls it at most once per ask, after the ask has left the open ones: a second delivery cannot happen,
/// whatever the courier does.
pub trait Courier {
    /// Hands `delivery` over, and says whether a live connection took it. `None`: the asking side is gone, only
    /// forget the ask; what is returned then means nothing.
    fn deliver(&mut self, ask: &AskId, delivery: Option<Delivery>) -> bool;
}

/// The asks of one holder.
#[derive(Debug)]
pub struct Engine {
    limits: Limits,
    part_bytes: usize,
    now: Moment,
    open: BTreeMap<AskId, Open>,
    deadlines: BTreeSet<(Moment, AskId)>,
    sessions: BTreeMap<String, Session>,
    open_bytes: u64,
    rate: RateWindow,
    ledger: Ledger,
    link: Option<Link>,
    refusals: BTreeMap<Refused, u64>,
    is_shut: bool,
}

#[derive(Debug, Default)]
struct Session {
    open: BTreeSet<AskId>,
    parked: u32,
}

/// How an ask is about to end.
struct End {
    outcome: Outcome,
    provenance: Provenance,
    reason: Option<Reason>,
    submission: Option<SubmissionId>,
}

impl End {
    /// How it ended, once it is known what the asking side was sent. Where nothing could be sent, nobody answered and
    /// nobody declined: the ask is withdrawn.
    fn at(self, at: Moment, wire: Option<WireAction>) -> Ended {
        let Self { outcome, provenance, reason, submission } = self;
        if wire.is_some() {
            return Ended { outcome, provenance, wire, reason, submission, at };
        }
        let reason = reason.filter(|_| outcome == Outcome::Withdrawn).unwrap_or(Reason::AGENT_DISCONNECTED);
        Ended {
            outcome: Outcome::Withdrawn,
            provenance: Provenance::System,
            wire,
            reason: Some(reason),
            submission: None,
            at,
        }
    }
}

impl Engine {
    /// An engine without asks. `part_bytes` bounds the parts of a snapshot and a single announcement.
    pub fn new(limits: Limits, part_bytes: usize) -> Self {
        Self {
            limits,
            part_bytes,
            now: Moment::default(),
            open: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            sessions: BTreeMap::new(),
            open_bytes: 0,
            rate: RateWindow::default(),
            ledger: Ledger::default(),
            link: None,
            refusals: BTreeMap::new(),
            is_shut: false,
        }
    }

    /// Opens an ask. Two asks with the same content are two asks (D4, AC-12f).
    ///
    /// # Errors
    /// When a limit is reached. Nothing is announced; the asking side is to be declined.
    pub fn open(&mut self, now: Moment, ask: NewAsk, courier: &mut dyn Courier) -> Result<(), Refused> {
        self.advance(now, courier);
        self.admit(&ask).inspect_err(|refused| self.count(*refused))?;
        let NewAsk { id, source, session, announcement, form, rules, single_use, timeout } = ask;
        let deadline = timeout.map(|timeout| self.now + timeout);
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, id.clone()));
        }
        if let Some(session) = &session {
            self.sessions.entry(session.clone()).or_default().open.insert(id.clone());
        }
        self.open_bytes += announcement.len() as u64;
        let judged = Judged::default();
        let ask = Open {
            source,
            session,
            announcement,
            form,
            rules,
            single_use,
            deadline,
            is_parked: false,
            judged,
        };
        if let Some(link) = &mut self.link {
            link.opened(ask.waiting(&id));
        }
        self.open.insert(id, ask);
        Ok(())
    }

    fn admit(&mut self, ask: &NewAsk) -> Result<(), Refused> {
        let limits = self.limits;
        let bytes = ask.announcement.len();
        let in_session = |name| self.sessions.get(name).map_or(0, |session| session.open.len());
        let session_limit = limits.session_open_asks as usize;
        if self.is_shut {
            Err(Refused::ShuttingDown)
        } else if self.open.contains_key(&ask.id) || self.ledger.get(&ask.id).is_some() {
            Err(Refused::KnownId)
        } else if bytes > self.part_bytes {
            Err(Refused::TooLarge)
        } else if self.open.len() >= limits.open_asks as usize {
            Err(Refused::OpenAsks)
        } else if self.open_bytes + bytes as u64 > limits.open_bytes {
            Err(Refused::OpenBytes)
        } else if ask.session.as_ref().is_some_and(|name| in_session(name) >= session_limit) {
            Err(Refused::SessionOpenAsks)
        } else if !self.rate.try_take(self.now, limits.asks_per_second) {
            Err(Refused::Rate)
        } else {
            Ok(())
        }
    }

    /// Notes a refusal that the engine's user made, so that all are counted in one place.
    pub fn count(&mut self, refused: Refused) {
        *self.refusals.entry(refused).or_default() += 1;
    }

    /// Marks an open ask as parked: its call has been answered, an answer is kept for the next identical call. From
    /// now on `ttl` is its deadline. The inbox is told. `Ok(false)`: the ask is not open, or parked already.
    ///
    /// # Errors
    /// When too many asks of its session are parked. The ask stays as it was.
    pub fn park(
        &mut self,
        now: Moment,
        ask: &AskId,
        ttl: Duration,
        courier: &mut dyn Courier,
    ) -> Result<bool, Refused> {
        self.advance(now, courier);
        let until = self.now + ttl;
        let Some(open) = self.open.get_mut(ask).filter(|open| !open.is_parked) else { return Ok(false) };
        if let Some(session) = open.session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            if session.parked >= self.limits.session_parked_asks {
                self.count(Refused::SessionParkedAsks);
                return Err(Refused::SessionParkedAsks);
            }
            session.parked += 1;
        }
        if let Some(deadline) = open.deadline.replace(until) {
            self.deadlines.remove(&(deadline, ask.clone()));
        }
        self.deadlines.insert((until, ask.clone()));
        open.is_parked = true;
        if let Some(link) = &mut self.link {
            link.opened(open.waiting(ask));
        }
        Ok(true)
    }

    /// Ends an ask, if it is open; says whether it was.
    pub fn end(&mut self, now: Moment, ask: &AskId, cause: EndCause, courier: &mut dyn Courier) -> bool {
        self.advance(now, courier);
        self.end_now(ask, cause, courier)
    }

    /// Ends every open ask of a session; says how many.
    pub fn end_session(
        &mut self,
        now: Moment,
        session: &str,
        cause: EndCause,
        courier: &mut dyn Courier,
    ) -> usize {
        self.advance(now, courier);
        let asks: Vec<AskId> = self
            .sessions
            .get(session)
            .map(|session| session.open.iter().cloned().collect())
            .unwrap_or_default();
        asks.iter().filter(|ask| self.end_now(ask, cause, courier)).count()
    }

    /// Ends every open ask; says how many.
    pub fn end_all(&mut self, now: Moment, cause: EndCause, courier: &mut dyn Courier) -> usize {
        self.advance(now, courier);
        let asks: Vec<AskId> = self.open.keys().cloned().collect();
        asks.iter().filter(|ask| self.end_now(ask, cause, courier)).count()
    }

    /// Ends every open ask as [`EndCause::Shutdown`] and refuses new ones.
    pub fn shut_down(&mut self, now: Moment, courier: &mut dyn Courier) {
        self.is_shut = true;
        self.end_all(now, EndCause::Shutdown, courier);
    }

    fn end_now(&mut self, ask: &AskId, cause: EndCause, courier: &mut dyn Courier) -> bool {
        let (outcome, reason) = (cause.outcome(), Some(cause.reason()));
        let end = End { outcome, provenance: Provenance::System, reason, submission: None };
        self.finish(ask, cause.delivery(), end, courier)
    }

    /// The only way an ask ends: it leaves the open ones, then its delivery goes out, then the end is recorded and
    /// reported. `end` says how, if the delivery is taken.
    fn finish(
        &mut self,
        ask: &AskId,
        delivery: Option<Delivery>,
        end: End,
        courier: &mut dyn Courier,
    ) -> bool {
        let Some(open) = self.open.remove(ask) else { return false };
        self.open_bytes -= open.announcement.len() as u64;
        if let Some(deadline) = open.deadline {
            self.deadlines.remove(&(deadline, ask.clone()));
        }
        if let Some(name) = open.session
            && let Some(session) = self.sessions.get_mut(&name)
        {
            session.open.remove(ask);
            session.parked -= u32::from(open.is_parked);
            if session.open.is_empty() {
                self.sessions.remove(&name);
            }
        }
        let wire = delivery.as_ref().map(Delivery::wire);
        let was_taken = courier.deliver(ask, delivery);
        let ended = end.at(self.now, wire.filter(|_| was_taken));
        self.ledger.insert(ask.clone(), ended.clone());
        if let Some(link) = &mut self.link {
            link.settled(ask.clone(), ended);
        }
        true
    }

    /// Lets time pass: what is due is declined (AC-64). Time that runs backwards is ignored.
    pub fn advance(&mut self, now: Moment, courier: &mut dyn Courier) {
        self.now = self.now.max(now);
        while let Some((deadline, ask)) = self.deadlines.first()
            && *deadline <= self.now
        {
            let ask = ask.clone();
            self.end_now(&ask, EndCause::Deadline, courier);
        }
    }

    /// When [`advance`](Self::advance) is to be called next; `None` while nothing that is open has a deadline.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Begins a connection: everything open and everything unacknowledged is to be told anew.
    pub fn connected(&mut self, now: Moment, limits: Limits, courier: &mut dyn Courier) {
        self.advance(now, courier);
        self.limits = limits;
        let asks = self.open.iter().map(|(id, ask)| ask.waiting(id));
        let ended = |ask: &AskId| self.ledger.get(ask).map(|ended| (ask.clone(), ended.clone()));
        self.link = Some(Link::new(asks, self.ledger.unacknowledged().filter_map(ended), self.part_bytes));
    }

    /// Ends the connection. Asks stay open.
    pub fn disconnected(&mut self) {
        self.link = None;
    }

    /// The next thing to tell the inbox, if there is a connection and something to tell.
    pub fn next_notice(&mut self, now: Moment) -> Option<Notice> {
        self.now = self.now.max(now);
        self.link.as_mut()?.next(self.now)
    }

    /// Whether [`next_notice`](Self::next_notice) has something.
    pub fn has_notice(&self) -> bool {
        self.link.as_ref().is_some_and(|link| !link.is_drained())
    }

    /// Whether [`next_notice`](Self::next_notice) opens an ask.
    pub fn is_opening(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_opening)
    }

    /// Whether the inbox reads so slowly that more waits for it than may be open at all. The connection is to be
    /// dropped; the next one begins with a snapshot, which is never larger than what is open.
    pub fn is_lagging(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.queue_bytes() as u64 > self.limits.open_bytes)
    }

    /// Notes that the inbox has taken a notice of this connection.
    pub fn acknowledged(&mut self, receipt: &Receipt) {
        match receipt {
            Receipt::Snapshot { last: true } => {
                let settled = self.link.as_mut().map(|link| std::mem::take(&mut link.in_snapshot));
                for ask in settled.unwrap_or_default() {
                    self.ledger.acknowledge(&ask);
                }
            }
            Receipt::Snapshot { last: false } | Receipt::Opened(_) => {}
            Receipt::Settled(ask) => self.ledger.acknowledge(ask),
        }
    }

    /// Whether the inbox knows how everything ended.
    pub fn is_acknowledged(&self) -> bool {
        self.ledger.is_acknowledged()
    }

    /// Whether an answer was delivered of which the inbox does not know that it counts.
    pub fn owes_a_receipt(&self) -> bool {
        self.ledger
            .unacknowledged()
            .any(|ask| self.ended(ask).is_some_and(|ended| ended.submission.is_some()))
    }

    /// How many asks are open.
    pub fn open_asks(&self) -> usize {
        self.open.len()
    }

    /// How an ask ended; `None` while it is open, or when it is not known.
    pub fn ended(&self, ask: &AskId) -> Option<&Ended> {
        self.ledger.get(ask)
    }

    /// How often asks were refused, by reason.
    pub fn refusals(&self) -> &BTreeMap<Refused, u64> {
        &self.refusals
    }
}
