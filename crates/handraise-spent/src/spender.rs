//! The threads that ask the store: what an envelope is told is on disk before it hears of it, and nobody else waits for the
//! disk.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use handraise_mcp::{Spend, confirm::Spent};
use handraise_transport::{clock::SharedClock, limited::Limited};

use crate::{Store, Was, turns::Turns};

/// The most questions of one caller that wait: as many as requests of a client may be open. What comes then is not asked,
/// and its envelope waits for nothing. What only settles a nonce has as much room again.
const MOST_WAITING: usize = 65_536;

/// How often the store is looked at while nothing else shows how it is, so that a folder that has gone bad is known before
/// somebody's acceptance comes to nothing.
const CHECKED_EVERY: Duration = Duration::from_mins(1);

/// Asks a store for envelopes. A question comes with `W`, for whom it is.
///
/// Callers take turns; each caller's questions are answered in the order in which they came. Without a store nothing is
/// said, and nothing runs: envelopes wait for so long only.
pub struct Spender<W>(Option<Arc<Desk<W>>>);

/// Where questions wait.
struct Desk<W> {
    inside: Mutex<Inside<W>>,
    /// There is more to do, or nothing any more.
    moved: Condvar,
    clock: SharedClock,
    checked_every: Duration,
}

struct Inside<W> {
    turns: Turns<(W, Spend)>,
    complaints: Limited,
    is_over: bool,
    /// When the store was last looked at, on the clock that runs through suspend, in milliseconds.
    checked_ms: u64,
    /// How often looking at it was begun, and which of them found what is known.
    checks: u64,
    known_by: u64,
    /// What was wrong with it then.
    trouble: Option<String>,
}

impl<W: Send + 'static> Spender<W> {
    /// Starts so many threads, where there is a store. `tell` is told each question's ticket and what the store says.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(
        store: Option<Store>,
        threads: usize,
        clock: SharedClock,
        tell: impl Fn(W, u64, Spent) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_checking(store, threads, clock, CHECKED_EVERY, tell)
    }

    fn start_checking(
        store: Option<Store>,
        threads: usize,
        clock: SharedClock,
        checked_every: Duration,
        tell: impl Fn(W, u64, Spent) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let Some(store) = store else { return Ok(Self(None)) };
        let complaints = Limited::new(Arc::clone(&clock));
        let inside = Inside {
            turns: Turns::default(),
            complaints,
            is_over: false,
            checked_ms: clock.boot_millis(),
            checks: 0,
            known_by: 0,
            trouble: None,
        };
        let (inside, moved) = (Mutex::new(inside), Condvar::new());
        let desk = Arc::new(Desk { inside, moved, clock, checked_every });
        let (store, tell) = (Arc::new(store), Arc::new(tell));
        // From here on it ends those that were started, also where one is not.
        let spender = Self(Some(Arc::clone(&desk)));
        for _ in 0..threads {
            let (desk, store, tell) = (Arc::clone(&desk), Arc::clone(&store), Arc::clone(&tell));
            let work = move || desk.answer(&store, &*tell);
            thread::Builder::new().name("spender".to_owned()).spawn(work)?;
        }
        Ok(spender)
    }

    /// Asks, as a caller.
    pub fn ask(&self, caller: &str, whom: W, spend: Spend) {
        let Some(desk) = &self.0 else { return };
        let most = if spend.ticket == 0 { 2 * MOST_WAITING } else { MOST_WAITING };
        let mut inside = desk.lock();
        match inside.turns.add(caller, (whom, spend), most) {
            Ok(true) => desk.moved.notify_one(),
            Ok(false) => {}
            Err(_) => inside.complain("too many questions wait for the store of spent confirmations"),
        }
    }
}

impl<W> Drop for Spender<W> {
    fn drop(&mut self) {
        if let Some(desk) = &self.0 {
            desk.lock().is_over = true;
            desk.moved.notify_all();
        }
    }
}

impl<W> fmt::Debug for Spender<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spender").field("has_store", &self.0.is_some()).finish_non_exhaustive()
    }
}

