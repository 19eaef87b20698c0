//! Asks, sessions and tokens at rest.
//!
//! One [`Store`] per inbox. Statements are constants that number their parameters (`$1`), so that one text serves
//! every database; what differs between databases is in the arm of the database ([`sqlite`](mod@sqlite) today).
//! The store never reads a clock: whoever calls it says what time it is ([`Now`]).
//!
//! Rules that live in statements and nowhere else:
//! - an ask is settled by `UPDATE … WHERE state <> 'settled'`, and only when exactly one row changed;
//! - a submission is committed before anybody may forward it;
//! - the outbox row of a notification, and the counts of what is open, are written by triggers in the transaction that
//!   opens or settles its ask;
//! - what a holder and its token may have is a condition of the statement that adds it ([`Bounds`]);
//! - what happened to an ask ([`AskEvent`](handraise_api::ask::AskEvent)) is read from the rows that made it happen,
//!   so that the history cannot disagree with the state.

mod access;
mod asks;
mod audit;
mod backup;
mod connections;
mod detail;
mod error;
mod holdings;
mod lists;
mod notes;
mod outbox;
mod records;
mod retention;
mod rows;
mod schema;
mod sessions;
mod settle;
mod sqlite;
mod statement;
mod submissions;
mod transcripts;
mod trouble;

use std::path::Path;

use handraise_core::Moment;
use jiff::Timestamp;

pub use access::{NewToken, StoredToken};
pub use asks::{Announced, Announcement};
pub use audit::Refusal;
pub use backup::{Contents, back_up};
pub use connections::{Hello, Instance};
pub use error::{Fault, StoreError};
pub use holdings::{Bounds, Full};
pub use lists::{Cursor, Filter, Page};
pub use outbox::{Notice, NoticeKind};
pub use records::{NewRecord, RecordFilter};
pub use retention::Retention;
pub use sessions::{Claim, NewSession};
pub use settle::{Ending, Settled};
pub use sqlite::{DATABASE_FILE, Sqlite};
pub use submissions::{NewSubmission, Painted, Replied, StoredSubmission, Verdict};
pub use transcripts::Appended;

/// What time it is, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// For people.
    pub wall: Timestamp,
    /// For deadlines.
    pub boot: Moment,
}

impl Now {
    fn wall_millis(self) -> i64 {
        self.wall.as_millisecond()
    }

    fn boot_millis(self) -> i64 {
        i64::try_from(self.boot.as_millis()).unwrap_or(i64::MAX)
    }
}

/// Makes the data directory, closed to other users, or sees to it that it is.
///
/// # Errors
/// When it cannot be made, or is open to others and holds files that are not ours.
pub fn prepare(data_dir: &Path) -> Result<(), StoreError> {
    sqlite::secure_directory(data_dir)
}

/// The inbox's database. Clones share its connections.
#[derive(Debug, Clone)]
pub enum Store {
    /// A file in the data directory.
    Sqlite(Sqlite),
}

/// Runs a body against whichever database this is. The body is type-checked once per arm.
macro_rules! on {
    ($store:expr, $db:ident => $body:expr) => {
        match $store {
            $crate::Store::Sqlite($db) => {
                let outcome: Result<_, $crate::error::Failure> = async { $body }.await;
                outcome.map_err(|failure| $db.name(failure))
            }
        }
    };
}
pub(crate) use on;

/// How much of the database each connection keeps in memory at most, unless it is said otherwise.
pub const CACHE_BYTES: u64 = 8 * 1024 * 1024;

impl Store {
    /// Opens the database in `data_dir`, making both when they are not there, and brings its schema up to date.
    ///
    /// Rows of an earlier run are taken over: every holder counts as lost until it dials again, and deadlines that
    /// were measured on the boot clock of an earlier boot of the machine (`boot` names the present one) are carried
    /// over by the wall clock, the only one that survives a reboot.
    ///
    /// # Errors
    /// When the directory is open to other users, the file cannot be used, or it was written by a newer handraise.
    pub async fn open(data_dir: &Path, boot: &str, now: Now) -> Result<(Self, u64), StoreError> {
        Self::open_with(data_dir, boot, now, CACHE_BYTES).await
    }

    /// Like [`open`](Self::open); each of the connections keeps at most so many bytes of the database in memory.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub async fn open_with(
        data_dir: &Path,
        boot: &str,
        now: Now,
        cache_bytes: u64,
    ) -> Result<(Self, u64), StoreError> {
        let store = Self::Sqlite(Sqlite::open(data_dir, cache_bytes).await?);
        let run = store.begin_run(boot, now).await?;
        Ok((store, run))
    }

    /// Opens the database in `data_dir` like [`open`](Self::open), but takes no rows of an earlier run over: for
    /// tokens and checks, beside a running inbox or without one.
    ///
    /// # Errors
    /// When the directory is open to other users, the file cannot be used, or it was written by a newer handraise.
    pub async fn open_aside(data_dir: &Path) -> Result<Self, StoreError> {
        Ok(Self::Sqlite(Sqlite::open(data_dir, CACHE_BYTES).await?))
    }

    /// Whether the database answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        on!(self, db => {
            sqlx::query("SELECT 1").execute(&mut *db.reader().await?).await?;
            Ok(())
        })
    }

    /// Tidies up behind the writer, if there is much to do. To be called a few times a second.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn checkpoint(&self) -> Result<(), StoreError> {
        on!(self, db => db.checkpoint().await)
    }

    /// Closes the connections, which also folds the write-ahead log into the database file.
    pub async fn close(&self) {
        match self {
            Self::Sqlite(db) => db.close().await,
        }
    }
}

/// The statements whose plans matter, with the indexes that they must use: for a test that asks the database.
#[doc(hidden)]
pub fn statements() -> &'static [(&'static str, &'static str, &'static [&'static str])] {
    &[
        ("open", lists::OPEN, &["asks_open_by_holder"]),
        ("open by source", lists::OPEN_BY_SOURCE, &["asks_open_by_source"]),
        ("open by session", lists::OPEN_BY_SESSION, &["asks_open_by_session"]),
        ("settled", lists::SETTLED, &["asks_settled"]),
        ("settled by source", lists::SETTLED_BY_SOURCE, &["asks_settled_by_source"]),
        ("settled by session", lists::SETTLED_BY_SESSION, &["asks_settled_by_session"]),
        ("overdue", settle::OVERDUE, &["asks_open_by_holder"]),
        ("orphaned", settle::ORPHANED, &["instances_lost", "asks_open_by_holder"]),
        ("unsettled of", settle::UNSETTLED_OF, &["asks_open_by_holder", "submissions_unresolved"]),
        ("sessions alive", sessions::ALIVE, &["sessions_alive"]),
        ("sessions latest", sessions::LATEST, &["sessions_by_start"]),
    ]
}
