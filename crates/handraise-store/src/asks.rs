//! Opening asks, and hearing of them again.

use handraise_api::{
    ask::{Ask, AskContent, Origin},
    frame::AnnouncedAsk,
    session::{Author, Message, MessageKind},
    words::{AskState, HolderKind, Outcome, Provenance, Rail},
};
use serde_json::{Map, Value};

use crate::{
    Now, Store, StoreError,
    error::Failure,
    holdings::{self, Bounds, Full},
    lists::{by_id, by_id_in},
    on,
    rows::{self, OwnedAsk},
    sessions::{self, Claim},
    settle::{self, Ending},
    statement::{Sql, Statement},
    transcripts,
};

/// An ask as its holder announced it, and who that holder is.
#[derive(Debug, Clone, Copy)]
pub struct Announcement<'a> {
    /// The instance that owns it.
    pub instance: &'a str,
    /// What kind of holder.
    pub kind: HolderKind,
    /// The name of the token it came with.
    pub holder_token: &'a str,
    /// The person whose token that is (S16).
    pub holder_owner: Option<&'a str>,
    /// The ask.
    pub ask: &'a AnnouncedAsk,
    /// Its content as JSON text.
    pub content: &'a str,
}

/// What an announcement came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Announced {
    /// It is new.
    Opened {
        /// As operators see it.
        ask: Box<Ask>,
        /// The transcript entry that it made, when it belongs to a session (AC-08).
        message: Option<Box<Message>>,
    },
    /// It was open before. Set when something that operators see has changed.
    Known(Option<Box<Ask>>),
    /// It had ended; an id never reopens (S9). How it ended.
    Settled(Box<Ask>),
    /// It was open with other content; it is withdrawn now (S9).
    ContentChanged(Box<Ask>),
    /// It, or its session, belongs to another instance (S9).
    NotOwner,
    /// Its holder has as much in here as it may have (S37); nothing of it is kept.
    Full(Full),
}

pub(crate) const FIND: &str = "SELECT instance, digest, state, due, parked_until FROM asks WHERE id = $1";

/// Opens an ask that is new, within its session, if it has one, and within the bounds. It changes no row otherwise;
/// only then is it worth asking why.
macro_rules! insert {
    () => {
        "INSERT INTO asks (id, instance, state, digest, source, session_id, bytes, \
    opened_at, deadline, due, parked_until, holder_kind, holder_token, client, server, content, holder_owner, token) \
    SELECT $1, i.id, 'open', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $22, i.token \
    FROM instances i JOIN holdings h ON h.token = i.token WHERE i.id = $2 \
    AND i.open_asks < $16 AND i.open_bytes + $6 <= $17 \
    AND h.open_asks < $18 AND h.asks < $19 AND h.bytes + $6 <= $20 \
    AND ($5 IS NULL OR EXISTS (SELECT 1 FROM sessions e WHERE e.id = $5 AND e.instance = $2 AND e.waiting < $21)) \
    ON CONFLICT (id) DO NOTHING"
    };
}
const INSERT: Sql = &[insert!()];
/// The same, with its entry in the transcript of its session: `$23` bytes, `$24`.
const INSERT_IN_SESSION: Sql = &[
    insert!(),
    "UPDATE sessions SET last_seq = last_seq + 1, bytes = bytes + $23, updated_at = $7 \
     WHERE id = $5 AND changes() = 1 RETURNING last_seq, bytes",
    "INSERT INTO messages (session_id, seq, bytes, body) \
     SELECT id, last_seq, $23, $24 FROM sessions WHERE id = $5 AND changes() = 1",
];

const REFRESH: &str = "UPDATE asks SET deadline = $2, due = $3, parked_until = $4 WHERE id = $1";

rows::row! {
    Known { instance: String, digest: String, state: String, due: i64, parked_until: Option<i64>, }
}

/// The furthest that a deadline may lie ahead, in milliseconds: ten years. A holder may say any number, and one that no
/// calendar has would make every list that the ask is in unreadable (S37).
const FURTHEST_MS: i64 = 10 * 366 * 24 * 60 * 60 * 1_000;

