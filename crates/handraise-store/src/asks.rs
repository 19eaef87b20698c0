//! Opening asks, and hearing of them again.

use handraise_api::{
    ask::Ask,
    frame::AnnouncedAsk,
    session::{Author, Message, MessageKind},
    words::{AskState, HolderKind, Outcome, Provenance, Rail},
};
use serde_json::{Map, Value};

use crate::{
    Now, Store, StoreError,
    error::Failure,
    lists::by_id,
    on,
    outbox::{self, NoticeKind},
    rows::{self, OwnedAsk},
    sessions,
    settle::{self, Ending},
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
    /// The ask.
    pub ask: &'a AnnouncedAsk,
    /// See [`handraise_api::ask::AskContent::digest`].
    pub digest: &'a str,
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
}

const FIND: &str = "SELECT instance, digest, state, due, parked_until FROM asks WHERE id = $1";

const INSERT: &str = "INSERT INTO asks (id, instance, state, digest, source, session_id, bytes, opened_at, \
    deadline, due, parked_until, holder_kind, holder_token, client, server, content) \
    VALUES ($1, $2, 'open', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

const REFRESH: &str = "UPDATE asks SET deadline = $2, due = $3, parked_until = $4 WHERE id = $1";

rows::row! {
    Known { instance: String, digest: String, state: String, due: i64, parked_until: Option<i64>, }
}

/// The furthest that a deadline may lie ahead, in milliseconds: ten years. A holder may say any number, and one that no
/// calendar has would make every list that the ask is in unreadable (S37).
const FURTHEST_MS: i64 = 10 * 366 * 24 * 60 * 60 * 1_000;

/// How far a deadline may move between announcements before it counts as another one: the way takes time.
const SAME_DEADLINE_MS: i64 = 2_000;

impl Store {
    /// Takes up an announced ask: inserts it with its notification and its transcript entry, or recognises it.
    ///
    /// # Errors
    /// When the database fails; then nothing of it is kept.
    pub async fn announce(&self, now: Now, new: &Announcement<'_>) -> Result<Announced, StoreError> {
        let ask = new.ask;
        on!(self, db => {
            let mut tx = db.begin().await?;
            let known: Option<Known> =
                sqlx::query_as(FIND).bind(&ask.id).fetch_optional(&mut *tx).await?;
            let after = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX).min(FURTHEST_MS);
            let deadline = ask.deadline_ms.map(|left| now.wall_millis().saturating_add(after(left)));
            let due = ask.deadline_ms.map_or(i64::MAX, |left| now.boot_millis().saturating_add(after(left)));
            let parked_until = ask.parked_ms.map(|left| now.wall_millis().saturating_add(after(left)));

            if let Some(known) = known {
                if known.instance != new.instance {
                    return Ok(Announced::NotOwner);
                }
                if known.state == "settled" {
                    return match by_id!(tx, &ask.id) {
                        Some(known) => Ok(Announced::Settled(Box::new(known.ask))),
                        None => Err(Failure::row("asks", "a row vanished")),
                    };
                }
                if known.digest != new.digest {
                    let ending = Ending {
                        outcome: Outcome::Withdrawn,
                        provenance: Provenance::System,
                        rail: Rail::Inbox,
                        wire: None,
                        by: None,
                        at: now.wall,
                        reason: Some("content_changed".into()),
                        submission_id: None,
                    };
                    let _ended: bool = settle::settle_in!(tx, &ask.id, &ending);
                    let ended = by_id!(tx, &ask.id);
                    tx.commit().await?;
                    return match ended {
                        Some(ended) => Ok(Announced::ContentChanged(Box::new(ended.ask))),
                        None => Err(Failure::row("asks", "a row vanished")),
                    };
                }
                let moved = |old: i64, new: i64| old.saturating_sub(new).saturating_abs() > SAME_DEADLINE_MS;
                let unparked = known.parked_until.is_some() != parked_until.is_some();
                let reparked = known.parked_until.zip(parked_until).is_some_and(|(old, new)| moved(old, new));
                if !moved(known.due, due) && !unparked && !reparked {
                    return Ok(Announced::Known(None));
                }
                sqlx::query(REFRESH)
                    .bind(&ask.id)
                    .bind(deadline)
                    .bind(due)
                    .bind(parked_until)
                    .execute(&mut *tx)
                    .await?;
                let refreshed = by_id!(tx, &ask.id);
                tx.commit().await?;
                return Ok(Announced::Known(refreshed.map(|known| Box::new(known.ask))));
            }

            if let Some(session) = &ask.content.session_id {
                let agent = ask.client.as_ref().map_or("agent", |client| client.name.as_str());
                let ours: bool = sessions::claim_in!(tx, now, session, new.instance, agent, new.holder_token);
                if !ours {
                    return Ok(Announced::NotOwner);
                }
            }
            let content = rows::text("asks", &ask.content)?;
            let client = ask.client.as_ref().map(|client| rows::text("asks", client)).transpose()?;
            sqlx::query(INSERT)
                .bind(&ask.id)
                .bind(new.instance)
                .bind(new.digest)
                .bind(ask.content.source.as_str())
                .bind(&ask.content.session_id)
                .bind(i64::try_from(content.len()).unwrap_or(i64::MAX))
                .bind(now.wall_millis())
                .bind(deadline)
                .bind(due)
                .bind(parked_until)
                .bind(rows::kind_word(new.kind))
                .bind(new.holder_token)
                .bind(client)
                .bind(&ask.server)
                .bind(content)
                .execute(&mut *tx)
                .await?;
            outbox::put_in!(tx, now.wall_millis(), NoticeKind::Requested, &ask.id);
            let mut message = None;
            if let Some(session) = &ask.content.session_id {
                let entry = clarification_request(now, session, &ask.id, &ask.content.message);
                message = sessions::append_in!(tx, now, new.instance, None, entry);
            }
            tx.commit().await?;
            let wall = |at: Option<i64>| at.map(|at| rows::time("asks", at)).transpose();
            Ok(Announced::Opened {
                ask: Box::new(Ask {
                    id: ask.id.clone(),
                    digest: new.digest.to_owned(),
                    state: AskState::Open,
                    content: ask.content.clone(),
                    origin: handraise_api::ask::Origin {
                        holder: new.kind,
                        holder_token: new.holder_token.to_owned(),
                        client: ask.client.clone(),
                        server: ask.server.clone(),
                    },
                    opened_at: rows::time("asks", now.wall_millis())?,
                    deadline: wall(deadline)?,
                    parked_until: wall(parked_until)?,
                    holder_connected: true,
                    settlement: None,
                    replayed: false,
                }),
                message: message.map(Box::new),
            })
        })
    }

    /// One ask and the instance that owns it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ask(&self, id: &str) -> Result<Option<(Ask, String)>, StoreError> {
        on!(self, db => {
            let mut reader = db.readers().acquire().await?;
            Ok(by_id!(reader, id).map(|OwnedAsk { ask, instance }| (ask, instance)))
        })
    }
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
