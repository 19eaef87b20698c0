//! What was refused because of who said it (S9, S16): rows that outlive the log.

use handraise_api::audit::AuditEntry;

use crate::{Now, Store, StoreError, error::Failure, on, rows, statement::Statement};

/// The schema's step. Of each token the last thousand are kept, so that who floods it buries nobody else's (S37).
pub(crate) const STEP: &str = "
CREATE TABLE audit (
    id BIGINT PRIMARY KEY NOT NULL,
    at BIGINT NOT NULL,
    what TEXT NOT NULL,
    token TEXT NOT NULL,
    token_name TEXT NOT NULL,
    instance TEXT,
    about TEXT
);
CREATE INDEX audit_by_token ON audit (token, id);
CREATE INDEX audit_by_age ON audit (at);
CREATE TRIGGER audit_bound AFTER INSERT ON audit BEGIN
    DELETE FROM audit WHERE token = NEW.token AND id <= (SELECT id FROM audit WHERE token = NEW.token
        ORDER BY id DESC LIMIT 1 OFFSET 1000);
END;
";

const INSERT: &str = "INSERT INTO audit (id, at, what, token, token_name, instance, about) \
    SELECT COALESCE((SELECT MAX(id) FROM audit), 0) + 1, $1, $2, $3, $4, $5, $6";
const PAGE: &str = "SELECT id, at, what, token, token_name, instance, about FROM audit WHERE id < $1 \
    ORDER BY id DESC LIMIT $2";
/// What is older than a time, a bounded number of rows at once.
pub(crate) const OLD: &str =
    "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)";

/// Something that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// A word of `handraise_refused_total`.
    pub what: &'a str,
    /// The id of the token that it came with.
    pub token: &'a str,
    /// That token's name.
    pub token_name: &'a str,
    /// The holder that said it, if one did.
    pub instance: Option<&'a str>,
    /// The id of what it was about, if it named anything.
    pub about: Option<&'a str>,
}

rows::row! {
    AuditRow {
        id: i64,
        at: i64,
        what: String,
        token: String,
        token_name: String,
        instance: Option<String>,
        about: Option<String>,
    }
}

impl TryFrom<AuditRow> for AuditEntry {
    type Error = Failure;

    fn try_from(row: AuditRow) -> Result<Self, Failure> {
        let AuditRow { id, at, what, token, token_name, instance, about } = row;
        let (id, at) = (u64::try_from(id).unwrap_or(0), rows::time("audit", at)?);
        Ok(Self { id, at, what, token, token_name, instance, about })
    }
}

impl Store {
    /// Keeps that something was refused.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn refused(&self, now: Now, refusal: &Refusal<'_>) -> Result<(), StoreError> {
        on!(self, db => {
            let query = Statement::new(&[INSERT])
                .bind(now.wall_millis())
                .bind(refusal.what)
                .bind(refusal.token)
                .bind(refusal.token_name)
                .bind(refusal.instance)
                .bind(refusal.about);
            db.write(query).await?;
            Ok(())
        })
    }

    /// What was refused, the latest first, before the entry `before`.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn refusals(&self, before: Option<u64>, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
        on!(self, db => {
            let rows: Vec<AuditRow> = sqlx::query_as(PAGE)
                .bind(before)
                .bind(i64::from(limit))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            rows.into_iter().map(TryInto::try_into).collect()
        })
    }
}