/// How far a deadline may move between announcements before it counts as another one: the way takes time.
const SAME_DEADLINE_MS: i64 = 2_000;

/// The times of an announced ask, in milliseconds.
struct Times {
    deadline: Option<i64>,
    due: i64,
    parked_until: Option<i64>,
}

impl Times {
    fn of(now: Now, ask: &AnnouncedAsk) -> Self {
        let after = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX).min(FURTHEST_MS);
        Self {
            deadline: ask.deadline_ms.map(|left| now.wall_millis().saturating_add(after(left))),
            due: ask.deadline_ms.map_or(i64::MAX, |left| now.boot_millis().saturating_add(after(left))),
            parked_until: ask.parked_ms.map(|left| now.wall_millis().saturating_add(after(left))),
        }
    }
}

impl Times {
    /// Whether they are others than those of a known ask.
    fn differ(&self, known: &Known) -> bool {
        let moved = |old: i64, new: i64| old.saturating_sub(new).saturating_abs() > SAME_DEADLINE_MS;
        moved(known.due, self.due)
            || known.parked_until.is_some() != self.parked_until.is_some()
            || known.parked_until.zip(self.parked_until).is_some_and(|(old, new)| moved(old, new))
    }
}

fn content_changed(now: Now) -> Ending {
    Ending {
        outcome: Outcome::Withdrawn,
        provenance: Provenance::System,
        rail: Rail::Inbox,
        wire: None,
        by: None,
        at: now.wall,
        reason: Some("content_changed".into()),
        submission_id: None,
    }
}

/// An ask that has just opened, as operators see it.
fn opened(now: Now, new: &Announcement<'_>, times: &Times, digest: String) -> Result<Ask, Failure> {
    let wall = |at: Option<i64>| at.map(|at| rows::time("asks", at)).transpose();
    Ok(Ask {
        id: new.ask.id.clone(),
        digest,
        state: AskState::Open,
        content: new.ask.content.clone(),
        origin: Origin {
            holder: new.kind,
            holder_token: new.holder_token.to_owned(),
            owner: new.holder_owner.map(str::to_owned),
            client: new.ask.client.clone(),
            server: new.ask.server.clone(),
        },
        opened_at: rows::time("asks", now.wall_millis())?,
        deadline: wall(times.deadline)?,
        parked_until: wall(times.parked_until)?,
        holder_connected: true,
        settlement: None,
        replayed: false,
    })
}

