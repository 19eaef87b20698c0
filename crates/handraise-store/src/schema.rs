//! The schema, as the steps that led to it. Forward only: a step that was released is never changed.

use sqlx::{
    AssertSqlSafe, SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

use crate::{audit, holdings, outbox, records};

/// `(version, what it does, statements)`.
const STEPS: &[(i64, &str, &str)] = &[
    (1, "asks, sessions and access", FIRST),
    (2, "what each holder token has", holdings::STEP),
    (3, "notifications by trigger", outbox::STEP),
    (4, "what goes on in the background", BACKGROUND),
    (5, "whose asks are whose", OWNERS),
    (6, "what was refused because of who said it", audit::STEP),
    (7, "fewer pages for every ask", outbox::LIGHTER),
    (8, "records of the rails that were tried", records::STEP),
];

/// The latest version.
pub(crate) const LATEST: i64 = STEPS[STEPS.len() - 1].0;

/// All steps, for a database of any age.
pub(crate) fn migrator() -> Migrator {
    let steps = STEPS.iter().map(|(version, description, sql)| {
        Migration::new(
            *version,
            (*description).into(),
            MigrationType::Simple,
            AssertSqlSafe(*sql).into_sql_str(),
            false,
        )
    });
    Migrator::with_migrations(steps.collect())
}

/// Whether an open ask is `sent` is not a column: it is, while a submission to it has no verdict.
///
/// Times are milliseconds: `…_at`, `deadline` and `…_until` since the epoch, `due` and `boot…` on the boot clock.
/// `due` is 2^63 - 1 where there is no deadline, so that it sorts last.
const FIRST: &str = "
CREATE TABLE meta (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    owner TEXT,
    parent TEXT REFERENCES tokens (id) ON DELETE CASCADE,
    page_session BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX tokens_by_parent ON tokens (parent) WHERE parent IS NOT NULL;

CREATE TABLE flags (
    name TEXT PRIMARY KEY NOT NULL,
    value BOOLEAN NOT NULL
);

CREATE TABLE instances (
    id TEXT PRIMARY KEY NOT NULL,
    token TEXT NOT NULL,
    resume_hash TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    host TEXT NOT NULL,
    lost_at BIGINT,
    boot_lost BIGINT
);
CREATE INDEX instances_lost ON instances (boot_lost) WHERE boot_lost IS NOT NULL;

CREATE TABLE instance_events (
    instance TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL
);
CREATE INDEX instance_events_by_instance ON instance_events (instance, at);

CREATE TABLE asks (
    id TEXT PRIMARY KEY NOT NULL,
    instance TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'settled')),
    digest TEXT NOT NULL,
    source TEXT NOT NULL,
    session_id TEXT,
    bytes BIGINT NOT NULL,
    opened_at BIGINT NOT NULL,
    deadline BIGINT,
    due BIGINT NOT NULL,
    parked_until BIGINT,
    settled_at BIGINT,
    outcome TEXT,
    provenance TEXT,
    rail TEXT,
    wire TEXT,
    settled_by TEXT,
    reason TEXT,
    submission_id TEXT,
    holder_kind TEXT NOT NULL,
    holder_token TEXT NOT NULL,
    client TEXT,
    server TEXT,
    content TEXT NOT NULL,
    CHECK ((state = 'settled') = (outcome IS NOT NULL)),
    CHECK ((outcome IS NULL) = (settled_at IS NULL)),
    CHECK ((outcome IS NULL) = (provenance IS NULL)),
    CHECK ((outcome IS NULL) = (rail IS NULL))
);
CREATE INDEX asks_open_by_holder ON asks (instance, due, id) WHERE state <> 'settled';
CREATE INDEX asks_open_by_source ON asks (source, instance, due, id) WHERE state <> 'settled';
CREATE INDEX asks_open_by_session ON asks (session_id, due, id) WHERE state <> 'settled';
CREATE INDEX asks_open_by_due ON asks (due) WHERE state = 'open';
CREATE INDEX asks_settled ON asks (settled_at, id) WHERE state = 'settled';
CREATE INDEX asks_settled_by_source ON asks (source, settled_at, id) WHERE state = 'settled';
CREATE INDEX asks_settled_by_session ON asks (session_id, settled_at, id) WHERE state = 'settled';

CREATE TABLE submissions (
    id TEXT PRIMARY KEY NOT NULL,
    ask TEXT NOT NULL REFERENCES asks (id) ON DELETE CASCADE,
    instance TEXT NOT NULL,
    token TEXT NOT NULL,
    by_name TEXT NOT NULL,
    provenance TEXT NOT NULL,
    answers TEXT NOT NULL,
    rejected BOOLEAN NOT NULL,
    reject_reason TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    submitted_at BIGINT NOT NULL,
    verdict TEXT,
    verdict_at BIGINT,
    CHECK ((verdict IS NULL) = (verdict_at IS NULL))
);
CREATE INDEX submissions_by_ask ON submissions (ask, submitted_at);
CREATE INDEX submissions_unresolved ON submissions (instance, ask) WHERE verdict IS NULL;

CREATE TABLE seen (
    ask TEXT NOT NULL REFERENCES asks (id) ON DELETE CASCADE,
    token TEXT NOT NULL,
    by_name TEXT NOT NULL,
    surface TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    boot_seen BIGINT NOT NULL,
    PRIMARY KEY (ask, token)
);

CREATE TABLE outbox (
    id BIGINT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    ask TEXT NOT NULL,
    at BIGINT NOT NULL
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    instance TEXT,
    agent TEXT NOT NULL,
    title TEXT,
    cwd TEXT,
    state TEXT NOT NULL CHECK (state IN ('idle', 'running', 'ended')),
    stop_reason TEXT,
    holder_token TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_seq BIGINT NOT NULL DEFAULT 0,
    last_holder_seq BIGINT NOT NULL DEFAULT -1,
    bytes BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_start ON sessions (started_at, id);
CREATE INDEX sessions_alive ON sessions (started_at, id) WHERE state <> 'ended';
CREATE INDEX sessions_by_instance ON sessions (instance);
CREATE INDEX sessions_by_update ON sessions (updated_at);

CREATE TABLE messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
);
";

/// Asks of before have no owner: what they say of `who` was not read then, and nobody is told apart now (S16).
const OWNERS: &str = "ALTER TABLE asks ADD COLUMN holder_owner TEXT;";

const BACKGROUND: &str = "ALTER TABLE sessions ADD COLUMN background BOOLEAN NOT NULL DEFAULT FALSE;";
