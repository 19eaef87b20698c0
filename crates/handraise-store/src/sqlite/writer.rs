//! The one connection that writes, and how those who write share it.
//!
//! What a caller wants written is handed over whole. When nobody is writing, the caller writes it itself, on its own
//! thread: every change of threads takes as long as a small transaction. It never waits there: when somebody is writing,
//! or another program has the file locked, a thread of ours sees to it. What waits meanwhile is written together, in one
//! transaction, and acknowledged after it was committed; the pages that it changes are then written to the log once. When
//! one of a group fails, nothing of the group is kept, and each is written by itself: a bad one neither loses nor holds
//! up the others.

use std::{io, sync::Arc, thread, time::Duration};

use rusqlite::Connection;
use tokio::{
    runtime,
    sync::{Mutex, Notify, OwnedMappedMutexGuard, OwnedMutexGuard, mpsc, oneshot},
    task,
};

use super::hot;
use crate::{
    error::Failure,
    statement::{Outcome, Statement},
};

/// Most that are written together: the first of them waits for the last.
const MOST_TOGETHER: usize = 64;
/// How many may wait; whoever comes then waits for a place.
const MOST_WAITING: usize = 1_024;

/// Writes a page of no importance.
const BEGIN_ANEW: Statement = Statement::new(&["INSERT INTO meta (key, value) VALUES ('logs', '1') \
    ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"]);

/// What a caller wants written.
#[derive(Debug)]
struct Wanted {
    statement: Statement,
    done: oneshot::Sender<Result<Outcome, Failure>>,
}

/// The connection, and what waits for it.
#[derive(Debug)]
struct Held {
    connection: Connection,
    queue: mpsc::Receiver<Wanted>,
    /// What was taken from the queue and is not written yet.
    group: Vec<Wanted>,
    busy: Duration,
}

/// The connection, until it is closed.
type Shared = Arc<Mutex<Option<Held>>>;

/// The one connection that writes.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    shared: Shared,
    waiting: mpsc::Sender<Wanted>,
    /// That there is something for the thread to do.
    call: Arc<Notify>,
}

impl Writer {
    /// Takes the connection over. `busy`: how long another program that has the file locked is waited for.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(connection: Connection, busy: Duration) -> io::Result<Self> {
        let (waiting, queue) = mpsc::channel(MOST_WAITING);
        let shared = Arc::new(Mutex::new(Some(Held { connection, queue, group: Vec::new(), busy })));
        let call = Arc::new(Notify::new());
        let serving = serve(Arc::clone(&shared), Arc::clone(&call));
        let own = runtime::Builder::new_current_thread().build()?;
        thread::Builder::new().name("store-writer".into()).spawn(move || own.block_on(serving))?;
        Ok(Self { shared, waiting, call })
    }

    /// Writes what the statement says and returns after it was committed. Whoever gives up waiting may find it written.
    pub(super) async fn write(&self, statement: Statement) -> Result<Outcome, Failure> {
        let (done, outcome) = oneshot::channel();
        self.waiting.send(Wanted { statement, done }).await.map_err(|_| closed())?;
        let written = match self.shared.try_lock() {
            Ok(mut held) => held.as_mut().is_none_or(|held| held.write_waiting(Duration::ZERO)),
            Err(_) => false,
        };
        if !written {
            self.call.notify_one();
        }
        outcome.await.map_err(|_| closed())?
    }

    /// Writes what the statement says, which takes long: nobody's thread is to stand still for it.
    pub(super) async fn write_aside(&self, statement: Statement) -> Result<Outcome, Failure> {
        self.aside(move |held| {
            let outcome = held.write_one(&statement, held.busy);
            outcome.inspect_err(|_| hot::end(&held.connection))
        })
        .await
    }

    /// Begins a transaction of several calls, for what has to look at one answer before it asks the next.
    pub(super) async fn begin(&self) -> Result<Transaction, Failure> {
        let mut held = self.hold().await?;
        match hot::begin(&held.connection, Duration::ZERO) {
            Ok(()) => return Ok(Transaction { held }),
            Err(error) if hot::is_locked(&error) => {}
            Err(error) => return Err(error.into()),
        }
        let begun = task::spawn_blocking(move || {
            hot::begin(&held.connection, held.busy)?;
            Ok::<_, rusqlite::Error>(held)
        });
        held = begun.await.map_err(|_| closed())??;
        Ok(Transaction { held })
    }

    /// Moves what is left of the log into the database file and begins the log anew, while nobody else writes: who writes
    /// meanwhile waits for it. Quick when most was moved before.
    pub(super) async fn fold(&self) -> Result<(), Failure> {
        self.aside(|held| {
            held.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            // Who writes first after that waits for a sync; this does it for everybody.
            held.write_one(&BEGIN_ANEW, held.busy).inspect_err(|_| hot::end(&held.connection))
        })
        .await
        .map(drop)
    }

    /// Closes the connection. Nothing can be written any more.
    pub(super) async fn close(&self) {
        if let Some(held) = self.shared.lock().await.take() {
            // What was acknowledged is in the log, whether it can be folded now or not.
            let _ = task::spawn_blocking(move || drop(held)).await;
        }
        self.call.notify_one();
    }

    /// Does something that takes long, while nobody else writes, on a thread that may stand still.
    async fn aside<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Held) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let mut held = self.hold().await?;
        let done = task::spawn_blocking(move || what(&mut held));
        Ok(done.await.map_err(|_| closed())??)
    }

    async fn hold(&self) -> Result<OwnedMappedMutexGuard<Option<Held>, Held>, Failure> {
        let held = Arc::clone(&self.shared).lock_owned().await;
        OwnedMutexGuard::try_map(held, Option::as_mut).map_err(|_| closed())
    }
}

