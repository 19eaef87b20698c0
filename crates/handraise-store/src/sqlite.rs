//! What is particular to SQLite: files and their modes, the one writer, and what its errors mean.

use std::{
    fs::{DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    Sqlite as Driver, SqlitePool, Transaction,
    migrate::MigrateError,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{
    error::{Failure, Fault, StoreError},
    schema,
};

/// The database's name within the data directory.
pub const DATABASE_FILE: &str = "handraise.db";

const READERS: u32 = 4;
/// How long a statement waits for another program that has the file locked, such as a backup.
const BUSY: Duration = Duration::from_secs(5);

/// Pages of the log at which the writer itself moves them into the database file, which costs it a few syncs. Far
/// above what the sweep leaves behind, so that no answer waits for that.
const CHECKPOINT_PAGES: &str = "16384";

/// A SQLite file: one connection that writes, a few that read what it committed.
#[derive(Debug, Clone)]
pub struct Sqlite {
    path: PathBuf,
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Sqlite {
    pub(crate) async fn open(data_dir: &Path) -> Result<Self, StoreError> {
        secure_directory(data_dir)?;
        let path = data_dir.join(DATABASE_FILE);
        let file = |source: io::Error| StoreError::Database {
            path: path.clone(),
            fault: Fault::Denied,
            source: source.into(),
        };
        // SQLite gives its log and shared memory the mode of the database file.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(file)?;
        if made.metadata().map_err(file)?.mode() & 0o077 != 0 {
            made.set_permissions(Permissions::from_mode(0o600)).map_err(file)?;
        }
        drop(made);

        let options = SqliteConnectOptions::new()
            .filename(&path)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("cache_size", "-8192")
            .pragma("temp_store", "MEMORY")
            .pragma("journal_size_limit", "67108864")
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            // A page of a list goes from SQLite's thread to ours in one piece.
            .row_buffer_size(512);
        let pool = SqlitePoolOptions::new()
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(Duration::from_secs(30));
        let writer = pool.clone().max_connections(1).connect_lazy_with(options.clone());
        let readers = pool.max_connections(READERS).connect_lazy_with(options.pragma("query_only", "ON"));
        let database = Self { path, writer, readers };
        database.migrate().await?;
        Ok(database)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        schema::migrator().run(&self.writer).await.map_err(|error| match error {
            MigrateError::VersionMissing(found) | MigrateError::VersionTooNew(found, _) => {
                StoreError::Newer { path: self.path.clone(), found, known: schema::LATEST }
            }
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => {
                self.name(Failure::Driver(source))
            }
            other => {
                StoreError::Database { path: self.path.clone(), fault: Fault::Damaged, source: other.into() }
            }
        })
    }

    /// Begins the one write transaction; others wait for their turn here, not in SQLite's busy loop.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Driver>, sqlx::Error> {
        self.writer.begin_with("BEGIN IMMEDIATE").await
    }

    /// The one writer, for a statement that is a transaction of its own.
    pub(crate) const fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    pub(crate) const fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// Moves the write-ahead log into the database file, beside the writer and without holding it up.
    pub(crate) async fn checkpoint(&self) -> Result<(), sqlx::Error> {
        sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&self.readers).await?;
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Says which file failed, and in what way.
    pub(crate) fn name(&self, failure: Failure) -> StoreError {
        let path = self.path.clone();
        match failure {
            Failure::Row { table, what } => StoreError::Inconsistent { path, table, what },
            Failure::Driver(error) => {
                let fault = fault(&error);
                StoreError::Database { path, fault, source: error.into() }
            }
        }
    }
}

/// The primary result codes of SQLite that an operator can do something about.
fn fault(error: &sqlx::Error) -> Fault {
    let code = match error {
        sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<u32>().ok()),
        _ => None,
    };
    match code.map(|code| code & 0xff) {
        Some(13) => Fault::Full,
        Some(5 | 6) => Fault::Locked,
        Some(11 | 26) => Fault::Damaged,
        Some(3 | 8 | 14 | 23) => Fault::Denied,
        _ => Fault::Other,
    }
}

/// Makes the data directory with mode 0700, or sees to it that it has that mode.
///
/// A directory that somebody else filled is not touched: `--data-dir /tmp` must not close `/tmp`.
pub(crate) fn secure_directory(data_dir: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Directory { path: data_dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(failed)?;
    let metadata = data_dir.metadata().map_err(failed)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o700 == mode {
        return Ok(());
    }
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let empty = data_dir.read_dir().map_err(failed)?.next().is_none();
    if ours && (empty || data_dir.join(DATABASE_FILE).exists()) {
        return std::fs::set_permissions(data_dir, Permissions::from_mode(0o700)).map_err(failed);
    }
    Err(StoreError::OpenDirectory { path: data_dir.to_owned(), mode })
}
