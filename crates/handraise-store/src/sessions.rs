//! Sessions and their transcripts.

use handraise_api::{
    frame::SessionUpdated,
    session::{Message, PendingAction, Session, SessionState},
};

use crate::{
    Now, Store, StoreError,
    error::Failure,
    holdings::{self, Bounds},
    on, rows,
    statement::{Sql, Statement},
};

/// Bytes of one session's transcript; beyond, the oldest entries go (acp.md, "Agent life").
pub(crate) const TRANSCRIPT_BYTES: i64 = 16 * 1024 * 1024;

/// A session that the inbox starts itself.
#[derive(Debug, Clone, Copy)]
pub struct NewSession<'a> {
    /// Minted by the inbox.
    pub id: &'a str,
    /// The agent's configured id.
    pub agent: &'a str,
    /// Where it runs.
    pub cwd: Option<&'a str>,
    /// The name of the token that its holder will come with.
    pub holder_token: &'a str,
}

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

macro_rules! select_sessions {
    ($($rest:expr),+) => {
        concat!(
            "SELECT e.id, e.instance, e.agent, e.title, e.cwd, e.state, e.stop_reason, e.background, \
             e.holder_token, e.started_at, e.updated_at, e.waiting FROM sessions e ",
            $($rest),+
        )
    };
}

const BY_ID: &str = select_sessions!("WHERE e.id = $1");
pub(crate) const ALIVE: &str =
    select_sessions!("WHERE e.state <> 'ended' ORDER BY e.started_at DESC, e.id DESC LIMIT $1");
pub(crate) const LATEST: &str = select_sessions!("ORDER BY e.started_at DESC, e.id DESC LIMIT $1");
const OF_INSTANCE: &str = select_sessions!("WHERE e.instance = $1");

const INSERT: &str = "INSERT INTO sessions (id, agent, cwd, state, holder_token, started_at, updated_at) \
    VALUES ($1, $2, $3, 'idle', $4, $5, $5)";
/// Whether the session is there, or its instance's token may have one more (S37).
macro_rules! there_or_fits {
    ($most:expr) => {
        concat!(
            " FROM instances i JOIN holdings h ON h.token = i.token WHERE i.id = $2 \
             AND (h.sessions < ",
            $most,
            " OR EXISTS (SELECT 1 FROM sessions e WHERE e.id = $1)) "
        )
    };
}

/// Claims a session that nobody has, or that is ours. It changes no row when it is another instance's, or one too
/// many.
pub(crate) const CLAIM: &str = concat!(
    "INSERT INTO sessions (id, instance, agent, state, holder_token, started_at, updated_at, token) \
     SELECT $1, i.id, $3, 'running', $4, $5, $5, i.token",
    there_or_fits!("$6"),
    "ON CONFLICT (id) DO UPDATE SET instance = excluded.instance, updated_at = excluded.updated_at, \
     token = COALESCE(sessions.token, excluded.token) \
     WHERE sessions.instance IS NULL OR sessions.instance = excluded.instance"
);
const UPDATE: &str = concat!(
    "INSERT INTO sessions (id, instance, agent, title, cwd, state, stop_reason, background, \
     holder_token, started_at, updated_at, token) SELECT $1, i.id, $3, $4, $5, $6, $7, $11, $8, $9, $9, i.token",
    there_or_fits!("$10"),
    "ON CONFLICT (id) DO UPDATE SET instance = excluded.instance, agent = excluded.agent, \
     title = COALESCE(excluded.title, sessions.title), cwd = COALESCE(excluded.cwd, sessions.cwd), \
     state = excluded.state, stop_reason = excluded.stop_reason, \
     background = excluded.background, holder_token = excluded.holder_token, \
     updated_at = excluded.updated_at, token = COALESCE(sessions.token, excluded.token) \
     WHERE sessions.instance IS NULL OR sessions.instance = excluded.instance"
);
pub(crate) const EXISTS: &str = "SELECT COUNT(*) FROM sessions WHERE id = $1";
const END: &str = "UPDATE sessions SET state = 'ended', background = FALSE, updated_at = $2 \
    WHERE id = $1 AND state <> 'ended'";
const END_ORPHANED: &str = "UPDATE sessions SET state = 'ended', background = FALSE, updated_at = $2 \
    WHERE state <> 'ended' \
    AND instance IN (SELECT id FROM instances WHERE boot_lost IS NOT NULL AND boot_lost <= $1) RETURNING id";

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

