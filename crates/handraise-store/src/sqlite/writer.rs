//! The one connection that writes, and how those who write share it.
//!
//! What a caller wants written is handed over whole. When nobody is writing, the caller writes it itself, on its own
//! thread: every change of threads takes as long as a small transaction. What waits meanwhile is written next, together,
//! in one transaction, and acknowledged after it was committed; the pages that it changes are then written to the log
//! once. When one of a group fails, nothing of the group is kept, and each is written by itself: a bad one neither loses
//! nor holds up the others. What [goes ahead](Statement::ahead) does not wait for what only came before it.
//!
//! Callers' threads are never waited on: what is left for long, or waits for another program that has the file locked, is
//! seen to by a thread of ours.

use std::{
    io,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use rusqlite::Connection;
use tokio::{sync::oneshot, task};

use super::{
    desk::{Desk, MOST_WAITING, Next, Places, Wanted},
    hot,
};
use crate::{
    error::Failure,
    statement::{Outcome, Statement},
};

/// Writes a page of no importance.
const BEGIN_ANEW: Statement = Statement::new(&["INSERT INTO meta (key, value) VALUES ('logs', '1') \
    ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"]);

/// The one connection that writes.
#[derive(Debug, Clone)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The connection lies here while nobody uses it.
    desk: Desk<Connection, Lent>,
    places: Places,
    /// To the thread that writes what is left.
    thread: mpsc::Sender<Lent>,
    busy: Duration,
}

