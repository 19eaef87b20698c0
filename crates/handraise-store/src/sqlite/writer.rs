//! The one connection that writes, and how those who write share it.
//!
//! What a caller wants written is handed over whole, and goes to SQLite's own thread in one call: each call is two
//! changes of threads, which is more than most statements take. What waits meanwhile is written together, in one
//! transaction, and acknowledged after it was committed; the pages that it changes are then written to the log once. When
//! one of a group fails, nothing of the group is kept, and each is written by itself: a bad one neither loses nor holds
//! up the others.

use std::{
    io,
    ops::{Deref, DerefMut},
    sync::Arc,
    thread,
};

use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Connection as _, Either, Execute as _, Executor as _, FromRow, SqlSafeStr as _, SqlStr,
    Sqlite as Driver, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};
use tokio::{
    runtime::{self, Handle},
    sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, mpsc, oneshot},
};

/// Most that are written together: the first of them waits for the last.
const MOST_TOGETHER: usize = 64;
/// How many may wait; whoever comes then waits for a place.
const MOST_WAITING: usize = 1_024;

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
/// Writes a page of no importance.
const BEGIN_ANEW: &str = "INSERT INTO meta (key, value) VALUES ('logs', '1') \
    ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1";

/// Statements that belong together: all of them are committed, or none. They share their parameters. A later one may ask
/// with `changes()` what the one before it changed.
macro_rules! transaction {
    ($first:expr $(, $next:expr)+ $(,)?) => {
        concat!($first, $("; ", $next),+)
    };
}
pub(crate) use transaction;

/// What each of a caller's statements came to.
#[derive(Debug)]
pub(crate) struct Outcome(Vec<Part>);

/// What one statement came to.
#[derive(Debug, Default)]
struct Part {
    changed: u64,
    rows: Vec<SqliteRow>,
}

impl Outcome {
    /// How many rows the statement with that place changed, what its triggers changed not counted.
    pub(crate) fn changed(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |part| part.changed)
    }

    /// The first row that the statement with that place yielded.
    pub(crate) fn row<T: for<'r> FromRow<'r, SqliteRow>>(
        &self,
        place: usize,
    ) -> Result<Option<T>, sqlx::Error> {
        self.0.get(place).and_then(|part| part.rows.first()).map(T::from_row).transpose()
    }
}

/// What a caller wants written.
#[derive(Debug)]
struct Wanted {
    sql: SqlStr,
    arguments: SqliteArguments,
    done: oneshot::Sender<Result<Outcome, sqlx::Error>>,
}

/// The connection, until it is closed.
type Shared = Arc<Mutex<Option<Held>>>;

#[derive(Debug)]
struct Held {
    connection: SqliteConnection,
    /// Whether somebody may have left a transaction open.
    is_open: bool,
}

impl Held {
    /// The connection, with nothing open.
    async fn clean(&mut self) -> &mut SqliteConnection {
        if self.is_open {
            end(&mut self.connection).await;
            self.is_open = false;
        }
        &mut self.connection
    }
}

/// The one connection that writes.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    connection: Shared,
    waiting: mpsc::Sender<Wanted>,
}

impl Writer {
    /// Takes the connection over.
    ///
    /// What is written is seen to by a thread of its own: somebody waits for each, and the runtime's threads may be busy
    /// with what nobody waits for.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(connection: SqliteConnection) -> io::Result<Self> {
        let connection = Arc::new(Mutex::new(Some(Held { connection, is_open: false })));
        let (waiting, queue) = mpsc::channel(MOST_WAITING);
        let serving = serve(Arc::clone(&connection), queue);
        let own = runtime::Builder::new_current_thread().build()?;
        thread::Builder::new().name("store-writer".into()).spawn(move || own.block_on(serving))?;
        Ok(Self { connection, waiting })
    }

    /// Writes what the query says and returns after it was committed. Whoever gives up waiting may find it written.
    pub(super) async fn write(
        &self,
        mut query: Query<'_, Driver, SqliteArguments>,
    ) -> Result<Outcome, sqlx::Error> {
        let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
        let (done, outcome) = oneshot::channel();
        let wanted = Wanted { sql: query.sql(), arguments, done };
        self.waiting.send(wanted).await.map_err(|_| sqlx::Error::PoolClosed)?;
        outcome.await.map_err(|_| sqlx::Error::PoolClosed)?
    }

    /// Begins a transaction of several calls, for what has to look at one answer before it asks the next.
    pub(super) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        let shared = Arc::clone(&self.connection);
        let held = Arc::clone(&shared).lock_owned().await;
        let mut held = OwnedMutexGuard::try_map(held, Option::as_mut).map_err(|_| sqlx::Error::PoolClosed)?;
        held.clean().await;
        held.is_open = true;
        let mut begun = Transaction { held, shared };
        sqlx::query(BEGIN).execute(&mut *begun).await?;
        Ok(begun)
    }

    /// Moves what is left of the log into the database file and begins the log anew, while nobody else writes: who writes
    /// meanwhile waits for it. Quick when most was moved before.
    pub(super) async fn fold(&self) -> Result<(), sqlx::Error> {
        let mut held = self.connection.lock().await;
        let held = held.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let connection = held.clean().await;
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut *connection).await?;
        // Who writes first after that waits for a sync; this does it for everybody.
        sqlx::query(BEGIN_ANEW).execute(connection).await?;
        Ok(())
    }

    /// Closes the connection. Nothing can be written any more.
    pub(super) async fn close(&self) {
        if let Some(mut held) = self.connection.lock().await.take() {
            held.clean().await;
            // What was acknowledged is in the log, whether it can be folded now or not.
            let _ = held.connection.close().await;
        }
    }
}

