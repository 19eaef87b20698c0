//! What each holder token has in here, counted by the database itself, and how much it may have (S37).
//!
//! Triggers keep the counts, so that no statement can change rows and forget to count them, and so that opening,
//! settling and listing cost the same however many asks are open. `holdings` has one row a token; `instances` and
//! `sessions` carry the counts of their own asks.

use crate::{Store, StoreError, on, rows};

/// The second step of the schema.
///
/// An ask or session that is older than this step, and whose instance is forgotten, has no `token` and is not counted.
pub(crate) const STEP: &str = "
CREATE TABLE holdings (
    token TEXT PRIMARY KEY NOT NULL,
    instances BIGINT NOT NULL DEFAULT 0,
    sessions BIGINT NOT NULL DEFAULT 0,
    asks BIGINT NOT NULL DEFAULT 0,
    bytes BIGINT NOT NULL DEFAULT 0,
    open_asks BIGINT NOT NULL DEFAULT 0
);
ALTER TABLE instances ADD COLUMN open_asks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE instances ADD COLUMN open_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN waiting BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN token TEXT;
ALTER TABLE asks ADD COLUMN token TEXT;

UPDATE asks SET token = (SELECT i.token FROM instances i WHERE i.id = asks.instance);
UPDATE sessions SET token = (SELECT i.token FROM instances i WHERE i.id = sessions.instance),
    waiting = (SELECT COUNT(*) FROM asks a WHERE a.session_id = sessions.id AND a.state <> 'settled');
UPDATE instances SET
    open_asks = (SELECT COUNT(*) FROM asks a WHERE a.instance = instances.id AND a.state <> 'settled'),
    open_bytes = (SELECT COALESCE(SUM(bytes), 0) FROM asks a
        WHERE a.instance = instances.id AND a.state <> 'settled');
INSERT INTO holdings (token, instances, sessions, asks, bytes, open_asks)
    SELECT token, SUM(instances), SUM(sessions), SUM(asks), SUM(bytes), SUM(open_asks) FROM (
        SELECT token, 1 AS instances, 0 AS sessions, 0 AS asks, 0 AS bytes, 0 AS open_asks FROM instances
        UNION ALL SELECT token, 0, 1, 0, bytes, 0 FROM sessions WHERE token IS NOT NULL
        UNION ALL SELECT token, 0, 0, 1, bytes, CASE WHEN state <> 'settled' THEN 1 ELSE 0 END
            FROM asks WHERE token IS NOT NULL
    ) AS counted GROUP BY token;

CREATE TRIGGER instances_come AFTER INSERT ON instances BEGIN
    INSERT INTO holdings (token) VALUES (NEW.token) ON CONFLICT (token) DO NOTHING;
    UPDATE holdings SET instances = instances + 1 WHERE token = NEW.token;
END;
CREATE TRIGGER instances_go AFTER DELETE ON instances BEGIN
    UPDATE holdings SET instances = instances - 1 WHERE token = OLD.token;
END;

CREATE TRIGGER asks_come AFTER INSERT ON asks BEGIN
    UPDATE holdings SET asks = asks + 1, bytes = bytes + NEW.bytes,
        open_asks = open_asks + CASE WHEN NEW.state <> 'settled' THEN 1 ELSE 0 END WHERE token = NEW.token;
END;
CREATE TRIGGER asks_open AFTER INSERT ON asks WHEN NEW.state <> 'settled' BEGIN
    UPDATE instances SET open_asks = open_asks + 1, open_bytes = open_bytes + NEW.bytes
        WHERE id = NEW.instance;
    UPDATE sessions SET waiting = waiting + 1 WHERE id = NEW.session_id;
END;
CREATE TRIGGER asks_settle AFTER UPDATE OF state ON asks WHEN OLD.state <> 'settled' AND NEW.state = 'settled'
BEGIN
    UPDATE holdings SET open_asks = open_asks - 1 WHERE token = NEW.token;
    UPDATE instances SET open_asks = open_asks - 1, open_bytes = open_bytes - NEW.bytes
        WHERE id = NEW.instance;
    UPDATE sessions SET waiting = waiting - 1 WHERE id = NEW.session_id;
END;
CREATE TRIGGER asks_go AFTER DELETE ON asks WHEN OLD.state = 'settled' BEGIN
    UPDATE holdings SET asks = asks - 1, bytes = bytes - OLD.bytes WHERE token = OLD.token;
END;

CREATE TRIGGER sessions_come AFTER INSERT ON sessions WHEN NEW.token IS NOT NULL BEGIN
    UPDATE holdings SET sessions = sessions + 1, bytes = bytes + NEW.bytes WHERE token = NEW.token;
