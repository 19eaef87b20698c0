//! The outbox: notifications committed with what they are about, sent afterwards, at least once.
//!
//! Triggers put them in, so that no ask opens or ends without.

use handraise_api::ask::Ask;

use crate::{
    Store, StoreError,
    error::Failure,
    on,
    rows::{self, AskRow, OwnedAsk},
    statement::{Sql, Statement},
};

/// Numbers are taken within the one writer, so that they are committed in their order.
///
/// Rows beyond ten thousand are not kept: what nobody drains must not fill the disk (S39).
macro_rules! triggers {
    () => {
        "
CREATE TRIGGER asks_notify AFTER INSERT ON asks WHEN NEW.state <> 'settled' BEGIN
    INSERT INTO outbox (id, kind, ask, at)
        SELECT COALESCE((SELECT MAX(id) FROM outbox), 0) + 1, 'requested', NEW.id, NEW.opened_at
        WHERE COALESCE((SELECT MAX(id) FROM outbox) - (SELECT MIN(id) FROM outbox), 0) < 10000;
END;
CREATE TRIGGER asks_withdraw AFTER UPDATE OF state ON asks WHEN OLD.state <> 'settled' AND NEW.state = 'settled'
BEGIN
    INSERT INTO outbox (id, kind, ask, at)
        SELECT COALESCE((SELECT MAX(id) FROM outbox), 0) + 1, 'withdrawn', NEW.id, NEW.settled_at
        WHERE COALESCE((SELECT MAX(id) FROM outbox) - (SELECT MIN(id) FROM outbox), 0) < 10000;
END;
CREATE TRIGGER asks_forget AFTER DELETE ON asks BEGIN
    DELETE FROM outbox WHERE ask = OLD.id;
END;
"
    };
}
/// The third step of the schema.
pub(crate) const STEP: &str = triggers!();

/// The seventh step of the schema: the outbox is read by its numbers alone, and no index is kept that only a sweep or the
/// forgetting of old rows used: each costs a page of the log with every ask.
pub(crate) const LIGHTER: &str = concat!(
    "
DROP TRIGGER asks_notify;
DROP TRIGGER asks_withdraw;
DROP TRIGGER asks_forget;
CREATE TABLE notices (
    id INTEGER PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    ask TEXT NOT NULL,
    at BIGINT NOT NULL
);
INSERT INTO notices (id, kind, ask, at) SELECT id, kind, ask, at FROM outbox;
DROP TABLE outbox;
ALTER TABLE notices RENAME TO outbox;
DROP INDEX asks_open_by_due;
DROP INDEX sessions_by_update;
",
    triggers!()
);

/// What a notification says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A human is asked for (F9).
    Requested,
    /// The ask has ended; the notification can be taken back.
    Withdrawn,
}

impl NoticeKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// One notification that is still to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Its place in the queue; free again once it was sent.
    pub id: i64,
    /// What it says.
    pub kind: NoticeKind,
    /// About which ask.
    pub about: String,
    /// That ask as it is now, and the instance that owns it; `None` where it is enough to name it.
    pub ask: Option<(Box<Ask>, String)>,
}

macro_rules! last {
    () => {
        "SELECT COALESCE(MAX(id), 0) FROM outbox"
    };
}
const NEXT: &str = concat!(
    "SELECT o.id AS notice, o.kind AS notice_kind, o.ask AS about, ",
    rows::ask_columns!(),
    " FROM (SELECT id, kind, ask FROM outbox WHERE id > $1 ORDER BY id LIMIT $2) o LEFT JOIN asks a ON a.id = o.ask \
     AND o.kind = 'requested' \
     LEFT JOIN submissions s ON s.id = a.submission_id ORDER BY o.id"
);
const LAST: &str = last!();
const DONE: Sql = &["DELETE FROM outbox WHERE id <= $1", last!()];

rows::row! {
    NoticeHead { notice: i64, notice_kind: String, about: String, }
}

/// A notice and, where it asks for a human, its ask, from one row.
struct NoticeRow(NoticeHead, Option<AskRow>);

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for NoticeRow
where
    NoticeHead: sqlx::FromRow<'r, R>,
    AskRow: sqlx::FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let head = NoticeHead::from_row(row)?;
        let asks = head.notice_kind == NoticeKind::Requested.word();
        let ask = asks.then(|| AskRow::from_row(row)).transpose()?;
        Ok(Self(head, ask))
    }
}

impl TryFrom<NoticeRow> for Notice {
    type Error = Failure;

    fn try_from(NoticeRow(head, row): NoticeRow) -> Result<Self, Failure> {
        let kind = [NoticeKind::Requested, NoticeKind::Withdrawn]
            .into_iter()
            .find(|known| known.word() == head.notice_kind)
            .ok_or_else(|| Failure::row("outbox", format!("'{}' is no kind", head.notice_kind)))?;
        let ask = row
            .map(|row| OwnedAsk::try_from(row).map(|OwnedAsk { ask, instance }| (Box::new(ask), instance)))
            .transpose()?;
        Ok(Self { id: head.notice, kind, about: head.about, ask })
    }
}

impl Store {
    /// The notifications after number `after` that are to be sent next.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notices(&self, after: i64, limit: u32) -> Result<Vec<Notice>, StoreError> {
        on!(self, db => {
            let rows: Vec<NoticeRow> = sqlx::query_as(NEXT)
                .bind(after)
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            rows.into_iter().map(TryInto::try_into).collect()
        })
    }

    /// The number of the notification that was put in last, or 0.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn last_notice(&self) -> Result<i64, StoreError> {
        on!(self, db => Ok(sqlx::query_scalar(LAST).fetch_one(&mut *db.reader().await?).await?))
    }

    /// Takes the notifications up to `last` out of the queue: they were sent. Numbers may then begin anew. Returns the
    /// number of the last one that is left, or 0.
    ///
    /// # Errors
    /// When the database fails; then they are sent again.
    pub async fn sent(&self, last: i64) -> Result<i64, StoreError> {
        on!(self, db => {
            let left: Option<(i64,)> = db.write(Statement::new(DONE).bind(last)).await?.row(1)?;
            Ok(left.map_or(0, |(left,)| left))
        })
    }
}
