//! The outbox: notifications committed with what they are about, sent afterwards, at least once.

use crate::{Store, StoreError, error::Failure, on};

/// Rows beyond this are not kept: what nobody drains must not fill the disk (S39).
pub(crate) const OUTBOX_ROWS: i64 = 10_000;

/// What a notification says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A human is asked for (F9).
    Requested,
    /// The ask has ended; the notification can be taken back.
    Withdrawn,
}

impl NoticeKind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// One notification that is still to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Its place in the queue; free again once it was sent.
    pub id: i64,
    /// What it says.
    pub kind: NoticeKind,
    /// About which ask.
    pub ask: String,
}

/// Numbers are taken within the one writer, so that they are committed in their order.
pub(crate) const PUT: &str = "INSERT INTO outbox (id, kind, ask, at) \
    SELECT COALESCE((SELECT MAX(id) FROM outbox), 0) + 1, $1, $2, $3 \
    WHERE COALESCE((SELECT MAX(id) FROM outbox) - (SELECT MIN(id) FROM outbox), 0) < $4";

/// Puts a notification into the queue, within the transaction of what it is about.
macro_rules! put_in {
    ($tx:expr, $at:expr, $kind:expr, $ask:expr) => {
        sqlx::query($crate::outbox::PUT)
            .bind($crate::outbox::NoticeKind::word($kind))
            .bind($ask)
            .bind($at)
            .bind($crate::outbox::OUTBOX_ROWS)
            .execute(&mut *$tx)
            .await?
    };
}
pub(crate) use put_in;

const NEXT: &str = "SELECT id, kind, ask FROM outbox ORDER BY id LIMIT $1";
const DONE: &str = "DELETE FROM outbox WHERE id <= $1";

impl Store {
    /// The notifications to send next.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn notices(&self, limit: u32) -> Result<Vec<Notice>, StoreError> {
        on!(self, db => {
            let rows: Vec<(i64, String, String)> =
                sqlx::query_as(NEXT).bind(i64::from(limit)).fetch_all(db.readers()).await?;
            rows.into_iter()
                .map(|(id, kind, ask)| {
                    let kind = [NoticeKind::Requested, NoticeKind::Withdrawn]
                        .into_iter()
                        .find(|known| known.word() == kind)
                        .ok_or_else(|| Failure::row("outbox", format!("'{kind}' is no kind")))?;
                    Ok(Notice { id, kind, ask })
                })
                .collect()
        })
    }

    /// Takes the notifications up to `last` out of the queue: they were sent.
    ///
    /// # Errors
    /// When the database fails; then they are sent again.
    pub async fn sent(&self, last: i64) -> Result<(), StoreError> {
        on!(self, db => {
            sqlx::query(DONE).bind(last).execute(db.writer()).await?;
            Ok(())
        })
    }
}
