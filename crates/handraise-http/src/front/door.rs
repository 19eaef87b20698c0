//! Who may stay connected (S37).
//!
//! A connection is a stranger's until a request on it was let in. There are few places for strangers: when they are
//! taken, the one that came first makes place for the one that comes, so that whoever opens connections and says nothing
//! keeps nobody out. A connection at rest is closed after a while, and so is one whose client does not take what it is sent.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Waker,
};

use handraise_transport::clock::{Clock as _, SystemClock};
use tokio_util::sync::CancellationToken;

use super::metrics::{Count, Metrics};

/// How long a head may take to come, and a stranger to show a request, in milliseconds.
const FIRST_HEAD: u64 = 10_000;
/// How long a connection may rest between requests, in milliseconds.
const REST: u64 = 120_000;
/// See [`Place::reading`].
const JUST: u64 = 1;
/// Of how many places strangers may have one.
const STRANGERS_SHARE: usize = 4;
/// What a request counts in [`Place::busy`] beside itself whose client may send no more and still wait for the answer.
const AWAITED: u64 = 1 << 16;
/// What [`Place::busy`] has beside that when somebody has to hear of the end of what is awaited.
const HEARD: u64 = 1 << 48;

/// The places.
#[derive(Debug)]
pub(crate) struct Door {
    most: usize,
    inside: Mutex<Inside>,
    /// Every connection at rest ends with this.
    shutdown: CancellationToken,
}

#[derive(Debug, Default)]
struct Inside {
    last: u64,
    places: BTreeMap<u64, Weak<Place>>,
    /// Those that have not been let in yet, in the order in which they came.
    strangers: BTreeMap<u64, Weak<Place>>,
}

/// One connection's place.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    door: Weak<Door>,
    is_known: AtomicBool,
    /// Requests that are not answered yet, or whose answer is still being sent; see [`AWAITED`].
    busy: AtomicU64,
    /// Who has to hear of the end of what is awaited: its client has said that it sends no more.
    half_closed: Mutex<Option<Waker>>,
    /// Since when it is at rest, in milliseconds of the boot clock; 0: since the last tick.
    since: AtomicU64,
    /// Since when it has read something that is no whole head, in milliseconds of the boot clock; 0: it has not; 1: since the
    /// last tick.
    reading: AtomicU64,
    /// When its client has to have taken what waits for it, in milliseconds of the boot clock; 0: nothing waits.
    taken_by: AtomicU64,
    /// It has to go, whatever it does.
    pub(crate) away: CancellationToken,
    /// It has to go once it is at rest.
    pub(crate) leaving: CancellationToken,
}

/// Marks a connection as being at work.
#[derive(Debug)]
pub(crate) struct Busy {
    place: Arc<Place>,
    /// What it counts.
    count: u64,
}

impl Door {
    pub(crate) fn new(most: usize, shutdown: &CancellationToken) -> Arc<Self> {
        let inside = Mutex::default();
        Arc::new(Self { most: most.max(STRANGERS_SHARE), inside, shutdown: shutdown.clone() })
    }

    /// Takes a connection in; `None`: every place is taken by those who are known.
    pub(crate) fn enter(self: &Arc<Self>, metrics: &Metrics) -> Option<Arc<Place>> {
        let mut leaving = None;
        let mut inside = self.lock();
        if inside.strangers.len() >= self.most / STRANGERS_SHARE
            && let Some((number, stranger)) = inside.strangers.pop_first()
        {
            // Its place is free at once: it ends when its task is next looked at.
            inside.places.remove(&number);
            leaving = stranger.upgrade();
        }
        if inside.places.len() >= self.most {
            metrics.count(Count::Connections);
            return None;
        }
        inside.last += 1;
        let place = Arc::new(Place {
            number: inside.last,
            door: Arc::downgrade(self),
            is_known: AtomicBool::new(false),
            busy: AtomicU64::new(0),
            half_closed: Mutex::default(),
            since: AtomicU64::new(SystemClock.boot_millis()),
            reading: AtomicU64::new(0),
            taken_by: AtomicU64::new(0),
            away: CancellationToken::new(),
            leaving: self.shutdown.child_token(),
        });
        inside.places.insert(place.number, Arc::downgrade(&place));
        inside.strangers.insert(place.number, Arc::downgrade(&place));
        drop(inside);
        if let Some(stranger) = leaving {
            metrics.count(Count::Strangers);
            stranger.send_away();
        }
        Some(place)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().places.len()
    }

    /// Closes connections that rest for too long, or whose clients do not take what they are sent.
    pub(crate) fn tick(&self, metrics: &Metrics) {
        self.tick_at(SystemClock.boot_millis(), metrics);
    }

