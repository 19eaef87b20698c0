//! Sessions.

use handraise_api::{
    frame::SessionUpdated,
    session::{PendingAction, Session, SessionState},
};

use crate::{Now, Store, StoreError, error::Failure, holdings::Bounds, on, rows, statement::Statement};

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
}
