//! Transcripts of sessions.

use handraise_api::session::Message;

use crate::{
    Now, Store, StoreError,
    holdings::{self, Bounds},
    on, rows,
    statement::{Sql, Statement},
};

/// Bytes of one session's transcript; beyond, the oldest entries go (acp.md, "Agent life").
pub(crate) const TRANSCRIPT_BYTES: i64 = 16 * 1024 * 1024;

/// What appending to a transcript came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Appended {
    /// It is the newest entry now, with the inbox's own number.
    New(Box<Message>),
    /// The inbox had it.
    Known,
    /// No such session, or another instance's (S9).
    NotOwner,
    /// Its holder has as much in here as it may have (S37).
    Full,
}

/// Numbers the entry and counts its bytes; no row when the session is not ours, the entry is known, or the token has as
/// much as it may have.
macro_rules! number {
    () => {
        "UPDATE sessions SET last_seq = last_seq + 1, bytes = bytes + $3, \
    last_holder_seq = CASE WHEN $4 < 0 THEN last_holder_seq ELSE $4 END, updated_at = $5 \
    WHERE id = $1 AND instance = $2 AND ($4 < 0 OR last_holder_seq < $4) \
    AND COALESCE((SELECT h.bytes FROM holdings h WHERE h.token = sessions.token), 0) + $3 <= $6 \
    RETURNING last_seq, bytes"
    };
}
pub(crate) const NUMBER: &str = number!();
/// Numbers the entry and puts it in.
const NUMBER_AND_APPEND: Sql = &[
    number!(),
    "INSERT INTO messages (session_id, seq, bytes, body) \
     SELECT id, last_seq, $3, $7 FROM sessions WHERE id = $1 AND changes() = 1",
];
pub(crate) const APPEND: &str = "INSERT INTO messages (session_id, seq, bytes, body) VALUES ($1, $2, $3, $4)";
pub(crate) const OLDEST: &str =
    "SELECT seq, bytes FROM messages WHERE session_id = $1 ORDER BY seq LIMIT 256";
pub(crate) const DROP: Sql = &[
    "DELETE FROM messages WHERE session_id = $1 AND seq <= $2",
    "UPDATE sessions SET bytes = bytes - $3 WHERE id = $1",
];
const OWNER: &str = "SELECT instance, last_holder_seq FROM sessions WHERE id = $1";
const MESSAGES: &str =
    "SELECT seq, body FROM messages WHERE session_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// Appends an entry within a transaction; yields it with its number, or `None` when the session is not the
/// instance's or has an entry of that or a later holder number.
macro_rules! append_in {
    ($tx:expr, $now:expr, $instance:expr, $holder_seq:expr, $entry:expr, $most:expr) => {{
        let mut entry: handraise_api::session::Message = $entry;
        let holder_seq: Option<u64> = $holder_seq;
        let body = $crate::rows::text("messages", &entry)?;
        let bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let numbering = $crate::statement::Statement::new(&[$crate::transcripts::NUMBER])
            .bind(&entry.session_id)
            .bind($instance)
            .bind(bytes)
            .bind(holder_seq.map_or(-1, |seq| i64::try_from(seq).unwrap_or(i64::MAX)))
            .bind($now.wall_millis())
            .bind($most);
        match $tx.run(numbering).await?.row::<(i64, i64)>(0)? {
            None => None,
            Some((seq, held)) => {
                let appending = $crate::statement::Statement::new(&[$crate::transcripts::APPEND])
                    .bind(&entry.session_id)
                    .bind(seq)
                    .bind(bytes)
                    .bind(body);
                $tx.run(appending).await?;
                if held > $crate::transcripts::TRANSCRIPT_BYTES {
                    $crate::transcripts::trim_in!($tx, &entry.session_id, held);
                }
                entry.seq = u64::try_from(seq).unwrap_or(0);
                Some(entry)
            }
        }
    }};
}
pub(crate) use append_in;