    fn tick_at(&self, now: u64, metrics: &Metrics) {
        let places: Vec<Arc<Place>> = self.lock().places.values().filter_map(Weak::upgrade).collect();
        for place in places {
            if place.has_to_be_taken_by().is_some_and(|end| end <= now) {
                metrics.count(Count::SlowClients);
                place.expect_taken(None);
                place.send_away();
                continue;
            }
            let patience = if place.is_known.load(Ordering::Relaxed) { REST } else { FIRST_HEAD };
            let reading = place.reading.load(Ordering::Relaxed);
            if reading == JUST {
                place.reading.store(now, Ordering::Relaxed);
            }
            let since = place.since.load(Ordering::Relaxed);
            if since == 0 {
                // It has come to rest since the last tick, and nobody asked the clock for that.
                place.since.store(now, Ordering::Relaxed);
                continue;
            }
            let is_slow = reading > JUST && now.saturating_sub(reading) >= FIRST_HEAD;
            let is_at_rest = place.requests() == 0;
            if is_at_rest && (is_slow || now.saturating_sub(since) >= patience) {
                metrics.count(Count::IdleConnections);
                place.send_away();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Something was read. Between requests it is the beginning of a head.
    pub(crate) fn has_read(&self) {
        if self.requests() == 0 && self.reading.load(Ordering::Relaxed) == 0 {
            self.reading.store(JUST, Ordering::Relaxed);
        }
    }

    /// A request begins.
    pub(crate) fn work(self: &Arc<Self>) -> Busy {
        self.reading.store(0, Ordering::Relaxed);
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy { place: Arc::clone(self), count: 1 }
    }

    /// What its requests count, as far as they are not answered.
    fn requests(&self) -> u64 {
        self.busy.load(Ordering::Relaxed) & (HEARD - 1)
    }

    /// Its client sends no more. True: it waits for an answer all the same, and `waker` hears when it has that.
    pub(crate) fn half_closes(&self, waker: &Waker) -> bool {
        let mut half_closed = self.half_closed();
        let is_awaited = self.busy.fetch_or(HEARD, Ordering::AcqRel) & (HEARD - 1) >= AWAITED;
        *half_closed = is_awaited.then(|| waker.clone());
        is_awaited
    }

    /// Whether its client has said that it sends no more.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.busy.load(Ordering::Relaxed) >= HEARD
    }

    fn half_closed(&self) -> MutexGuard<'_, Option<Waker>> {
        self.half_closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its client has to have taken what waits for it by then; nothing waits.
    pub(crate) fn expect_taken(&self, by: Option<u64>) {
        self.taken_by.store(by.unwrap_or(0), Ordering::Relaxed);
    }

    /// See [`expect_taken`](Self::expect_taken).
    pub(crate) fn has_to_be_taken_by(&self) -> Option<u64> {
        Some(self.taken_by.load(Ordering::Relaxed)).filter(|by| *by > 0)
    }

    fn send_away(&self) {
        self.away.cancel();
        self.leaving.cancel();
    }

    /// A request was let in: this is no stranger.
    pub(crate) fn let_in(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed)
            && let Some(door) = self.door.upgrade()
        {
            door.lock().strangers.remove(&self.number);
        }
    }
}

impl Busy {
    /// Its client gets the answer also when it sends no more.
    pub(crate) fn await_answer(&mut self) {
        self.place.busy.fetch_add(AWAITED, Ordering::Relaxed);
        self.count += AWAITED;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.place.since.store(0, Ordering::Relaxed);
        let before = self.place.busy.fetch_sub(self.count, Ordering::AcqRel);
        if before >= HEARD
            && self.count >= AWAITED
            && let Some(waker) = self.place.half_closed().take()
        {
            waker.wake();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(door) = self.door.upgrade() {
            let mut inside = door.lock();
            inside.places.remove(&self.number);
            inside.strangers.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_strangers_make_place_for_each_other_and_for_nobody_who_is_known() {
        let metrics = Metrics::default();
        let door = Door::new(8, &CancellationToken::new());
        let known: Vec<_> =
            (0..6).map(|_| door.enter(&metrics).unwrap()).inspect(|place| place.let_in()).collect();
        let first = door.enter(&metrics).unwrap();
        let second = door.enter(&metrics).unwrap();
        assert!(!first.away.is_cancelled());
        let third = door.enter(&metrics).unwrap();
        assert!(first.away.is_cancelled() && !second.away.is_cancelled());
        assert!(known.iter().all(|place| !place.away.is_cancelled()));
        second.let_in();
        third.let_in();
        assert!(door.enter(&metrics).is_none(), "everybody who is here is known");
        drop((first, second, third, known));
        assert_eq!(door.count(), 0);
    }

    #[test]
    fn s37_a_head_that_trickles_has_ten_seconds_also_where_others_were_let_in_before() {
        let metrics = Metrics::default();
        let door = Door::new(16, &CancellationToken::new());
        let now = SystemClock.boot_millis();
        let places = [0, 1, 2].map(|_| door.enter(&metrics).unwrap());
        let [resting, trickling, working] = &places;
        for place in &places {
            drop(place.work());
            place.let_in();
        }
        let busy = working.work();
        for second in 0..11 {
            trickling.has_read();
            working.has_read();
            assert!(!trickling.away.is_cancelled(), "{second}");
            door.tick_at(now + second * 1000, &metrics);
        }
        assert!(trickling.away.is_cancelled() && !resting.away.is_cancelled());
        assert!(!working.away.is_cancelled(), "a body has its own time");
        drop((busy, places));
        // A head that comes is one that came in time.
        let place = door.enter(&metrics).unwrap();
        place.let_in();
        for second in 0..30 {
            place.has_read();
            drop(place.work());
            door.tick_at(now + second * 1000, &metrics);
        }
        assert!(!place.away.is_cancelled());
        assert_eq!(metrics.counted(Count::IdleConnections), 1);
    }
}
