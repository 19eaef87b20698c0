//! The start of a run, and what is forgotten by age.

use jiff::SignedDuration;

use crate::{
    Now, Store, StoreError, audit, on, records,
    statement::{Sql, Statement},
};

/// How long things are kept after they ended (inbox.md, "Rows": 90, 30 and 90 days).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Settled asks, with their submissions.
    pub asks: SignedDuration,
    /// Transcripts nothing was added to.
    pub transcripts: SignedDuration,
    /// Instances of holders that never came back.
    pub instances: SignedDuration,
    /// What was refused because of who said it.
    pub audit: SignedDuration,
    /// Records of the rails that were tried.
    pub records: SignedDuration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            asks: SignedDuration::from_hours(90 * 24),
            transcripts: SignedDuration::from_hours(30 * 24),
            instances: SignedDuration::from_hours(7 * 24),
            audit: SignedDuration::from_hours(90 * 24),
            records: SignedDuration::from_hours(90 * 24),
        }
    }
}

/// Rows that a call forgets of each kind.
const AT_ONCE: usize = 200;
/// Rows forgotten in one transaction: answers never wait long for the writer.
const TOGETHER: usize = 20;
/// Entries of a transcript, and bytes of them, that are forgotten in one transaction.
const ENTRIES_TOGETHER: i64 = 200;
const ENTRY_BYTES_TOGETHER: i64 = 256 * 1024;

const META: &str = "SELECT value FROM meta WHERE key = $1";
const SET_META: &str =
    "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const REBASE: Sql = &[REBASE_DUE, REBASE_SEEN, REBASE_LOST];
const REBASE_DUE: &str = "UPDATE asks SET due = CASE WHEN deadline IS NULL THEN due \
    WHEN deadline <= $2 THEN $1 ELSE $1 + (deadline - $2) END WHERE state <> 'settled'";
const REBASE_SEEN: &str = "UPDATE seen SET boot_seen = 0 \
    WHERE ask IN (SELECT id FROM asks WHERE state <> 'settled')";
const REBASE_LOST: &str =
    "UPDATE instances SET boot_lost = $1 - ($2 - lost_at) WHERE boot_lost IS NOT NULL AND lost_at <= $2";
const TAKE_OVER: Sql = &[LOSE_ALL, END_UNCLAIMED];
const LOSE_ALL: &str = "UPDATE instances SET lost_at = $1, boot_lost = $2 WHERE boot_lost IS NULL";
/// Sessions that the inbox started and nobody claimed: their process ended with the run that started it.
const END_UNCLAIMED: &str =
    "UPDATE sessions SET state = 'ended', updated_at = $1 WHERE state <> 'ended' AND instance IS NULL";
const OLD_ASKS: &str = "DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE state = 'settled' \
    AND settled_at < $1 ORDER BY settled_at LIMIT $2)";
/// Transcripts nothing was added to for long. Looked for beside the writer: no index has their order.
const OLD_SESSIONS: &str =
    "SELECT id FROM sessions WHERE updated_at < $1 AND waiting = 0 ORDER BY updated_at LIMIT $2";
/// The oldest entries of a session `$1`, `$3` of them and `$4` bytes at most.
macro_rules! oldest_entries {
    () => {
        "(SELECT seq, bytes FROM (SELECT seq, bytes, SUM(bytes) OVER (ORDER BY seq) - bytes AS before FROM \
          (SELECT seq, bytes FROM messages WHERE session_id = $1 ORDER BY seq LIMIT $3)) WHERE before < $4)"
    };
}
/// A part of a transcript, and the session when nothing is left of it, if it is still as old.
const FORGET_TRANSCRIPT: Sql = &[
    concat!(
        "UPDATE sessions SET bytes = bytes - (SELECT COALESCE(SUM(bytes), 0) FROM ",
        oldest_entries!(),
        ") WHERE id = $1 AND updated_at < $2 AND waiting = 0"
    ),
    concat!(
        "DELETE FROM messages WHERE session_id = $1 AND changes() = 1 AND seq IN (SELECT seq FROM ",
        oldest_entries!(),
        ")"
    ),
    "DELETE FROM sessions WHERE id = $1 AND updated_at < $2 AND waiting = 0 \
     AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = $1)",
];
/// Also looked for beside the writer, and there may be a hundred thousand that are not old enough.
const OLD_INSTANCES: &str =
    "SELECT id FROM instances WHERE boot_lost IS NOT NULL AND lost_at < $1 AND open_asks = 0 LIMIT $2";
