//! Ending asks, exactly once each.

use handraise_api::{
    ask::Ask,
    words::{Outcome, Provenance, Rail, WireAction},
};
use jiff::Timestamp;

use crate::{
    Now, Store, StoreError,
    error::Failure,
    lists::select_asks,
    on,
    rows::{self, AskRow, OwnedAsk},
    statement::{Sql, Statement},
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
///
/// A submission lends its name and provenance only to the outcome that it asked for, and only when the holder has not
/// turned it down before: otherwise a holder could say that a human accepted what a human skipped (S15).
///
/// The parameters from `$at` on are those of [`bind_ending!`], in its order.
macro_rules! settle {
    ($ask:expr, $at:expr, $outcome:expr, $provenance:expr, $rail:expr, $wire:expr, $by:expr, $reason:expr,
        $winner:expr, $rejected:expr) => {
        concat!(
            "UPDATE asks SET state = 'settled', settled_at = CASE WHEN ",
            $at,
            " < opened_at THEN opened_at ELSE ",
            $at,
            " END, outcome = ",
            $outcome,
            ", provenance = COALESCE(w.provenance, ",
            $provenance,
            "), rail = ",
            $rail,
            ", wire = ",
            $wire,
            ", settled_by = CASE WHEN w.id IS NULL THEN ",
            $by,
            " ELSE w.by_name END, reason = ",
            $reason,
            ", submission_id = w.id FROM (SELECT 1) AS always LEFT JOIN submissions w ON w.id = ",
            $winner,
            " AND w.ask = ",
            $ask,
            " AND w.rejected = ",
            $rejected,
            " AND (w.verdict IS NULL OR w.verdict = 'delivered') WHERE asks.id = ",
            $ask,
            " AND asks.state <> 'settled'"
        )
    };
}
pub(crate) use settle;

macro_rules! settle_first {
    () => {
        $crate::settle::settle!("$10", "$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9")
    };
}
/// For a transaction that has more to do.
pub(crate) const SETTLE: &str = settle_first!();
/// By the instance `$11`, or by the inbox itself.
pub(crate) const SETTLE_BY: Sql = &[
    concat!(settle_first!(), " AND ($11 IS NULL OR asks.instance = $11)"),
    select_asks!("WHERE a.id = $10"),
];

/// Binds an ending, as the next nine parameters.
macro_rules! bind_ending {
    ($query:expr, $ending:expr) => {{
        let ending: &$crate::settle::Ending = $ending;
        $query
            .bind(ending.at.as_millisecond())
            .bind(ending.outcome.as_str())
            .bind(ending.provenance.as_str())
            .bind(ending.rail.as_str())
            .bind(ending.wire.map(handraise_api::words::WireAction::as_str))
            .bind(ending.by.as_deref())
            .bind(ending.reason.as_deref())
            .bind(ending.submission_id.as_deref())
            .bind(ending.asks_for())
    }};
}
pub(crate) use bind_ending;

/// Settles within a transaction; yields whether this attempt ended the ask.
macro_rules! settle_in {
    ($tx:expr, $ask:expr, $ending:expr) => {{
        let ask: &str = $ask;
        let settling = $crate::statement::Statement::new(&[$crate::settle::SETTLE]);
        $tx.run($crate::settle::bind_ending!(settling, $ending).bind(ask)).await?.changed(0) == 1
    }};
}
pub(crate) use settle_in;

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
            let settling = bind_ending!(Statement::new(SETTLE_BY), ending).bind(ask).bind(owner);
            let mut outcome = db.write(settling).await?;
            let Some(row) = outcome.row::<AskRow>(1)? else { return Ok(Settled::Unknown) };
            let known = OwnedAsk::try_from(row)?;
            Ok(if owner.is_some_and(|owner| owner != known.instance) {
                Settled::NotOwner
            } else if outcome.changed(0) == 1 {
                Settled::Now(Box::new(known.ask))
            } else {
                Settled::Already(Box::new(known.ask))
            })
        })
    }

    /// Open asks whose deadline was at or before `due` on the boot clock, oldest first. Asks with a submission on its
    /// way are left out: what became of them is not known here.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn overdue(&self, due: Now, limit: u32) -> Result<Vec<(Ask, String)>, StoreError> {
        on!(self, db => {
            let rows: Vec<AskRow> = sqlx::query_as(OVERDUE)
                .bind(due.boot_millis())
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
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
            let rows: Vec<AskRow> = sqlx::query_as(ORPHANED)
                .bind(since.boot_millis())
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
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
            Ok(sqlx::query_as(UNSETTLED_OF).bind(instance).fetch_all(&mut *db.reader().await?).await?)
        })
    }
}

/// Of each holder that has asks open those that are due, which stand first with it.
pub(crate) const OVERDUE: &str = concat!(
    "WITH RECURSIVE holders (instance) AS (SELECT MIN(instance) FROM asks WHERE state <> 'settled' \
     UNION ALL SELECT (SELECT MIN(instance) FROM asks WHERE state <> 'settled' AND instance > holders.instance) \
     FROM holders WHERE holders.instance IS NOT NULL) SELECT ",
    rows::ask_columns!(),
    " FROM holders h CROSS JOIN asks a ON a.instance = h.instance \
     LEFT JOIN submissions s ON s.id = a.submission_id \
     WHERE a.state <> 'settled' AND a.due <= $1 AND NOT EXISTS (SELECT 1 FROM submissions u \
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

fn owned(rows: Vec<AskRow>) -> Result<Vec<(Ask, String)>, Failure> {
    rows.into_iter().map(|row| OwnedAsk::try_from(row).map(|owned| (owned.ask, owned.instance))).collect()
}
