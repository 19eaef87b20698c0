//! Ending asks, exactly once each.

use handraise_api::{
    ask::Ask,
    words::{Outcome, Provenance, Rail, WireAction},
};
use jiff::Timestamp;

use crate::{
    Now, Store, StoreError,
    error::Failure,
    lists::by_id,
    on,
    rows::{self, OwnedAsk},
};

/// How an ask ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Who stands behind it. Where a submission of this ask won, its row decides instead (S15).
    pub provenance: Provenance,
    /// How it reached a human.
    pub rail: Rail,
    /// What the asking side was sent.
    pub wire: Option<WireAction>,
    /// Who. Where a submission of this ask won, its row decides instead.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
    /// The submission that won.
    pub submission_id: Option<String>,
}

impl Ending {
    /// Whether a submission that won with this outcome was a skip; `None`: no submission ends an ask like that.
    pub(crate) const fn asks_for(&self) -> Option<bool> {
        match self.outcome {
            Outcome::Accept => Some(false),
            Outcome::Decline => Some(true),
            _ => None,
        }
    }
}

/// What an attempt to settle came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// This attempt ended the ask.
    Now(Box<Ask>),
    /// It had ended before; that ending stands.
    Already(Box<Ask>),
    /// There is no such ask.
    Unknown,
    /// It belongs to another instance (S9).
    NotOwner,
}

/// The one statement that ends an ask. It changes one row, or the ask had ended. An ask cannot have ended before it
/// opened, whatever its holder says: it would be forgotten by age at once.
pub(crate) const SETTLE: &str = "UPDATE asks SET state = 'settled', \
    settled_at = CASE WHEN $2 < opened_at THEN opened_at ELSE $2 END, outcome = $3, \
    provenance = $4, rail = $5, wire = $6, settled_by = $7, reason = $8, submission_id = $9 \
    WHERE id = $1 AND state <> 'settled'";

/// A submission lends its name and provenance only to the outcome that it asked for, and only when the holder has not
/// turned it down before: otherwise a holder could say that a human accepted what a human skipped (S15).
pub(crate) const WINNER: &str = "SELECT id, by_name, provenance FROM submissions WHERE id = $1 AND ask = $2 \
    AND rejected = $3 AND (verdict IS NULL OR verdict = 'delivered')";

rows::row! {
    Winner { id: String, by_name: String, provenance: String, }
}

/// Settles within a transaction; yields whether this attempt ended the ask.
macro_rules! settle_in {
    ($tx:expr, $ask:expr, $ending:expr) => {{
        let ask: &str = $ask;
        let ending: &$crate::settle::Ending = $ending;
        let winner: Option<$crate::settle::Winner> =
            match ending.submission_id.as_ref().zip(ending.asks_for()) {
                Some((id, rejected)) => {
                    sqlx::query_as($crate::settle::WINNER)
                        .bind(id)
                        .bind(ask)
                        .bind(rejected)
                        .fetch_optional(&mut *$tx)
                        .await?
                }
                None => None,
            };
        $crate::settle::settle_with!($tx, ask, ending, winner)
    }};
}
pub(crate) use settle_in;

/// Settles within a transaction, with what the winning submission lends, if one won.
macro_rules! settle_with {
    ($tx:expr, $ask:expr, $ending:expr, $winner:expr) => {{
        let ending: &$crate::settle::Ending = $ending;
        let winner: Option<$crate::settle::Winner> = $winner;
        let (submission, by, provenance) = match winner {
            Some(winner) => (Some(winner.id), Some(winner.by_name), winner.provenance),
            None => (None, ending.by.clone(), ending.provenance.as_str().to_owned()),
        };
        let changed = sqlx::query($crate::settle::SETTLE)
            .bind($ask)
            .bind(ending.at.as_millisecond())
            .bind(ending.outcome.as_str())
            .bind(provenance)
            .bind(ending.rail.as_str())
            .bind(ending.wire.map(handraise_api::words::WireAction::as_str))
            .bind(by)
            .bind(&ending.reason)
            .bind(submission)
            .execute(&mut *$tx)
            .await?
            .rows_affected();
        changed == 1
    }};
}
pub(crate) use settle_with;