const FORGET_INSTANCE: Sql =
    &["DELETE FROM instances WHERE id = $1 AND boot_lost IS NOT NULL AND lost_at < $2 AND open_asks = 0"];
/// Tokens that have nothing in here any more.
const EMPTY_HOLDINGS: &str =
    "DELETE FROM holdings WHERE instances = 0 AND sessions = 0 AND asks = 0 AND records = 0";

impl Store {
    /// Takes over the rows of earlier runs; returns how many runs there have been, this one included.
    pub(crate) async fn begin_run(&self, boot: &str, now: Now) -> Result<u64, StoreError> {
        on!(self, db => {
            let mut tx = db.begin().await?;
            let meta = |key: &str| Statement::new(&[META]).bind(key);
            let set_meta = |key: &str, value: &str| Statement::new(&[SET_META]).bind(key).bind(value);
            let (boot_now, wall_now) = (now.boot_millis(), now.wall_millis());
            let earlier: Option<(String,)> = tx.run(meta("boot")).await?.row(0)?;
            if earlier.is_none_or(|(earlier,)| earlier != boot) {
                tx.run(Statement::new(REBASE).bind(boot_now).bind(wall_now)).await?;
                tx.run(set_meta("boot", boot)).await?;
            }
            tx.run(Statement::new(TAKE_OVER).bind(wall_now).bind(boot_now)).await?;
            let runs: Option<(String,)> = tx.run(meta("runs")).await?.row(0)?;
            let run = runs.and_then(|(runs,)| runs.parse::<u64>().ok()).unwrap_or(0) + 1;
            tx.run(set_meta("runs", &run.to_string())).await?;
            tx.commit().await?;
            Ok(run)
        })
    }

    /// Forgets what is older than `keep`, a bounded number of rows, a few at a time: whoever writes meanwhile goes between.
    /// Returns whether there may be more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune(&self, now: Now, keep: Retention) -> Result<bool, StoreError> {
        let cutoff = |age: SignedDuration| now.wall.saturating_sub(age).unwrap_or(now.wall).as_millisecond();
        let asks = self.forget_rows(&[OLD_ASKS], cutoff(keep.asks)).await?;
        let transcripts = self.forget_transcripts(cutoff(keep.transcripts)).await?;
        let instances = self.forget_instances(cutoff(keep.instances)).await?;
        let audit = self.forget_rows(&[audit::OLD], cutoff(keep.audit)).await?;
        let records = self.forget_rows(&[records::OLD], cutoff(keep.records)).await?;
        on!(self, db => db.write(Statement::new(&[EMPTY_HOLDINGS])).await)?;
        Ok(asks || transcripts || instances || audit || records)
    }

    /// Runs a statement that forgets `$2` rows that are older than `$1`.
    async fn forget_rows(&self, sql: Sql, before: i64) -> Result<bool, StoreError> {
        on!(self, db => {
            for _ in 0..AT_ONCE / TOGETHER {
                let statement = Statement::new(sql).bind(before).bind(count(TOGETHER));
                if usize::try_from(db.write_aside(statement).await?.changed(0)) != Ok(TOGETHER) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    async fn forget_transcripts(&self, before: i64) -> Result<bool, StoreError> {
        on!(self, db => {
            let old: Vec<String> = sqlx::query_scalar(OLD_SESSIONS)
                .bind(before)
                .bind(count(AT_ONCE))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            for session in &old {
                // As long as entries of it go.
                loop {
                    let statement = Statement::new(FORGET_TRANSCRIPT)
                        .bind(session)
                        .bind(before)
                        .bind(ENTRIES_TOGETHER)
                        .bind(ENTRY_BYTES_TOGETHER);
                    let gone = db.write_aside(statement).await?;
                    if gone.changed(1) == 0 || gone.changed(2) == 1 {
                        break;
                    }
                }
            }
            Ok(old.len() == AT_ONCE)
        })
    }

    async fn forget_instances(&self, before: i64) -> Result<bool, StoreError> {
        on!(self, db => {
            let old: Vec<String> = sqlx::query_scalar(OLD_INSTANCES)
                .bind(before)
                .bind(count(AT_ONCE))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            for instance in &old {
                db.write_aside(Statement::new(FORGET_INSTANCE).bind(instance).bind(before)).await?;
            }
            Ok(old.len() == AT_ONCE)
        })
    }
}

fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
