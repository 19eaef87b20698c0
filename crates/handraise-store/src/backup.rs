//! A copy of the database, made while it is in use.
//!
//! SQLite writes it in one statement, from one moment's view: what is committed meanwhile is not in it, nobody who writes
//! waits, and what was deleted is not carried along in free pages.

use std::{fs::File, path::Path};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _};

use crate::{
    error::{Failure, Fault, StoreError},
    schema,
    sqlite::{BUSY, DATABASE_FILE, fault, name},
};

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Its size.
    pub bytes: u64,
    /// The version of its schema.
    pub schema: i64,
    /// Whether that is newer than what is known here, so that only a newer handraise opens it.
    pub is_newer: bool,
    /// Asks, open and settled.
    pub asks: i64,
    /// Sessions of agents.
    pub sessions: i64,
    /// Tokens, as hashes, and page sessions.
    pub tokens: i64,
}

/// Writes a copy of the database in `data_dir` into `copy`, an empty file, and reads all of it again. `None` when there is no
/// database. It takes as long as reading and writing it does: not for a thread of the runtime.
///
/// # Errors
/// When the database cannot be read, the copy cannot be written, or is not whole. Then nothing of it is to be used.
pub fn back_up(data_dir: &Path, copy: &Path) -> Result<Option<Contents>, StoreError> {
    let path = data_dir.join(DATABASE_FILE);
    // What cannot be looked at is not absent: opening it says why.
    if matches!(path.try_exists(), Ok(false)) {
        return Ok(None);
    }
    let of = |path: &Path| {
        let path = path.to_owned();
        move |error: rusqlite::Error| name(&path, Failure::Written(error))
    };
    let unwritable = |fault, source: Box<dyn std::error::Error + Send + Sync>| StoreError::Database {
        path: copy.to_owned(),
        fault,
        source,
    };
    let Some(target) = copy.to_str() else {
        return Err(unwritable(Fault::Denied, "its path is not UTF-8".into()));
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(&path, flags).map_err(of(&path))?;
    source.busy_timeout(BUSY).map_err(of(&path))?;
    // Of what is no database of ours, no copy is made that would then be at fault.
    contents(&source).map_err(|error| match error.sqlite_error().map(|error| error.extended_code) {
        // A table that every database of ours has is not there.
        Some(1) => StoreError::Database { path: path.clone(), fault: Fault::Damaged, source: error.into() },
        _ => of(&path)(error),
    })?;
    source.execute("VACUUM INTO ?1", [target]).map_err(|error| {
        // Where there is no room, or no right to write, it is the copy's place; the database itself is only read.
        match fault(error.sqlite_error().map(|error| error.extended_code)) {
            fault @ (Fault::Full | Fault::Denied) => unwritable(fault, error.into()),
            _ => name(&path, Failure::Written(error)),
        }
    })?;
    drop(source);
    let contents = verify(copy).map_err(of(copy))?;
    let contents = contents.map_err(|what| unwritable(Fault::Damaged, what.into()))?;
    File::open(copy)
        .and_then(|file| {
            file.sync_all()?;
            file.metadata()
        })
        .map(|metadata| Some(Contents { bytes: metadata.len(), ..contents }))
        .map_err(|error| unwritable(Fault::Disk, error.into()))
}

/// Reads a copy from end to end, its indexes and what rows refer to; says what is wrong with it.
fn verify(copy: &Path) -> rusqlite::Result<Result<Contents, String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = Connection::open_with_flags(copy, flags)?;
    let found: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Ok(Err(found));
    }
    let stray: Option<String> =
        copy.query_row("PRAGMA foreign_key_check", [], |row| row.get(0)).optional()?;
    if let Some(table) = stray {
        return Ok(Err(format!("a row of {table} refers to one that is not there")));
    }
    contents(&copy).map(Ok)
}

/// What a database of ours holds; its size is not looked at.
fn contents(database: &Connection) -> rusqlite::Result<Contents> {
    let count = |sql| database.query_row(sql, [], |row| row.get(0));
    let schema = count("SELECT max(version) FROM _sqlx_migrations")?;
    Ok(Contents {
        bytes: 0,
        schema,
        is_newer: schema > schema::LATEST,
        asks: count("SELECT count(*) FROM asks")?,
        sessions: count("SELECT count(*) FROM sessions")?,
        tokens: count("SELECT count(*) FROM tokens")?,
    })
}