impl<W> Desk<W> {
    /// Answers questions until there are none and it is over.
    fn answer(&self, store: &Store, tell: &dyn Fn(W, u64, Spent)) {
        let mut inside = self.lock();
        loop {
            let Some((caller, (whom, spend))) = inside.turns.next() else {
                if inside.is_over {
                    return;
                }
                if inside.is_due(self.clock.boot_millis(), self.checked_every) {
                    drop(inside);
                    self.check(store);
                    inside = self.lock();
                    continue;
                }
                let left = inside.left(self.clock.boot_millis(), self.checked_every);
                let waited = self.moved.wait_timeout(inside, left);
                (inside, _) = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(inside);
            let was = ask(store, spend, self.clock.wall_millis());
            if was == Spent::Unknown {
                self.check(store);
                self.lock().complain("the store of spent confirmations does not answer");
            }
            tell(whom, spend.ticket, was);
            inside = self.lock();
            if inside.turns.answered(caller) {
                self.moved.notify_one();
            }
        }
    }

    /// Looks at the store, and logs what has changed. Nobody is kept waiting for the disk meanwhile.
    fn check(&self, store: &Store) {
        let number = self.lock().begin_check();
        let trouble = store.check().err().map(|error| error.to_string());
        self.lock().found(number, trouble);
    }

    fn lock(&self) -> MutexGuard<'_, Inside<W>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Inside<W> {
    /// Whether the store is to be looked at now; who hears yes does it.
    fn is_due(&mut self, now_ms: u64, every: Duration) -> bool {
        let is_due = u128::from(now_ms.saturating_sub(self.checked_ms)) >= every.as_millis();
        if is_due {
            self.checked_ms = now_ms;
        }
        is_due
    }

    /// How long it is until then.
    fn left(&self, now_ms: u64, every: Duration) -> Duration {
        every.saturating_sub(Duration::from_millis(now_ms.saturating_sub(self.checked_ms)))
    }

    /// The number of a look at the store that begins now.
    fn begin_check(&mut self) -> u64 {
        self.checks += 1;
        self.checks
    }

    /// What the look of that number found; one that began later knows better.
    fn found(&mut self, number: u64, trouble: Option<String>) {
        if number < self.known_by {
            return;
        }
        self.known_by = number;
        if self.trouble != trouble {
            if let Some(trouble) = &trouble {
                tracing::error!("guarded calls do not run: {trouble}");
            } else {
                tracing::info!("guarded calls run again: spent confirmations can be kept");
            }
            self.trouble = trouble;
        }
    }

    fn complain(&mut self, what: &str) {
        if let Some(left_out) = self.complaints.admit() {
            tracing::error!(left_out, "{what}; what waits for it does not run");
        }
    }
}

fn ask(store: &Store, spend: Spend, now_ms: u64) -> Spent {
    let Spend { nonce, expires_ms, claims, .. } = spend;
    let was = if claims { store.claim(nonce, expires_ms, now_ms) } else { store.look(nonce, now_ms) };
    match was {
        Was::Unspent => Spent::No,
        Was::Spent => Spent::Yes,
        Was::Unknown => Spent::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use handraise_transport::clock::{Clock as _, SystemClock};

    use super::*;

    fn inside() -> Inside<()> {
        Inside {
            turns: Turns::default(),
            complaints: Limited::new(SystemClock::shared()),
            is_over: false,
            checked_ms: 0,
            checks: 0,
            known_by: 0,
            trouble: None,
        }
    }

    /// Waits until the store's trouble is as wanted; it is looked at every few milliseconds.
    #[track_caller]
    fn until(spender: &Spender<()>, wanted: impl Fn(Option<&str>) -> bool) {
        let bound = SystemClock.boot_millis() + 20_000;
        loop {
            let trouble = spender.0.as_ref().unwrap().lock().trouble.clone();
            if wanted(trouble.as_deref()) {
                return;
            }
            assert!(SystemClock.boot_millis() < bound, "{trouble:?}");
            thread::yield_now();
        }
    }

    #[test]
    fn s5_a_folder_that_goes_bad_is_known_before_anybody_accepts_and_so_is_its_return() {
        let base = tempfile::tempdir().unwrap();
        let store = Store::files(base.path(), &["spent"]).unwrap();
        let every = Duration::from_millis(5);
        let spender =
            Spender::start_checking(Some(store), 2, SystemClock::shared(), every, |(), _, _| {}).unwrap();
        let (folder, aside) = (base.path().join("spent"), base.path().join("aside"));
        std::fs::rename(&folder, &aside).unwrap();
        until(&spender, |trouble| trouble.is_some_and(|trouble| trouble.contains("is gone; put it back")));
        std::fs::rename(&aside, &folder).unwrap();
        until(&spender, |trouble| trouble.is_none());
    }

    #[test]
    fn s5_of_two_looks_at_once_the_later_one_counts() {
        let mut inside = inside();
        let (first, second) = (inside.begin_check(), inside.begin_check());
        inside.found(second, Some("full".into()));
        inside.found(first, None);
        assert_eq!(inside.trouble.as_deref(), Some("full"));
        let third = inside.begin_check();
        inside.found(third, None);
        assert_eq!(inside.trouble, None);
    }

    #[test]
    fn s5_who_waits_waits_only_until_the_next_look_is_due() {
        let inside = Inside { checked_ms: 1_000, ..inside() };
        let left = [1_000, 31_000, 60_999, 61_000, 200_000].map(|now| inside.left(now, CHECKED_EVERY));
        assert_eq!(left, [60_000, 30_000, 1, 0, 0].map(Duration::from_millis));
    }

    #[test]
    fn a_store_is_looked_at_by_one_thread_a_minute() {
        let mut inside = Inside { checked_ms: 1_000, ..inside() };
        let due = [60_999, 61_000, 61_000, 120_999, 121_000].map(|now| inside.is_due(now, CHECKED_EVERY));
        assert_eq!(due, [false, true, false, false, true]);
    }
}
