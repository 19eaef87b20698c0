//! Why the database could not be used, without naming its driver.

use std::{io, path::PathBuf};

/// What to do about a data directory that cannot be used.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            "there is a file where a directory is needed; name another with --data-dir"
        }
        io::ErrorKind::PermissionDenied => "let this user into it, or name another with --data-dir",
        _ => "name another with --data-dir",
    }
}

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The data directory could not be made or looked at.
    #[error("cannot use the data directory {}: {source}; {}", path.display(), remedy(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users can get into the data directory.
    #[error(
        "the data directory {} is open to other users (mode {mode:o}) and holds other files; \
         run `chmod 700 {}` or choose another --data-dir", path.display(), path.display()
    )]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The database was written by a newer version.
    #[error(
        "{} has schema version {found}, this handraise knows {known} at most; run the newer handraise again",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest version known here.
        known: i64,
    },
    /// The database itself failed.
    #[error("the database {} {fault}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// In what way.
        fault: Fault,
        /// What the driver says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row holds what no version of handraise writes.
    #[error("the database {} holds a {table} row that makes no sense: {what}", path.display())]
    Inconsistent {
        /// The file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// What is wrong with it.
        what: String,
    },
}

/// How a database failed: what an operator can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No space left.
    #[error("cannot grow: its disk is full; free some space there")]
    Full,
    /// Somebody else keeps it locked.
    #[error("is locked by another program; close it")]
    Locked,
    /// It is no database, or damaged.
    #[error(
        "is damaged or no handraise database; move it away, with its -wal and -shm files, and put a copy of yours there or start with an empty one"
    )]
    Damaged,
    /// It may not be read or written.
    #[error(
        "cannot be read or written; check its owner and mode, that its file system is not read-only, and how many files this process may open (ulimit -n)"
    )]
    Denied,
    /// Its disk failed.
    #[error("cannot be read or written: its disk fails; the system's log says more")]
    Disk,
    /// Its connections are closed, which only the end of this process does, or the loss of a thread of it.
    #[error("is closed in this process; start it again")]
    Closed,
    /// Anything else.
    #[error("failed")]
    Other,
}

/// A failure inside a statement's body, before the database's name is added.
#[derive(Debug)]
pub(crate) enum Failure {
    Driver(sqlx::Error),
    /// Of the connection that writes.
    Written(rusqlite::Error),
    Row {
        table: &'static str,
        what: String,
    },
}

impl Failure {
    pub(crate) fn row(table: &'static str, what: impl std::fmt::Display) -> Self {
        Self::Row { table, what: format!("{what}") }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Written(error)
    }
}