END;
CREATE TRIGGER sessions_claimed AFTER UPDATE OF token ON sessions
WHEN OLD.token IS NULL AND NEW.token IS NOT NULL BEGIN
    UPDATE holdings SET sessions = sessions + 1, bytes = bytes + NEW.bytes WHERE token = NEW.token;
END;
CREATE TRIGGER sessions_grow AFTER UPDATE OF bytes ON sessions WHEN OLD.token IS NOT NULL BEGIN
    UPDATE holdings SET bytes = bytes + NEW.bytes - OLD.bytes WHERE token = NEW.token;
END;
CREATE TRIGGER sessions_go AFTER DELETE ON sessions WHEN OLD.token IS NOT NULL BEGIN
    UPDATE holdings SET sessions = sessions - 1, bytes = bytes - OLD.bytes WHERE token = OLD.token;
END;
";

/// How much holders may have in here. What counts for a token counts for everything that comes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Open asks of one instance.
    pub open_asks: u32,
    /// Bytes of the open asks of one instance.
    pub open_bytes: u64,
    /// Open asks of one session.
    pub session_open_asks: u32,
    /// Open asks of one token.
    pub token_open_asks: u32,
    /// Asks of one token, those included that have ended and are not yet forgotten.
    pub token_asks: u32,
    /// Bytes of the asks and transcripts of one token.
    pub token_bytes: u64,
    /// Sessions of one token that are not yet forgotten.
    pub token_sessions: u32,
    /// Instances of one token that are not yet forgotten.
    pub token_instances: u32,
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self = Self {
        open_asks: u32::MAX,
        open_bytes: u64::MAX,
        session_open_asks: u32::MAX,
        token_open_asks: u32::MAX,
        token_asks: u32::MAX,
        token_bytes: u64::MAX,
        token_sessions: u32::MAX,
        token_instances: u32::MAX,
    };
}

/// Bytes as the database counts them.
pub(crate) fn bytes(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Which bound an addition would break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// [`Bounds::open_asks`].
    OpenAsks,
    /// [`Bounds::open_bytes`].
    OpenBytes,
    /// [`Bounds::session_open_asks`].
    SessionOpenAsks,
    /// [`Bounds::token_open_asks`].
    TokenOpenAsks,
    /// [`Bounds::token_asks`].
    TokenAsks,
    /// [`Bounds::token_bytes`].
    TokenBytes,
    /// [`Bounds::token_sessions`].
    TokenSessions,
    /// [`Bounds::token_instances`].
    TokenInstances,
}

const OPEN: &str = "SELECT CAST(COALESCE(SUM(open_asks), 0) AS BIGINT) FROM holdings";

/// What stands beside an ask that was not taken: the counts of its instance, its session and its token.
pub(crate) const COUNTS: &str = "SELECT i.open_asks, i.open_bytes, \
    COALESCE((SELECT waiting FROM sessions WHERE id = $2), 0) AS waiting, \
    h.open_asks AS token_open_asks, h.asks AS token_asks, h.bytes AS token_bytes \
    FROM instances i JOIN holdings h ON h.token = i.token WHERE i.id = $1";

rows::row! {
    Counts {
        open_asks: i64,
        open_bytes: i64,
        waiting: i64,
        token_open_asks: i64,
        token_asks: i64,
        token_bytes: i64,
    }
}

impl Counts {
    /// Which bound one more ask of that many bytes would break, the narrowest first.
    pub(crate) fn full(&self, bounds: &Bounds, more: i64) -> Option<Full> {
        let above = |bytes: i64, most: u64| bytes.saturating_add(more) > self::bytes(most);
        [
            (self.waiting >= i64::from(bounds.session_open_asks), Full::SessionOpenAsks),
            (self.open_asks >= i64::from(bounds.open_asks), Full::OpenAsks),
            (above(self.open_bytes, bounds.open_bytes), Full::OpenBytes),
            (self.token_open_asks >= i64::from(bounds.token_open_asks), Full::TokenOpenAsks),
            (self.token_asks >= i64::from(bounds.token_asks), Full::TokenAsks),
            (above(self.token_bytes, bounds.token_bytes), Full::TokenBytes),
        ]
        .into_iter()
        .find_map(|(is_full, which)| is_full.then_some(which))
    }
}

impl Store {
    /// How many asks are open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_open(&self) -> Result<u64, StoreError> {
        on!(self, db => {
            let count: i64 = sqlx::query_scalar(OPEN).fetch_one(&mut *db.reader().await?).await?;
            Ok(u64::try_from(count).unwrap_or(0))
        })
    }
}