/// Binds the parameters of [`INSERT`].
macro_rules! bind_insert {
    ($query:expr, $now:expr, $new:expr, $times:expr, $bytes:expr, $digest:expr, $client:expr, $bounds:expr) => {{
        let (new, times, bounds): (&Announcement<'_>, &Times, &Bounds) = ($new, $times, $bounds);
        $query
            .bind(&new.ask.id)
            .bind(new.instance)
            .bind($digest)
            .bind(new.ask.content.source.as_str())
            .bind(&new.ask.content.session_id)
            .bind($bytes)
            .bind($now.wall_millis())
            .bind(times.deadline)
            .bind(times.due)
            .bind(times.parked_until)
            .bind(rows::kind_word(new.kind))
            .bind(new.holder_token)
            .bind($client)
            .bind(&new.ask.server)
            .bind(new.content)
            .bind(i64::from(bounds.open_asks))
            .bind(holdings::bytes(bounds.open_bytes))
            .bind(i64::from(bounds.token_open_asks))
            .bind(i64::from(bounds.token_asks))
            .bind(holdings::bytes(bounds.token_bytes))
            .bind(i64::from(bounds.session_open_asks))
            .bind(new.holder_owner)
    }};
}

/// What another announcement of a known ask comes to, within a transaction.
macro_rules! hear_again {
    ($tx:expr, $now:expr, $new:expr, $times:expr, $digest:expr, $known:expr) => {{
        let (now, new, times, known): (Now, &Announcement<'_>, &Times, Known) = ($now, $new, $times, $known);
        let id = &new.ask.id;
        let vanished = || Failure::row("asks", "a row vanished");
        if known.instance != new.instance {
            Announced::NotOwner
        } else if known.state == "settled" {
            Announced::Settled(Box::new(by_id_in!($tx, id).ok_or_else(vanished)?.ask))
        } else if known.digest != $digest {
            let _ended: bool = settle::settle_in!($tx, id, &content_changed(now));
            Announced::ContentChanged(Box::new(by_id_in!($tx, id).ok_or_else(vanished)?.ask))
        } else if times.differ(&known) {
            let refreshing = Statement::new(&[REFRESH])
                .bind(id)
                .bind(times.deadline)
                .bind(times.due)
                .bind(times.parked_until);
            $tx.run(refreshing).await?;
            Announced::Known(by_id_in!($tx, id).map(|known| Box::new(known.ask)))
        } else {
            Announced::Known(None)
        }
    }};
}

/// What is written of an announced ask.
struct NewRow {
    times: Times,
    digest: String,
    bytes: i64,
    client: Option<String>,
    /// Its entry in the transcript of its session, if it has one.
    entry: Option<Message>,
}

impl NewRow {
    fn of(now: Now, new: &Announcement<'_>) -> Result<Self, Failure> {
        let ask = new.ask;
        Ok(Self {
            times: Times::of(now, ask),
            digest: AskContent::digest_of(new.content),
            bytes: i64::try_from(new.content.len()).unwrap_or(i64::MAX / 2),
            client: ask.client.as_ref().map(|client| rows::text("asks", client)).transpose()?,
            entry: ask
                .content
                .session_id
                .as_ref()
                .map(|session| clarification_request(now, session, &ask.id, &ask.content.message)),
        })
    }

    /// Most often an ask is new and its session is there, and one call does it.
    fn insert(&self, now: Now, new: &Announcement<'_>, bounds: &Bounds) -> Result<Statement, Failure> {
        let Self { times, digest, bytes, client, entry } = self;
        let query = Statement::new(if entry.is_some() { INSERT_IN_SESSION } else { INSERT });
        let query = bind_insert!(query, now, new, times, *bytes, digest, client, bounds);
        let Some(entry) = entry else { return Ok(query) };
        let body = rows::text("messages", entry)?;
        Ok(query.bind(i64::try_from(body.len()).unwrap_or(i64::MAX)).bind(body))
    }
}

/// What an announcement comes to that is not simply new: it is known, its session is not, or there is no room.
macro_rules! announce_known {
    ($db:expr, $now:expr, $new:expr, $row:expr, $bounds:expr) => {{
        let (now, new, bounds): (Now, &Announcement<'_>, &Bounds) = ($now, $new, $bounds);
        let NewRow { times, digest, bytes, client, entry } = $row;
        let ask = new.ask;
        let mut tx = $db.begin().await?;
        let known: Option<Known> = tx.run(Statement::new(&[FIND]).bind(&ask.id)).await?.row(0)?;
        if let Some(known) = known {
            let again = hear_again!(tx, now, new, &times, digest, known);
            tx.commit().await?;
            again
        } else {
            let claim = match &ask.content.session_id {
                Some(session) => {
                    let agent = ask.client.as_ref().map_or("agent", |client| client.name.as_str());
                    sessions::claim_in!(tx, now, session, new.instance, agent, new.holder_token, bounds)
                }
                None => Claim::Ours,
            };
            match claim {
                Claim::NotOwner => Announced::NotOwner,
                Claim::Full => Announced::Full(Full::TokenSessions),
                Claim::Ours => {
                    let query = Statement::new(INSERT);
                    let query = bind_insert!(query, now, new, &times, bytes, &digest, &client, bounds);
                    if tx.run(query).await?.changed(0) == 0 {
                        let counting = Statement::new(&[holdings::COUNTS])
                            .bind(new.instance)
                            .bind(&ask.content.session_id);
                        let counts: Option<holdings::Counts> = tx.run(counting).await?.row(0)?;
                        match counts.and_then(|counts| counts.full(bounds, bytes)) {
                            Some(full) => Announced::Full(full),
                            None => {
                                return Err(Failure::row(
                                    "instances",
                                    "the holder of a new ask is not there",
                                ));
                            }
                        }
                    } else {
                        let mut message = None;
                        if let Some(entry) = entry {
                            message = transcripts::append_in!(tx, now, new.instance, None, entry, i64::MAX);
                        }
                        tx.commit().await?;
                        let ask = Box::new(opened(now, new, &times, digest)?);
                        Announced::Opened { ask, message: message.map(Box::new) }
                    }
                }
            }
        }
    }};
}

impl Store {
    /// Takes up an announced ask: inserts it with its notification and its transcript entry, or recognises it.
    ///
    /// # Errors
    /// When the database fails; then nothing of it is kept.
    pub async fn announce(
        &self,
        now: Now,
        new: &Announcement<'_>,
        bounds: &Bounds,
    ) -> Result<Announced, StoreError> {
        let mut announced = self.announce_all(now, std::slice::from_ref(new), bounds).await?;
        // There are as many as were asked for; it is nobody's fault where there are not.
        match announced.pop() {
            Some(announced) => announced,
            None => on!(self, _db => Err(unanswered())),
        }
    }

    /// The same for several, each under another id, in their order. Those that are new are written together. What came of
    /// each: where the database failed for one, nothing of it is kept, and the others are.
    ///
    /// # Errors
    /// When the database fails for all.
    pub async fn announce_all(
        &self,
        now: Now,
        news: &[Announcement<'_>],
        bounds: &Bounds,
    ) -> Result<Vec<Result<Announced, StoreError>>, StoreError> {
        on!(self, db => {
            let rows = news.iter().map(|new| NewRow::of(now, new)).collect::<Result<Vec<_>, Failure>>()?;
            let queries = news.iter().zip(&rows).map(|(new, row)| row.insert(now, new, bounds));
            let outcomes = db.write_all(queries.collect::<Result<_, Failure>>()?).await?;
            if outcomes.len() != news.len() {
                return Err(unanswered());
            }
            let mut announced = Vec::with_capacity(news.len());
            for ((new, row), outcome) in news.iter().zip(rows).zip(outcomes) {
                let one: Result<Announced, Failure> = async {
                    let mut outcome = outcome?;
                    if outcome.changed(0) != 1 {
                        return Ok(announce_known!(db, now, new, row, bounds));
                    }
                    let mut message = None;
                    if let Some(entry) = row.entry {
                        let (seq, held): (i64, i64) =
                            outcome.row(1)?.ok_or_else(|| Failure::row("sessions", "a row vanished"))?;
                        self.trim_transcript(&entry.session_id, held).await;
                        message = Some(Box::new(Message { seq: u64::try_from(seq).unwrap_or(0), ..entry }));
                    }
                    Ok(Announced::Opened { ask: Box::new(opened(now, new, &row.times, row.digest)?), message })
                }
                .await;
                announced.push(one.map_err(|failure| db.name(failure)));
            }
            Ok(announced)
        })
    }

    /// One ask and the instance that owns it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ask(&self, id: &str) -> Result<Option<(Ask, String)>, StoreError> {
        on!(self, db => {
            let mut reader = db.reader().await?;
            Ok(by_id!(reader, id).map(|OwnedAsk { ask, instance }| (ask, instance)))
        })
    }
}

/// The database did not say what came of each of several asks.
fn unanswered() -> Failure {
    Failure::Driver(sqlx::Error::Protocol("fewer outcomes than asks".into()))
}

/// The transcript entry of an opened ask (AC-08). It says what is asked; the ask itself is `pending_id`.
fn clarification_request(now: Now, session: &str, ask: &str, words: &str) -> Message {
    let mut metadata = Map::new();
    metadata.insert("pending_id".into(), Value::String(ask.to_owned()));
    Message {
        seq: 0,
        session_id: session.to_owned(),
        at: now.wall,
        kind: MessageKind::ClarificationRequest,
        author: Author::Agent,
        text: words.to_owned(),
        continues: false,
        requests_input: true,
        metadata,
    }
}
