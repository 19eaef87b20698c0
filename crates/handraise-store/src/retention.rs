//! The start of a run, and what is forgotten by age.

use jiff::SignedDuration;

use crate::{
    Now, Store, StoreError, audit, on,
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
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            asks: SignedDuration::from_hours(90 * 24),
            transcripts: SignedDuration::from_hours(30 * 24),
            instances: SignedDuration::from_hours(7 * 24),
            audit: SignedDuration::from_hours(90 * 24),
        }
    }
}

/// Rows forgotten in one transaction, so that answers never wait long for the writer.
const AT_ONCE: i64 = 200;

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
const OLD_TRANSCRIPTS: &str = "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE updated_at < $1 \
    AND waiting = 0 ORDER BY updated_at LIMIT $2)";
const OLD_INSTANCES: &str = "DELETE FROM instances WHERE id IN (SELECT id FROM instances \
    WHERE boot_lost IS NOT NULL AND lost_at < $1 AND open_asks = 0 LIMIT $2)";
/// Tokens that have nothing in here any more.
const EMPTY_HOLDINGS: &str = "DELETE FROM holdings WHERE instances = 0 AND sessions = 0 AND asks = 0";

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

    /// Forgets what is older than `keep`, a bounded number of rows at a time. Returns whether there is more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn prune(&self, now: Now, keep: Retention) -> Result<bool, StoreError> {
        let cutoff = |age: SignedDuration| now.wall.saturating_sub(age).unwrap_or(now.wall).as_millisecond();
        let steps: [(Sql, i64); 4] = [
            (&[OLD_ASKS], cutoff(keep.asks)),
            (&[OLD_TRANSCRIPTS], cutoff(keep.transcripts)),
            (&[OLD_INSTANCES], cutoff(keep.instances)),
            (&[audit::OLD], cutoff(keep.audit)),
        ];
        on!(self, db => {
            let mut more = false;
            for (statement, before) in steps {
                let gone = db.write_aside(Statement::new(statement).bind(before).bind(AT_ONCE)).await?;
                more |= i64::try_from(gone.changed(0)).unwrap_or(0) == AT_ONCE;
            }
            db.write(Statement::new(&[EMPTY_HOLDINGS])).await?;
            Ok(more)
        })
    }
}
