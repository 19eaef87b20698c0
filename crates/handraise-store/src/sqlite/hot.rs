//! Statements on the connection that writes, on the thread of whoever calls.

use std::{path::Path, time::Duration};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use crate::statement::{Outcome, Part, Row, Statement, Value};

/// Statements that are kept prepared.
const PREPARED: usize = 64;

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Opens the connection, with these settings. It waits for nobody.
pub(super) fn open(path: &Path, pragmas: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    connection.execute_batch(pragmas)?;
    connection.busy_timeout(Duration::ZERO)?;
    Ok(connection)
}

/// Begins a transaction that writes, and waits so long for another program that has the file locked.
pub(super) fn begin(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    if patience.is_zero() {
        return simply(connection, BEGIN);
    }
    connection.busy_timeout(patience)?;
    let begun = simply(connection, BEGIN);
    connection.busy_timeout(Duration::ZERO)?;
    begun
}

pub(super) fn commit(connection: &Connection) -> rusqlite::Result<()> {
    simply(connection, COMMIT)
}

/// Ends what a failure has left open. SQLite may have done it itself.
pub(super) fn end(connection: &Connection) {
    if !connection.is_autocommit() {
        let _ = simply(connection, ROLLBACK);
    }
}

fn simply(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(drop)
}

/// Whether another program has the database locked.
pub(super) fn is_locked(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Runs the statements of one caller, one after the other.
pub(super) fn run(connection: &Connection, statement: &Statement) -> rusqlite::Result<Outcome> {
    let mut parts = Vec::with_capacity(statement.sql.len());
    for sql in statement.sql {
        let mut prepared = connection.prepare_cached(sql)?;
        for place in 1..=prepared.parameter_count() {
            // The number in its name says which value it stands for; its place is that of its first mention.
            let name = prepared.parameter_name(place).and_then(|name| name.get(1..));
            let number = name.and_then(|number| number.parse::<usize>().ok());
            let value = number.and_then(|number| statement.values.get(number.checked_sub(1)?));
            let value = value.ok_or(rusqlite::Error::InvalidParameterCount(statement.values.len(), place))?;
            prepared.raw_bind_parameter(place, value)?;
        }
        let columns = prepared.column_count();
        let mut yielded = Vec::new();
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|at| row.get_ref(at).and_then(owned));
            yielded.push(Row::new(values.collect::<rusqlite::Result<_>>()?));
        }
        drop(rows);
        parts.push(Part { changed: connection.changes(), rows: yielded });
    }
    Ok(Outcome::new(parts))
}

fn owned(value: ValueRef<'_>) -> rusqlite::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        value => Value::Text(value.as_str()?.to_owned()),
    })
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}
