//! Tokens, hashed at rest, and the flags that operators set.

use std::collections::BTreeMap;

use handraise_api::access::{Scope, Token};
use jiff::Timestamp;

use crate::{Now, Store, StoreError, error::Failure, on, rows, statement::Statement};

/// A token to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What operators see of it.
    pub token: Token,
    /// SHA-256 of its secret, in hex.
    pub hash: String,
    /// The token that it was made with; it ends with that one.
    pub parent: Option<String>,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// What operators see of it.
    pub token: Token,
    /// SHA-256 of its secret, in hex.
    pub hash: String,
    /// The token that it was made with.
    pub parent: Option<String>,
}

const ALL: &str = "SELECT id, hash, name, scope, owner, parent, page_session, created_at, expires_at FROM tokens \
    ORDER BY created_at DESC, id DESC";
const INSERT: &str = "INSERT INTO tokens (id, hash, name, scope, owner, parent, page_session, created_at, \
    expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const DELETE: &str = "DELETE FROM tokens WHERE id = $1";
const EXPIRED: &str = "DELETE FROM tokens WHERE expires_at IS NOT NULL AND expires_at <= $1";
const FLAGS: &str = "SELECT name, value FROM flags";
const SET_FLAG: &str =
    "INSERT INTO flags (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const CLEAR_FLAG: &str = "DELETE FROM flags WHERE name = $1";

rows::row! {
    TokenRow {
        id: String,
        hash: String,
        name: String,
        scope: String,
        owner: Option<String>,
        parent: Option<String>,
        page_session: bool,
        created_at: i64,
        expires_at: Option<i64>,
    }
}

impl TryFrom<TokenRow> for StoredToken {
    type Error = Failure;

    fn try_from(row: TokenRow) -> Result<Self, Failure> {
        Ok(Self {
            token: Token {
                id: row.id,
                name: row.name,
                scope: rows::word::<Scope>("tokens", &row.scope)?,
                owner: row.owner,
                created_at: rows::time("tokens", row.created_at)?,
                expires_at: row.expires_at.map(|at| rows::time("tokens", at)).transpose()?,
                page_session: row.page_session,
            },
            hash: row.hash,
            parent: row.parent,
        })
    }
}

impl Store {
    /// Every token, the newest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tokens(&self) -> Result<Vec<StoredToken>, StoreError> {
        on!(self, db => {
            let rows: Vec<TokenRow> = sqlx::query_as(ALL).fetch_all(&mut *db.reader().await?).await?;
            rows.into_iter().map(TryInto::try_into).collect()
        })
    }

    /// Keeps a token.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn add_token(&self, new: &NewToken) -> Result<(), StoreError> {
        let token = &new.token;
        on!(self, db => {
            let adding = Statement::new(&[INSERT])
                .bind(&token.id)
                .bind(&new.hash)
                .bind(&token.name)
                .bind(token.scope.as_str())
                .bind(&token.owner)
                .bind(&new.parent)
                .bind(token.page_session)
                .bind(token.created_at.as_millisecond())
                .bind(token.expires_at.map(Timestamp::as_millisecond));
            db.write(adding).await?;
            Ok(())
        })
    }

    /// Forgets a token and the page sessions made with it. Returns whether there was one.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn delete_token(&self, id: &str) -> Result<bool, StoreError> {
        on!(self, db => {
            Ok(db.write(Statement::new(&[DELETE]).bind(id)).await?.changed(0) > 0)
        })
    }

    /// Forgets the tokens that have expired.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn forget_expired_tokens(&self, now: Now) -> Result<(), StoreError> {
        on!(self, db => {
            db.write(Statement::new(&[EXPIRED]).bind(now.wall_millis())).await?;
            Ok(())
        })
    }

    /// The flags that operators have set.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn flags(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        on!(self, db => {
            let rows: Vec<(String, bool)> = sqlx::query_as(FLAGS).fetch_all(&mut *db.reader().await?).await?;
            Ok(rows.into_iter().collect())
        })
    }

    /// Sets a flag, or takes the setting back.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn set_flag(&self, name: &str, value: Option<bool>) -> Result<(), StoreError> {
        on!(self, db => {
            let setting = match value {
                Some(value) => Statement::new(&[SET_FLAG]).bind(name).bind(value),
                None => Statement::new(&[CLEAR_FLAG]).bind(name),
            };
            db.write(setting).await?;
            Ok(())
        })
    }
}
