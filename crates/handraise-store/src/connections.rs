//! Instances of holders: who may speak for which asks (S9), and since when one is lost.

use handraise_api::words::HolderKind;

use crate::{
    Now, Store, StoreError,
    holdings::Bounds,
    on, rows,
    statement::{Sql, Statement},
};

/// What a holder says of itself when it dials.
#[derive(Debug, Clone, Copy)]
pub struct Hello<'a> {
    /// The id of the token that it came with.
    pub token: &'a str,
    /// What kind of holder.
    pub kind: HolderKind,
    /// handraise's version there.
    pub version: &'a str,
    /// The machine's name.
    pub host: &'a str,
}

/// An instance of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Minted by the inbox.
    pub id: String,
    /// The id of the token that it came with.
    pub token: String,
    /// SHA-256 of its resume secret, in hex.
    pub resume_hash: String,
    /// Counts its connections.
    pub epoch: u64,
}

/// Changes no row when the token has as many as it may have (S37).
const INSERT: &str = "INSERT INTO instances (id, token, resume_hash, epoch, kind, version, host) \
    SELECT $1, $2, $3, 1, $4, $5, $6 \
    WHERE COALESCE((SELECT instances FROM holdings WHERE token = $2), 0) < $7";
const FIND: &str = "SELECT id, token, resume_hash, epoch FROM instances WHERE id = $1";
/// Notes that the instance came or went, if the statement before changed it.
const NOTE: &str = "INSERT INTO instance_events (instance, at, kind) SELECT $1, $4, $5 \
    WHERE changes() = 1 AND (SELECT COUNT(*) FROM instance_events WHERE instance = $1) < $6";
const RESUME: Sql = &[
    "UPDATE instances SET epoch = epoch + 1, version = $2, host = $3, lost_at = NULL, boot_lost = NULL \
     WHERE id = $1 RETURNING epoch",
    NOTE,
];
const LOSE: Sql = &["UPDATE instances SET lost_at = $4, boot_lost = $3 WHERE id = $1 AND epoch = $2", NOTE];

/// Comings and goings kept per instance. A holder that flaps for ever must not fill the disk.
const EVENTS_KEPT: i64 = 1_000;

rows::row! {
    InstanceRow { id: String, token: String, resume_hash: String, epoch: i64, }
}

impl Store {
    /// A new instance, connected for the first time. Returns whether its token may have one more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_instance(
        &self,
        id: &str,
        resume_hash: &str,
        hello: Hello<'_>,
        bounds: &Bounds,
    ) -> Result<bool, StoreError> {
        on!(self, db => {
            let adding = Statement::new(&[INSERT])
                .bind(id)
                .bind(hello.token)
                .bind(resume_hash)
                .bind(rows::kind_word(hello.kind))
                .bind(hello.version)
                .bind(hello.host)
                .bind(i64::from(bounds.token_instances));
            Ok(db.write(adding).await?.changed(0) == 1)
        })
    }

    /// One instance.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn instance(&self, id: &str) -> Result<Option<Instance>, StoreError> {
        on!(self, db => {
            let row: Option<InstanceRow> = sqlx::query_as(FIND).bind(id).fetch_optional(&mut *db.reader().await?).await?;
            Ok(row.map(|InstanceRow { id, token, resume_hash, epoch }| Instance {
                id,
                token,
                resume_hash,
                epoch: u64::try_from(epoch).unwrap_or(0),
            }))
        })
    }

    /// An instance is back; returns the epoch of its new connection. `None`: no such instance.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn resume_instance(
        &self,
        now: Now,
        id: &str,
        hello: Hello<'_>,
    ) -> Result<Option<u64>, StoreError> {
        on!(self, db => {
            let resuming = Statement::new(RESUME)
                .bind(id)
                .bind(hello.version)
                .bind(hello.host)
                .bind(now.wall_millis())
                .bind("reconnected")
                .bind(EVENTS_KEPT);
            let epoch: Option<(i64,)> = db.write(resuming).await?.row(0)?;
            Ok(epoch.map(|(epoch,)| u64::try_from(epoch).unwrap_or(0)))
        })
    }

    /// An instance's connection of that epoch ended. Nothing happens when a later one is there.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn lose_instance(&self, now: Now, id: &str, epoch: u64) -> Result<(), StoreError> {
        on!(self, db => {
            let losing = Statement::new(LOSE)
                .bind(id)
                .bind(i64::try_from(epoch).unwrap_or(i64::MAX))
                .bind(now.boot_millis())
                .bind(now.wall_millis())
                .bind("disconnected")
                .bind(EVENTS_KEPT);
            db.write(losing).await?;
            Ok(())
        })
    }
}