impl Store {
    /// Ends an ask unless it has ended. `owner` is the instance that says so; `None` is the inbox itself.
    ///
    /// # Errors
    /// When the database fails; then the ask is as it was.
    pub async fn settle(
        &self,
        ask: &str,
        owner: Option<&str>,
        ending: &Ending,
    ) -> Result<Settled, StoreError> {
        on!(self, db => {
            let mut tx = db.begin().await?;
            let Some(before) = by_id!(tx, ask) else { return Ok(Settled::Unknown) };
            if owner.is_some_and(|owner| owner != before.instance) {
                return Ok(Settled::NotOwner);
            }
            if before.ask.settlement.is_some() {
                return Ok(Settled::Already(Box::new(before.ask)));
            }
            let _ended: bool = settle_in!(tx, ask, ending);
            let after = by_id!(tx, ask);
            tx.commit().await?;
            match after {
                Some(after) => Ok(Settled::Now(Box::new(after.ask))),
                None => Err(Failure::row("asks", "a row vanished")),
            }
        })
    }

    /// Open asks whose deadline was at or before `due` on the boot clock, oldest first. Asks with a submission on its
    /// way are left out: what became of them is not known here.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn overdue(&self, due: Now, limit: u32) -> Result<Vec<(Ask, String)>, StoreError> {
        on!(self, db => {
            let rows: Vec<rows::AskRow> = sqlx::query_as(OVERDUE)
                .bind(due.boot_millis())
                .bind(i64::from(limit))
                .fetch_all(db.readers())
                .await?;
            owned(rows)
        })
    }

    /// Unsettled asks of holders that were lost at or before `since` on the boot clock.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn orphaned(&self, since: Now, limit: u32) -> Result<Vec<(Ask, String)>, StoreError> {
        on!(self, db => {
            let rows: Vec<rows::AskRow> = sqlx::query_as(ORPHANED)
                .bind(since.boot_millis())
                .bind(i64::from(limit))
                .fetch_all(db.readers())
                .await?;
            owned(rows)
        })
    }

    /// The ids of an instance's unsettled asks, and whether a submission to each is unresolved.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn unsettled_of(&self, instance: &str) -> Result<Vec<(String, bool)>, StoreError> {
        on!(self, db => {
            Ok(sqlx::query_as(UNSETTLED_OF).bind(instance).fetch_all(db.readers()).await?)
        })
    }
}

pub(crate) const OVERDUE: &str = concat!(
    "SELECT ",
    rows::ask_columns!(),
    " FROM asks a LEFT JOIN submissions s ON s.id = a.submission_id \
     WHERE a.state = 'open' AND a.due <= $1 AND NOT EXISTS (SELECT 1 FROM submissions u \
     WHERE u.instance = a.instance AND u.ask = a.id AND u.verdict IS NULL) ORDER BY a.due LIMIT $2"
);

pub(crate) const ORPHANED: &str = concat!(
    "SELECT ",
    rows::ask_columns!(),
    " FROM instances i JOIN asks a ON a.instance = i.id AND a.state <> 'settled' \
     LEFT JOIN submissions s ON s.id = a.submission_id \
     WHERE i.boot_lost IS NOT NULL AND i.boot_lost <= $1 LIMIT $2"
);

pub(crate) const UNSETTLED_OF: &str = "SELECT a.id, EXISTS (SELECT 1 FROM submissions s \
    WHERE s.instance = a.instance AND s.ask = a.id AND s.verdict IS NULL) \
    FROM asks a WHERE a.instance = $1 AND a.state <> 'settled'";

fn owned(rows: Vec<rows::AskRow>) -> Result<Vec<(Ask, String)>, Failure> {
    rows.into_iter().map(|row| OwnedAsk::try_from(row).map(|owned| (owned.ask, owned.instance))).collect()
}
