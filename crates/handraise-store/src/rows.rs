//! Rows as structs, and the words and times in them.

use std::str::FromStr;

use handraise_api::ask::Ask;
use handraise_api::ask::{Answer, Origin, Settlement};
use handraise_api::words::{AskState, HolderKind};
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};

use crate::error::Failure;

/// Declares a row: a struct that any database's row can be read into, column by column, by name.
macro_rules! row {
    ($(#[$meta:meta])* $name:ident { $($column:ident: $ty:ty,)+ }) => {
        $(#[$meta])*
        pub(crate) struct $name { $(pub(crate) $column: $ty,)+ }

        impl<'r, R> sqlx::FromRow<'r, R> for $name
        where
            R: sqlx::Row,
            &'static str: sqlx::ColumnIndex<R>,
            $($ty: sqlx::Type<R::Database> + sqlx::Decode<'r, R::Database>,)+
        {
            fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
                Ok(Self { $($column: row.try_get(stringify!($column))?,)+ })
            }
        }

        impl $crate::statement::FromColumns for $name {
            #[cfg(test)]
            const COLUMNS: &[&'static str] = &[$(stringify!($column)),+];

            fn from_columns(
                columns: &mut $crate::statement::Columns,
            ) -> Result<Self, $crate::error::Failure> {
                Ok(Self { $($column: columns.take(stringify!($column))?,)+ })
            }
        }
    };
}
pub(crate) use row;

/// The columns of [`AskRow`], from `asks a` left-joined with the winning `submissions s`.
macro_rules! ask_columns {
    () => {
        "a.id, a.instance, a.state, a.digest, a.content, a.client, a.server, a.holder_kind, a.holder_token, \
         a.holder_owner, a.opened_at, a.deadline, a.due, a.parked_until, a.settled_at, a.outcome, a.provenance, a.rail, a.wire, \
         a.settled_by, COALESCE(a.reason, NULLIF(s.reject_reason, '')) AS reason, a.submission_id, s.answers, \
         EXISTS (SELECT 1 FROM submissions u WHERE u.instance = a.instance AND u.ask = a.id \
         AND u.verdict IS NULL) AS unresolved"
    };
}
pub(crate) use ask_columns;

row! {
    /// One ask.
    AskRow {
        id: String,
        instance: String,
        state: String,
        digest: String,
        content: String,
        client: Option<String>,
        server: Option<String>,
        holder_kind: String,
        holder_token: String,
        holder_owner: Option<String>,
        opened_at: i64,
        deadline: Option<i64>,
        due: i64,
        parked_until: Option<i64>,
        settled_at: Option<i64>,
        outcome: Option<String>,
        provenance: Option<String>,
        rail: Option<String>,
        wire: Option<String>,
        settled_by: Option<String>,
        reason: Option<String>,
        submission_id: Option<String>,
        answers: Option<String>,
        unresolved: bool,
    }
}

/// An ask and the instance that it belongs to. `holder_connected` is for the caller to fill in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnedAsk {
    pub(crate) ask: Ask,
    pub(crate) instance: String,
}

impl TryFrom<AskRow> for OwnedAsk {
    type Error = Failure;

    fn try_from(row: AskRow) -> Result<Self, Failure> {
        let state = match row.state.as_str() {
            "open" if row.unresolved => AskState::Sent,
            "open" => AskState::Open,
            "settled" => AskState::Settled,
            other => return Err(Failure::row("asks", format!("'{other}' is no state"))),
        };
        let settlement = match (state, row.outcome, row.provenance, row.rail, row.settled_at) {
            (AskState::Open | AskState::Sent, None, None, None, None) => None,
            (AskState::Settled, Some(outcome), Some(provenance), Some(rail), Some(at)) => Some(Settlement {
                outcome: word("asks", &outcome)?,
                provenance: word("asks", &provenance)?,
                rail: word("asks", &rail)?,
                wire: row.wire.as_deref().map(|wire| word("asks", wire)).transpose()?,
                by: row.settled_by,
                at: time("asks", at)?,
                reason: row.reason,
                answers: row
                    .answers
                    .as_deref()
                    .map_or_else(|| Ok(Vec::new()), |answers| json::<Vec<Answer>>("submissions", answers))?,
                submission_id: row.submission_id,
            }),
            _ => return Err(Failure::row("asks", format!("{}: state and settlement disagree", row.id))),
        };
        Ok(Self {
            instance: row.instance,
            ask: Ask {
                state,
                digest: row.digest,
                content: json("asks", &row.content)?,
                origin: Origin {
                    holder: holder_kind(&row.holder_kind)?,
                    holder_token: row.holder_token,
                    owner: row.holder_owner,
                    client: row.client.as_deref().map(|client| json("asks", client)).transpose()?,
                    server: row.server,
                },
                opened_at: time("asks", row.opened_at)?,
                deadline: row.deadline.map(|at| time("asks", at)).transpose()?,
                parked_until: row.parked_until.map(|at| time("asks", at)).transpose()?,
                holder_connected: false,
                settlement,
                replayed: false,
                id: row.id,
            },
        })
    }
}

/// Reads a word of a closed vocabulary.
pub(crate) fn word<T: FromStr>(table: &'static str, word: &str) -> Result<T, Failure> {
    word.parse().map_err(|_| Failure::row(table, format!("'{word}' is not one of its words")))
}

/// Reads a time in milliseconds.
pub(crate) fn time(table: &'static str, millis: i64) -> Result<Timestamp, Failure> {
    Timestamp::from_millisecond(millis).map_err(|error| Failure::row(table, error))
}

/// Reads a JSON column.
pub(crate) fn json<T: DeserializeOwned>(table: &'static str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::row(table, error))
}

/// Writes a JSON column.
pub(crate) fn text<T: Serialize + ?Sized>(table: &'static str, value: &T) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::row(table, error))
}

pub(crate) const fn kind_word(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Agent => "agent",
        HolderKind::Gateway => "gateway",
        HolderKind::Ask => "ask",
        HolderKind::Tool => "tool",
        HolderKind::Hook => "hook",
    }
}

pub(crate) fn holder_kind(word: &str) -> Result<HolderKind, Failure> {
    [HolderKind::Agent, HolderKind::Gateway, HolderKind::Ask, HolderKind::Tool, HolderKind::Hook]
        .into_iter()
        .find(|kind| kind_word(*kind) == word)
        .ok_or_else(|| Failure::row("holders", format!("'{word}' is no kind of holder")))
}

#[cfg(test)]
mod tests {
    use handraise_core::Moment;

    use super::*;
    use crate::{DATABASE_FILE, Now, Store, asks, holdings, lists, settle, statement::FromColumns as _};

    /// The writer takes columns by their places (`Columns::take`): their names are looked at here.
    #[tokio::test]
    async fn what_the_writer_reads_has_its_columns_in_the_order_of_the_row() {
        let dir = tempfile::tempdir().unwrap();
        let now = Now { wall: Timestamp::UNIX_EPOCH, boot: Moment::from_millis(0) };
        Store::open(dir.path(), "boot", now).await.unwrap();
        let connection = rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
        for (sql, columns) in [
            (lists::BY_ID, AskRow::COLUMNS),
            (settle::SETTLE_BY[1], AskRow::COLUMNS),
            (asks::FIND, asks::Known::COLUMNS),
            (holdings::COUNTS, holdings::Counts::COLUMNS),
        ] {
            assert_eq!(connection.prepare(sql).unwrap().column_names(), columns, "{sql}");
        }
    }
}
