//! The threads that ask the store: what an envelope is told is on disk before it hears of it, and nobody else waits for the
//! disk.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use handraise_mcp::{Spend, confirm::Spent};
use handraise_transport::{clock::SharedClock, limited::Limited};

use crate::{Store, Was, turns::Turns};

/// The most questions of one caller that wait: as many as requests of a client may be open. What comes then is not asked,
/// and its envelope waits for nothing. What only settles a nonce has as much room again.
const MOST_WAITING: usize = 65_536;

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
}

struct Inside<W> {
    turns: Turns<(W, Spend)>,
    complaints: Limited,
    is_over: bool,
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
        let Some(store) = store else { return Ok(Self(None)) };
        let complaints = Limited::new(Arc::clone(&clock));
        let inside = Inside { turns: Turns::default(), complaints, is_over: false };
        let desk = Arc::new(Desk { inside: Mutex::new(inside), moved: Condvar::new(), clock });
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
                inside = self.moved.wait(inside).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(inside);
            let was = ask(store, spend, self.clock.wall_millis());
            if was == Spent::Unknown {
                self.lock().complain("the store of spent confirmations does not answer");
            }
            tell(whom, spend.ticket, was);
            inside = self.lock();
            if inside.turns.answered(caller) {
                self.moved.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<W>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Inside<W> {
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