rows::row! {
    SessionRow {
        id: String,
        instance: Option<String>,
        agent: String,
        title: Option<String>,
        cwd: Option<String>,
        state: String,
        stop_reason: Option<String>,
        background: bool,
        holder_token: String,
        started_at: i64,
        updated_at: i64,
        waiting: i64,
    }
}

impl TryFrom<SessionRow> for (Session, Option<String>) {
    type Error = Failure;

    fn try_from(row: SessionRow) -> Result<Self, Failure> {
        let session = Session {
            state: state(&row.state)?,
            pending_action: (row.waiting > 0).then_some(PendingAction::Clarification),
            waiting: u32::try_from(row.waiting).unwrap_or(u32::MAX),
            holder_connected: false,
            started_at: rows::time("sessions", row.started_at)?,
            updated_at: rows::time("sessions", row.updated_at)?,
            id: row.id,
            agent: row.agent,
            title: row.title,
            cwd: row.cwd,
            stop_reason: row.stop_reason,
            background: row.background,
            holder_token: row.holder_token,
        };
        Ok((session, row.instance))
    }
}

const fn state_word(state: SessionState) -> &'static str {
    match state {
        SessionState::Idle => "idle",
        SessionState::Running => "running",
        SessionState::Ended => "ended",
    }
}

fn state(word: &str) -> Result<SessionState, Failure> {
    [SessionState::Idle, SessionState::Running, SessionState::Ended]
        .into_iter()
        .find(|state| state_word(*state) == word)
        .ok_or_else(|| Failure::row("sessions", format!("'{word}' is no state")))
}

/// What a claim to a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// It is the instance's.
    Ours,
    /// It is another instance's (S9).
    NotOwner,
    /// The token has as many as it may have ([`Bounds::token_sessions`]).
    Full,
}

/// Why a claim changed no row, within its transaction.
macro_rules! unclaimed {
    ($tx:expr, $session:expr) => {{
        let there = $crate::statement::Statement::new(&[$crate::sessions::EXISTS]).bind($session);
        match $tx.run(there).await?.row::<(i64,)>(0)? {
            Some((0,)) | None => $crate::sessions::Claim::Full,
            Some(_) => $crate::sessions::Claim::NotOwner,
        }
    }};
}
pub(crate) use unclaimed;

/// Makes sure within a transaction that a session exists and is the instance's; yields what came of it.
macro_rules! claim_in {
    ($tx:expr, $now:expr, $session:expr, $instance:expr, $agent:expr, $holder_token:expr, $bounds:expr) => {{
        let claiming = $crate::statement::Statement::new(&[$crate::sessions::CLAIM])
            .bind($session)
            .bind($instance)
            .bind($agent)
            .bind($holder_token)
            .bind($now.wall_millis())
            .bind(i64::from($bounds.token_sessions));
        if $tx.run(claiming).await?.changed(0) == 1 {
            $crate::sessions::Claim::Ours
        } else {
            $crate::sessions::unclaimed!($tx, $session)
        }
    }};
}
pub(crate) use claim_in;