impl Writer {
    /// Takes the connection over. `busy`: how long another program that has the file locked is waited for.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(connection: Connection, busy: Duration) -> io::Result<Self> {
        let (thread, left) = mpsc::channel::<Lent>();
        let serve = move || {
            for lent in left {
                lent.write_what_waits(usize::MAX, busy);
            }
        };
        thread::Builder::new().name("store-writer".into()).spawn(serve)?;
        Ok(Self(Arc::new(Shared { desk: Desk::new(connection), places: Places::new(), thread, busy })))
    }

    /// Writes what the statement says and returns after it was committed. Whoever gives up waiting may find it written.
    pub(super) async fn write(&self, statement: Statement) -> Result<Outcome, Failure> {
        let place = self.0.places.take().await.ok_or_else(closed)?;
        let (done, outcome) = oneshot::channel();
        // Who is waited for does not stay for others.
        let rounds = if statement.is_ahead { 1 } else { 2 };
        let connection = self.0.desk.want(Wanted { statement, done, place }).map_err(|_| closed())?;
        if let Some(connection) = connection {
            let told = self.lend(connection).write_what_waits(rounds, Duration::ZERO);
            // Those who were told are woken to this very thread, and whoever writes one thing after the other would keep
            // it for long. Who is waited for goes on at once: they have little left to do.
            if told > 1 && rounds > 1 {
                task::yield_now().await;
            }
        }
        outcome.await.map_err(|_| closed())?
    }

    /// The same for several, which are written in their order, and together where they fit. What came of each. Of more than
    /// may wait none is written.
    pub(super) async fn write_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<Result<Outcome, Failure>>, Failure> {
        if statements.len() > MOST_WAITING {
            let what = format!("{} statements at once, {MOST_WAITING} may wait", statements.len());
            return Err(Failure::Driver(sqlx::Error::Protocol(what)));
        }
        let places = self.0.places.take_many(statements.len()).await.ok_or_else(closed)?;
        let mut outcomes = Vec::with_capacity(places.len());
        let mut lent = None;
        for (statement, place) in statements.into_iter().zip(places) {
            let (done, outcome) = oneshot::channel();
            let connection = self.0.desk.want(Wanted { statement, done, place }).map_err(|_| closed())?;
            lent = lent.or(connection.map(|connection| self.lend(connection)));
            outcomes.push(outcome);
        }
        if let Some(lent) = lent
            && lent.write_what_waits(2, Duration::ZERO) > outcomes.len()
        {
            task::yield_now().await;
        }
        let mut told = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            told.push(outcome.await.unwrap_or_else(|_| Err(closed())));
        }
        Ok(told)
    }

    /// Writes what the statement says, which takes long: nobody's thread is to stand still for it.
    pub(super) async fn write_aside(&self, statement: Statement) -> Result<Outcome, Failure> {
        self.aside(move |lent, busy| lent.write_one(&statement, busy)).await
    }

    /// Begins a transaction of several calls, for what has to look at one answer before it asks the next.
    pub(super) async fn begin(&self) -> Result<Transaction, Failure> {
        let lent = self.hold().await?;
        match hot::begin(lent.connection()?, Duration::ZERO) {
            Err(error) if hot::is_locked(&error) => {}
            begun => return begun.map(|()| Transaction(lent)).map_err(Into::into),
        }
        let busy = self.0.busy;
        let begun = task::spawn_blocking(move || {
            hot::begin(lent.connection()?, busy)?;
            Ok(Transaction(lent))
        });
        begun.await.map_err(|_| closed())?
    }

    /// Moves what is left of the log into the database file and begins the log anew, while nobody else writes: who writes
    /// meanwhile waits for it. Quick when most was moved before.
    pub(super) async fn fold(&self) -> Result<(), Failure> {
        self.aside(|lent, busy| {
            let (logged, moved): (i64, i64) =
                lent.connection()?
                    .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))?;
            // Another program that still reads keeps the log: it would only grow by this.
            if logged == moved {
                // Who writes first after that waits for a sync; this does it for everybody.
                lent.write_one(&BEGIN_ANEW, busy)?;
            }
            Ok(())
        })
        .await
    }

    /// Closes the connection. Nothing can be written any more.
    pub(super) async fn close(&self) {
        if let Ok(mut lent) = self.hold().await {
            self.0.places.close();
            self.0.desk.close();
            // What was acknowledged is in the log, whether it can be folded now or not.
            let _ = task::spawn_blocking(move || drop(lent.connection.take())).await;
        }
    }

    /// Does something that takes long, while nobody else writes, on a thread that may stand still.
    async fn aside<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Lent, Duration) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let lent = self.hold().await?;
        let busy = self.0.busy;
        task::spawn_blocking(move || what(&lent, busy)).await.map_err(|_| closed())?
    }

    /// Waits for the connection. It is held until what is returned is dropped.
    async fn hold(&self) -> Result<Lent, Failure> {
        let (lend, lent) = oneshot::channel();
        match self.0.desk.ask_for(lend).map_err(|_| closed())? {
            Some(connection) => Ok(self.lend(connection)),
            None => lent.await.map_err(|_| closed()),
        }
    }

    fn lend(&self, connection: Connection) -> Lent {
        Lent { connection: Some(connection), shared: Arc::clone(&self.0) }
    }
}

fn closed() -> Failure {
    Failure::Driver(sqlx::Error::PoolClosed)
}

/// The connection, in somebody's hands. Whoever drops it has it written what waited meanwhile.
#[derive(Debug)]
struct Lent {
    connection: Option<Connection>,
    shared: Arc<Shared>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        hot::end(&connection);
        if let Some(connection) = self.shared.desk.lay_back(connection) {
            self.leave(connection);
        }
    }
}

impl Lent {
    fn connection(&self) -> Result<&Connection, Failure> {
        self.connection.as_ref().ok_or_else(closed)
    }

    /// Leaves the connection, and what waits for it, to the thread.
    fn leave(&self, connection: Connection) {
        let left = Self { connection: Some(connection), shared: Arc::clone(&self.shared) };
        if let Err(mpsc::SendError(mut left)) = self.shared.thread.send(left) {
            // There is no thread any more: whoever waits hears that nothing can be written.
            self.shared.desk.close();
            left.connection = None;
        }
    }