/// Drops the oldest entries of a transcript that has become too large, down to 15/16 of what it may have.
macro_rules! trim_in {
    ($tx:expr, $session:expr, $held:expr) => {{
        let mut held: i64 = $held;
        let keep = $crate::transcripts::TRANSCRIPT_BYTES / 16 * 15;
        while held > keep {
            let oldest = $crate::statement::Statement::new(&[$crate::transcripts::OLDEST]).bind($session);
            let oldest: Vec<(i64, i64)> = $tx.run(oldest).await?.rows(0)?;
            let (mut upto, mut dropped) = (0, 0);
            for (seq, bytes) in oldest {
                if held - dropped <= keep {
                    break;
                }
                (upto, dropped) = (seq, dropped + bytes);
            }
            if dropped == 0 {
                break;
            }
            let dropping = $crate::statement::Statement::new($crate::transcripts::DROP);
            $tx.run(dropping.bind($session).bind(upto).bind(dropped)).await?;
            held -= dropped;
        }
    }};
}
pub(crate) use trim_in;

impl Store {
    /// Appends a holder's transcript entry. The inbox numbers entries itself, because it adds some of its own; the
    /// holder's number only tells whether the entry is known.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn append_message(
        &self,
        now: Now,
        instance: &str,
        entry: &Message,
        bounds: &Bounds,
    ) -> Result<Appended, StoreError> {
        on!(self, db => {
            let body = rows::text("messages", entry)?;
            let appending = Statement::new(NUMBER_AND_APPEND)
                .bind(&entry.session_id)
                .bind(instance)
                .bind(i64::try_from(body.len()).unwrap_or(i64::MAX))
                .bind(i64::try_from(entry.seq).unwrap_or(i64::MAX))
                .bind(now.wall_millis())
                .bind(holdings::bytes(bounds.token_bytes))
                .bind(body);
            if let Some((seq, held)) = db.write(appending).await?.row::<(i64, i64)>(0)? {
                self.trim_transcript(&entry.session_id, held).await;
                let seq = u64::try_from(seq).unwrap_or(0);
                return Ok(Appended::New(Box::new(Message { seq, ..entry.clone() })));
            }
            let owner: Option<(Option<String>, i64)> = sqlx::query_as(OWNER)
                .bind(&entry.session_id)
                .fetch_optional(&mut *db.reader().await?)
                .await?;
            Ok(match owner {
                Some((Some(owner), last)) if owner == instance => {
                    let is_known = last >= i64::try_from(entry.seq).unwrap_or(i64::MAX);
                    if is_known { Appended::Known } else { Appended::Full }
                }
                _ => Appended::NotOwner,
            })
        })
    }

    /// Drops the oldest entries of a transcript that has become too large. What made it so is committed, whatever comes of
    /// this: the next entry tries again.
    pub(crate) async fn trim_transcript(&self, session: &str, held: i64) {
        if held <= TRANSCRIPT_BYTES {
            return;
        }
        let trimmed: Result<(), StoreError> = on!(self, db => {
            let mut tx = db.begin().await?;
            trim_in!(tx, session, held);
            tx.commit().await?;
            Ok(())
        });
        if let Err(error) = trimmed {
            tracing::error!(%error, session.id = session, "a transcript is longer than it may be");
        }
    }

    /// Entries of a transcript after number `after`, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn messages(&self, session: &str, after: u64, limit: u32) -> Result<Vec<Message>, StoreError> {
        on!(self, db => {
            let rows: Vec<(i64, String)> = sqlx::query_as(MESSAGES)
                .bind(session)
                .bind(i64::try_from(after).unwrap_or(i64::MAX))
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            rows.into_iter()
                .map(|(seq, body)| {
                    let mut entry: Message = rows::json("messages", &body)?;
                    entry.seq = u64::try_from(seq).unwrap_or(0);
                    Ok(entry)
                })
                .collect()
        })
    }
}
