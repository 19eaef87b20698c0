//! What is particular to SQLite: files and their modes, its connections, and what its errors mean.

mod desk;
mod hot;
mod readers;
mod writer;

use std::{
    fs::{DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, Connection as _,
    migrate::MigrateError,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use self::{
    readers::{Reader, Readers},
    writer::{Transaction, Writer},
};

use crate::{
    error::{Failure, Fault, StoreError},
    schema,
    statement::{Outcome, Statement},
    trouble::Trouble,
};

/// The database's name within the data directory.
pub const DATABASE_FILE: &str = "handraise.db";

/// How long a statement waits for another program that has the file locked, such as a backup.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Pages of the log that are worth being moved into the database file, beside the writer: of a page that changed several
/// times the last state is moved alone, and a move takes the disk's time whatever its size.
const WORTH_MOVING: i64 = 6_144;
/// Pages of the log (48 MiB) at which it begins anew also when there is always somebody who writes: they wait then, for
/// as long as the disk takes to sync what came since the last move. Rarely longer than the file may stay, because to
/// shorten it takes longer than all else.
const LONGEST: i64 = 12_288;
/// Pages of the log (192 MiB) at which the writer moves them itself, should nobody else: that bounds the log.
const CHECKPOINT_PAGES: &str = "49152";

/// A SQLite file: one connection that writes, a few that read what it committed.
#[derive(Debug, Clone)]
pub struct Sqlite {
    path: PathBuf,
    writer: Writer,
    readers: Readers,
    /// See [`Store::trouble`](crate::Store::trouble).
    pub(crate) trouble: Trouble,
}

impl Sqlite {
    pub(crate) async fn open(data_dir: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
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

        // Below zero: KiB. A list of a single page would be none.
        let cache = format!("-{}", (cache_bytes / 1024).max(1));
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .foreign_keys(true)
            .busy_timeout(BUSY)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .pragma("cache_size", cache.clone())
            .pragma("temp_store", "MEMORY")
            // A page of a list goes from SQLite's thread to ours in one piece.
            .row_buffer_size(512);
        let named = |error| name(&path, Failure::Driver(error));
        let mut migrating = options.connect().await.map_err(named)?;
        schema::migrator().run_direct(None, &mut migrating, false).await.map_err(|error| match error {
            MigrateError::VersionMissing(found) | MigrateError::VersionTooNew(found, _) => {
                StoreError::Newer { path: path.clone(), found, known: schema::LATEST }
            }
            MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => named(source),
            other => StoreError::Database { path: path.clone(), fault: Fault::Damaged, source: other.into() },
        })?;
        let pragmas = format!(
            "PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL; PRAGMA cache_size = {cache}; \
             PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864; \
             PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"
        );
        let writer = hot::open(&path, &pragmas).map_err(|error| name(&path, Failure::Written(error)))?;
        migrating.close().await.map_err(named)?;
        let writer = Writer::new(writer, BUSY).map_err(|error| named(error.into()))?;
        let readers = Readers::new(options.pragma("query_only", "ON"));
        Ok(Self { path, writer, readers, trouble: Trouble::default() })
    }

    /// Begins a write transaction; others wait for their turn here, not in SQLite's busy loop.
    pub(crate) async fn begin(&self) -> Result<Transaction, Failure> {
        self.writer.begin().await
    }

    /// Runs statements that are a transaction of their own.
    pub(crate) async fn write(&self, statement: Statement) -> Result<Outcome, Failure> {
        self.writer.write(statement).await
    }

    /// Like [`write`](Self::write), for several that come together. What came of each, in their order.
    pub(crate) async fn write_all(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<Result<Outcome, Failure>>, Failure> {
        self.writer.write_all(statements).await
    }

    /// Like [`write`](Self::write), for what takes long.
    pub(crate) async fn write_aside(&self, statement: Statement) -> Result<Outcome, Failure> {
        self.writer.write_aside(statement).await
    }

    /// A connection to read with.
    pub(crate) async fn reader(&self) -> Result<Reader, sqlx::Error> {
        self.readers.take().await
    }

    /// Moves the write-ahead log into the database file when it has become long, beside the writer. The writer is held up
    /// only where that costs nobody anything, or the log has become too long.
    pub(crate) async fn checkpoint(&self) -> Result<(), Failure> {
        let mut reader = self.reader().await?;
        let mut log = Log::after(NOTHING, &mut reader).await?;
        if log.logged - log.moved >= WORTH_MOVING {
            Log::after(MOVE, &mut reader).await?;
            // A move knows nothing of what came meanwhile.
            log = Log::after(NOTHING, &mut reader).await?;
            if log.logged >= LONGEST {
                // So that as little as possible is left for the writer.
                Log::after(MOVE, &mut reader).await?;
            }
            drop(reader);
            if log.logged == log.moved || log.logged >= LONGEST {
                self.writer.fold().await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Says which file failed, and in what way.
    pub(crate) fn name(&self, failure: Failure) -> StoreError {
        let error = name(&self.path, failure);
        self.trouble.note(&error);
        error
    }
}

const NOTHING: &str = "PRAGMA wal_checkpoint(NOOP)";
const MOVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// How the write-ahead log stands, in pages.
#[derive(Debug, Clone, Copy)]
struct Log {
    /// How many it has.
    logged: i64,
    /// How many of them are in the database file.
    moved: i64,
}

impl Log {
    /// After that was done.
    async fn after(what: &'static str, reader: &mut Reader) -> Result<Self, sqlx::Error> {
        let (_, logged, moved): (i64, i64, i64) = sqlx::query_as(what).fetch_one(&mut **reader).await?;
        Ok(Self { logged, moved })
    }
}

pub(crate) fn name(path: &Path, failure: Failure) -> StoreError {
    let path = path.to_owned();
    match failure {
        Failure::Row { table, what } => StoreError::Inconsistent { path, table, what },
        Failure::Driver(error @ sqlx::Error::PoolClosed) => {
            StoreError::Database { path, fault: Fault::Closed, source: error.into() }
        }
        Failure::Driver(error) => {
            let code = match &error {
                sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<i32>().ok()),
                _ => None,
            };
            StoreError::Database { path, fault: fault(code), source: error.into() }
        }
        Failure::Written(error) => {
            let code = error.sqlite_error().map(|error| error.extended_code);
            StoreError::Database { path, fault: fault(code), source: error.into() }
        }
    }
}

/// The primary result codes of SQLite that an operator can do something about.
pub(crate) fn fault(code: Option<i32>) -> Fault {
    match code.map(|code| code & 0xff) {
        Some(13) => Fault::Full,
        Some(5 | 6) => Fault::Locked,
        Some(10) => Fault::Disk,
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