/// A write transaction; what was not committed when it is dropped is rolled back.
#[derive(Debug)]
pub(crate) struct Transaction {
    held: OwnedMappedMutexGuard<Option<Held>, Held>,
    shared: Shared,
}

impl Transaction {
    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::query(COMMIT).execute(&mut *self).await?;
        self.held.is_open = false;
        Ok(())
    }
}

impl Deref for Transaction {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.held.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.held.connection
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Whoever has the connection next ends it first. If nobody wants it, it is ended all the same.
        if self.held.is_open
            && let Ok(runtime) = Handle::try_current()
        {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move {
                if let Some(held) = shared.lock().await.as_mut() {
                    held.clean().await;
                }
            });
        }
    }
}

/// Writes what comes, until nobody can want anything any more.
async fn serve(connection: Shared, mut queue: mpsc::Receiver<Wanted>) {
    let mut group = Vec::new();
    while queue.recv_many(&mut group, MOST_TOGETHER).await > 0 {
        // Others that are about to want something go first.
        tokio::task::yield_now().await;
        let mut connection = connection.lock().await;
        while group.len() < MOST_TOGETHER
            && let Ok(wanted) = queue.try_recv()
        {
            group.push(wanted);
        }
        match connection.as_mut() {
            Some(held) => write_all(held.clean().await, std::mem::take(&mut group)).await,
            None => group.clear(),
        }
    }
}

async fn write_all(connection: &mut SqliteConnection, group: Vec<Wanted>) {
    match together(connection, &group).await {
        Ok(outcomes) => {
            for (wanted, outcome) in group.into_iter().zip(outcomes) {
                // Whoever wanted it may have given up.
                let _ = wanted.done.send(Ok(outcome));
            }
        }
        Err(error) => {
            end(connection).await;
            write_each(connection, group, error).await;
        }
    }
}

/// Writes each of a group that failed together by itself.
async fn write_each(connection: &mut SqliteConnection, group: Vec<Wanted>, error: sqlx::Error) {
    let mut error = (group.len() == 1).then_some(error);
    for wanted in group {
        let outcome = match error.take() {
            Some(error) => Err(error),
            None => run(connection, &wanted, true, true).await,
        };
        if outcome.is_err() {
            end(connection).await;
        }
        let _ = wanted.done.send(outcome);
    }
}

/// Writes all of them in one transaction, or fails.
async fn together(connection: &mut SqliteConnection, group: &[Wanted]) -> Result<Vec<Outcome>, sqlx::Error> {
    let mut outcomes = Vec::with_capacity(group.len());
    for (at, wanted) in group.iter().enumerate() {
        outcomes.push(run(connection, wanted, at == 0, at + 1 == group.len()).await?);
    }
    Ok(outcomes)
}

/// Ends what a failure has left open. SQLite may have done it itself, and says so then.
async fn end(connection: &mut SqliteConnection) {
    let _ = sqlx::query(ROLLBACK).execute(connection).await;
}

/// Runs the statements of one caller, the first and the last of a transaction together with its beginning and its end.
async fn run(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
    is_first: bool,
    is_last: bool,
) -> Result<Outcome, sqlx::Error> {
    let own = wanted.sql.as_str();
    // Each of these few texts is prepared once.
    let is_alone = is_first && is_last && !own.contains(';');
    let sql = match (is_first, is_last) {
        // One statement alone is a transaction.
        (true, true) if is_alone => wanted.sql.clone(),
        (true, true) => AssertSqlSafe(format!("{BEGIN}; {own}; {COMMIT}")).into_sql_str(),
        (true, false) => AssertSqlSafe(format!("{BEGIN}; {own}")).into_sql_str(),
        (false, true) => AssertSqlSafe(format!("{own}; {COMMIT}")).into_sql_str(),
        (false, false) => wanted.sql.clone(),
    };
    let mut parts = Vec::new();
    let mut part = Part::default();
    // Not the query's own method: it is deprecated, because no other database takes several statements at once.
    let mut results = connection.fetch_many(sqlx::query_with(sql, wanted.arguments.clone()));
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Right(row) => part.rows.push(row),
            Either::Left(done) => {
                part.changed = done.rows_affected();
                parts.push(std::mem::take(&mut part));
            }
        }
    }
    drop(results);
    Ok(Outcome(parts.into_iter().skip(usize::from(is_first && !is_alone)).collect()))
}

#[cfg(test)]
mod tests;