/// Appends an entry within a transaction; yields it with its number, or `None` when the session is not the
/// instance's or has an entry of that or a later holder number.
macro_rules! append_in {
    ($tx:expr, $now:expr, $instance:expr, $holder_seq:expr, $entry:expr, $most:expr) => {{
        let mut entry: handraise_api::session::Message = $entry;
        let holder_seq: Option<u64> = $holder_seq;
        let body = $crate::rows::text("messages", &entry)?;
        let bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
        let numbering = $crate::statement::Statement::new(&[$crate::sessions::NUMBER])
            .bind(&entry.session_id)
            .bind($instance)
            .bind(bytes)
            .bind(holder_seq.map_or(-1, |seq| i64::try_from(seq).unwrap_or(i64::MAX)))
            .bind($now.wall_millis())
            .bind($most);
        match $tx.run(numbering).await?.row::<(i64, i64)>(0)? {
            None => None,
            Some((seq, held)) => {
                let appending = $crate::statement::Statement::new(&[$crate::sessions::APPEND])
                    .bind(&entry.session_id)
                    .bind(seq)
                    .bind(bytes)
                    .bind(body);
                $tx.run(appending).await?;
                if held > $crate::sessions::TRANSCRIPT_BYTES {
                    $crate::sessions::trim_in!($tx, &entry.session_id, held);
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
        let keep = $crate::sessions::TRANSCRIPT_BYTES / 16 * 15;
        while held > keep {
            let oldest = $crate::statement::Statement::new(&[$crate::sessions::OLDEST]).bind($session);
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
            let dropping = $crate::statement::Statement::new($crate::sessions::DROP);
            $tx.run(dropping.bind($session).bind(upto).bind(dropped)).await?;
            held -= dropped;
        }
    }};
}
pub(crate) use trim_in;

impl Store {
    /// A session that the inbox is about to start; its holder will claim it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_session(&self, now: Now, new: NewSession<'_>) -> Result<(), StoreError> {
        on!(self, db => {
            let adding = Statement::new(&[INSERT])
                .bind(new.id)
                .bind(new.agent)
                .bind(new.cwd)
                .bind(new.holder_token)
                .bind(now.wall_millis());
            db.write(adding).await?;
            Ok(())
        })
    }

    /// What a holder says of its session; a new one is made, if it may have one more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn update_session(
        &self,
        now: Now,
        instance: &str,
        holder_token: &str,
        said: &SessionUpdated,
        bounds: &Bounds,
    ) -> Result<Claim, StoreError> {
        on!(self, db => {
            let mut tx = db.begin().await?;
            let updating = Statement::new(&[UPDATE])
                .bind(&said.session_id)
                .bind(instance)
                .bind(&said.agent)
                .bind(&said.title)
                .bind(&said.cwd)
                .bind(state_word(said.state))
                .bind(&said.stop_reason)
                .bind(holder_token)
                .bind(now.wall_millis())
                .bind(i64::from(bounds.token_sessions))
                .bind(said.background);
            let claim = if tx.run(updating).await?.changed(0) == 1 {
                Claim::Ours
            } else {
                unclaimed!(tx, &said.session_id)
            };
            tx.commit().await?;
            Ok(claim)
        })
    }

    /// Ends a session whose agent is known to be gone. Returns whether it was alive.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_session(&self, now: Now, id: &str) -> Result<bool, StoreError> {
        on!(self, db => {
            let ending = Statement::new(&[END]).bind(id).bind(now.wall_millis());
            Ok(db.write(ending).await?.changed(0) == 1)
        })
    }

    /// Ends the sessions of holders that were lost at or before `since` on the boot clock; returns their ids.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn end_orphaned_sessions(&self, since: Now, now: Now) -> Result<Vec<String>, StoreError> {
        on!(self, db => {
            let ending = Statement::new(&[END_ORPHANED]).bind(since.boot_millis()).bind(now.wall_millis());
            let ended: Vec<(String,)> = db.write(ending).await?.rows(0)?;
            Ok(ended.into_iter().map(|(id,)| id).collect())
        })
    }

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
                if held > TRANSCRIPT_BYTES {
                    let mut tx = db.begin().await?;
                    trim_in!(tx, &entry.session_id, held);
                    tx.commit().await?;
                }
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

    /// One session and the instance that owns it, if any does yet.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn session(&self, id: &str) -> Result<Option<(Session, Option<String>)>, StoreError> {
        on!(self, db => {
            let row: Option<SessionRow> = sqlx::query_as(BY_ID).bind(id).fetch_optional(&mut *db.reader().await?).await?;
            row.map(TryInto::try_into).transpose()
        })
    }

    /// Up to `alive` sessions that have not ended and the `latest` ones of any state, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sessions(
        &self,
        alive: u32,
        latest: u32,
    ) -> Result<Vec<(Session, Option<String>)>, StoreError> {
        on!(self, db => {
            let rows: Vec<SessionRow> =
                sqlx::query_as(ALIVE).bind(i64::from(alive)).fetch_all(&mut *db.reader().await?).await?;
            let more: Vec<SessionRow> =
                sqlx::query_as(LATEST).bind(i64::from(latest)).fetch_all(&mut *db.reader().await?).await?;
            let mut sessions = Vec::with_capacity(rows.len() + more.len());
            for row in rows.into_iter().chain(more) {
                sessions.push(<(Session, Option<String>)>::try_from(row)?);
            }
            sessions.sort_by(|(a, _), (b, _)| (b.started_at, &b.id).cmp(&(a.started_at, &a.id)));
            sessions.dedup_by(|(a, _), (b, _)| a.id == b.id);
            Ok(sessions)
        })
    }

    /// The sessions of an instance.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn sessions_of(&self, instance: &str) -> Result<Vec<Session>, StoreError> {
        on!(self, db => {
            let rows: Vec<SessionRow> =
                sqlx::query_as(OF_INSTANCE).bind(instance).fetch_all(&mut *db.reader().await?).await?;
            rows.into_iter()
                .map(|row| <(Session, Option<String>)>::try_from(row).map(|(session, _)| session))
                .collect()
        })
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
