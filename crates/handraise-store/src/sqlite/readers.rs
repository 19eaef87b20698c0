//! The connections that read what the writer has committed.
//!
//! A pool of our own: a general one asks a connection whether it is well whenever it comes back, which takes as long as
//! the reading itself.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex as Lock, MutexGuard, PoisonError},
};

use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// How many read at the same time.
const READERS: usize = 4;

/// Connections that read, each opened when it is first needed.
#[derive(Debug, Clone)]
pub(super) struct Readers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: SqliteConnectOptions,
    connections: [Arc<Mutex<Option<SqliteConnection>>>; READERS],
    /// Which of them nobody uses, the one that was used last on top: it has the most in its cache.
    idle: Lock<Vec<usize>>,
    places: Arc<Semaphore>,
}

/// A connection that reads, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    connection: OwnedMappedMutexGuard<Option<SqliteConnection>, SqliteConnection>,
    _turn: Turn,
}

/// That the connection of a number is in use. It is free again when this is dropped, also by whoever gave up while it
/// was opened.
#[derive(Debug)]
struct Turn {
    number: usize,
    readers: Arc<Shared>,
    _place: OwnedSemaphorePermit,
}

impl Readers {
    pub(super) fn new(options: SqliteConnectOptions) -> Self {
        Self(Arc::new(Shared {
            options,
            connections: Default::default(),
            idle: Lock::new((0..READERS).collect()),
            places: Arc::new(Semaphore::new(READERS)),
        }))
    }

    /// Waits for a connection.
    pub(super) async fn take(&self) -> Result<Reader, sqlx::Error> {
        let closed = || sqlx::Error::PoolClosed;
        let place = Arc::clone(&self.0.places).acquire_owned().await.map_err(|_| closed())?;
        let number = self.0.idle().pop().ok_or_else(closed)?;
        let turn = Turn { number, readers: Arc::clone(&self.0), _place: place };
        let connection = self.0.connections.get(number).ok_or_else(closed)?;
        let mut connection = Arc::clone(connection).lock_owned().await;
        if connection.is_none() {
            *connection = Some(self.0.options.connect().await?);
        }
        let connection = OwnedMutexGuard::try_map(connection, Option::as_mut).map_err(|_| closed())?;
        Ok(Reader { connection, _turn: turn })
    }

    /// Closes them, once nobody uses them any more.
    pub(super) async fn close(&self) {
        self.0.places.close();
        for connection in &self.0.connections {
            if let Some(connection) = connection.lock().await.take() {
                // Nothing of a reader can be lost.
                let _ = connection.close().await;
            }
        }
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<usize>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Reader {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.readers.idle().push(self.number);
    }
}