    /// Writes what waits, in so many rounds at most, and leaves what comes after to the thread. Returns how many were told
    /// what came of it.
    fn write_what_waits(mut self, rounds: usize, patience: Duration) -> usize {
        let mut told = 0;
        for _ in 0..rounds {
            let Some(connection) = self.connection.take() else { break };
            match self.shared.desk.next(connection) {
                Next::Nothing => break,
                Next::Lend(connection, lend) => {
                    let lent = Self { connection: Some(connection), shared: Arc::clone(&self.shared) };
                    match lend.send(lent) {
                        Ok(()) => break,
                        // Whoever asked for it has given up.
                        Err(mut lent) => self.connection = lent.connection.take(),
                    }
                }
                Next::Group(connection, group) => {
                    // In our hands meanwhile, so that it comes back whatever happens.
                    let all = group.len();
                    let left = write_group(self.connection.insert(connection), group, patience);
                    told += all - left.len();
                    if !left.is_empty() {
                        self.shared.desk.put_off(left);
                        break;
                    }
                }
            }
        }
        told
    }

    /// Writes what one caller wants.
    fn write_one(&self, statement: &Statement, patience: Duration) -> Result<Outcome, Failure> {
        let connection = self.connection()?;
        Ok(write_one(connection, statement, patience).inspect_err(|_| hot::end(connection))?)
    }
}

/// A write transaction; what was not committed when it is dropped is rolled back.
#[derive(Debug)]
pub(crate) struct Transaction(Lent);

impl Transaction {
    /// Runs statements within it. There is nothing to wait for; of another database there would be.
    #[expect(clippy::unused_async, reason = "as of any database")]
    pub(crate) async fn run(&mut self, statement: Statement) -> Result<Outcome, Failure> {
        Ok(hot::run(self.0.connection()?, &statement)?)
    }

    #[expect(clippy::unused_async, reason = "as of any database")]
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        Ok(hot::commit(self.0.connection()?)?)
    }
}

/// Writes a group. Returns what is left of it, because the file is locked.
fn write_group(connection: &Connection, group: Vec<Wanted>, patience: Duration) -> Vec<Wanted> {
    match together(connection, &group, patience) {
        Ok(outcomes) => {
            for (wanted, outcome) in group.into_iter().zip(outcomes) {
                wanted.tell(Ok(outcome));
            }
        }
        Err(error) => {
            hot::end(connection);
            if patience.is_zero() && hot::is_locked(&error) {
                return group;
            }
            // The group has waited for the other program already.
            let patience = if hot::is_locked(&error) { Duration::ZERO } else { patience };
            write_each(connection, group, error, patience);
        }
    }
    Vec::new()
}

/// Writes all of the group in one transaction, or fails.
fn together(connection: &Connection, group: &[Wanted], patience: Duration) -> rusqlite::Result<Vec<Outcome>> {
    hot::begin(connection, patience)?;
    let outcomes = group.iter().map(|wanted| hot::run(connection, &wanted.statement));
    let outcomes = outcomes.collect::<rusqlite::Result<_>>()?;
    hot::commit(connection)?;
    Ok(outcomes)
}

/// Writes each of a group that failed together by itself.
fn write_each(connection: &Connection, group: Vec<Wanted>, error: rusqlite::Error, patience: Duration) {
    let mut error = (group.len() == 1).then_some(error);
    for wanted in group {
        let outcome = match error.take() {
            Some(error) => Err(error),
            None => write_one(connection, &wanted.statement, patience),
        };
        if outcome.is_err() {
            hot::end(connection);
        }
        wanted.tell(outcome.map_err(Into::into));
    }
}

/// Writes what one caller wants, or leaves it to be ended.
fn write_one(
    connection: &Connection,
    statement: &Statement,
    patience: Duration,
) -> rusqlite::Result<Outcome> {
    hot::begin(connection, patience)?;
    let outcome = hot::run(connection, statement)?;
    hot::commit(connection)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests;