fn closed() -> Failure {
    Failure::Driver(sqlx::Error::PoolClosed)
}

/// A write transaction; what was not committed when it is dropped is rolled back.
#[derive(Debug)]
pub(crate) struct Transaction {
    held: OwnedMappedMutexGuard<Option<Held>, Held>,
}

impl Transaction {
    /// Runs statements within it. There is nothing to wait for; of another database there would be.
    #[expect(clippy::unused_async, reason = "as of any database")]
    pub(crate) async fn run(&mut self, statement: Statement) -> Result<Outcome, Failure> {
        Ok(hot::run(&self.held.connection, &statement)?)
    }

    #[expect(clippy::unused_async, reason = "as of any database")]
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        Ok(hot::commit(&self.held.connection)?)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        hot::end(&self.held.connection);
    }
}

/// Writes what those who want it could not write themselves, until nobody can want anything any more.
async fn serve(shared: Shared, call: Arc<Notify>) {
    loop {
        call.notified().await;
        let mut is_more = true;
        while is_more {
            let mut held = shared.lock().await;
            let Some(held) = held.as_mut() else { return };
            held.write_waiting(held.busy);
            is_more = !held.queue.is_empty();
        }
    }
}

impl Held {
    /// Writes what waits. Says whether nothing of it is left to be written, because the file is locked.
    fn write_waiting(&mut self, patience: Duration) -> bool {
        while self.group.len() < MOST_TOGETHER
            && let Ok(wanted) = self.queue.try_recv()
        {
            self.group.push(wanted);
        }
        if self.group.is_empty() {
            return true;
        }
        match self.together(patience) {
            Ok(outcomes) => {
                for (wanted, outcome) in self.group.drain(..).zip(outcomes) {
                    // Whoever wanted it may have given up.
                    let _ = wanted.done.send(Ok(outcome));
                }
            }
            Err(error) => {
                hot::end(&self.connection);
                if patience.is_zero() && hot::is_locked(&error) {
                    return false;
                }
                self.write_each(error, patience);
            }
        }
        self.queue.is_empty()
    }

    /// Writes all of the group in one transaction, or fails.
    fn together(&self, patience: Duration) -> rusqlite::Result<Vec<Outcome>> {
        hot::begin(&self.connection, patience)?;
        let outcomes = self.group.iter().map(|wanted| hot::run(&self.connection, &wanted.statement));
        let outcomes = outcomes.collect::<rusqlite::Result<_>>()?;
        hot::commit(&self.connection)?;
        Ok(outcomes)
    }

    /// Writes each of a group that failed together by itself.
    fn write_each(&mut self, error: rusqlite::Error, patience: Duration) {
        let mut error = (self.group.len() == 1).then_some(error);
        for wanted in std::mem::take(&mut self.group) {
            let outcome = match error.take() {
                Some(error) => Err(error),
                None => self.write_one(&wanted.statement, patience),
            };
            if outcome.is_err() {
                hot::end(&self.connection);
            }
            let _ = wanted.done.send(outcome.map_err(Into::into));
        }
    }

    /// Writes what one caller wants, or leaves it to be ended.
    fn write_one(&self, statement: &Statement, patience: Duration) -> rusqlite::Result<Outcome> {
        hot::begin(&self.connection, patience)?;
        let outcome = hot::run(&self.connection, statement)?;
        hot::commit(&self.connection)?;
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
