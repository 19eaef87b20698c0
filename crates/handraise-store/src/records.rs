//! Records of the rails that holders have tried (measure.md). Never arguments, never answers.

use handraise_api::{
    record::{Record, RecordEntry, RecordHolder},
    words::{Declared, Era, HolderKind, Outcome, Provenance, Rail},
};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    error::Failure,
    on,
    rows::{self, holder_kind, word},
    statement::Statement,
};

/// The schema's step. Of each token the last 100,000 are kept, so that who floods it buries nobody else's (S37); what is
/// left is counted beside it, so that the oldest is found without counting.
pub(crate) const STEP: &str = "
CREATE TABLE records (
    id BIGINT PRIMARY KEY NOT NULL,
    instance TEXT NOT NULL,
    seq BIGINT NOT NULL,
    token TEXT NOT NULL,
    token_name TEXT NOT NULL,
    holder_kind TEXT NOT NULL,
    at BIGINT NOT NULL,
    declared TEXT NOT NULL,
    era TEXT NOT NULL,
    rail TEXT NOT NULL,
    outcome TEXT NOT NULL,
    provenance TEXT NOT NULL,
    latency BIGINT,
    tool TEXT,
    refusal TEXT,
    client TEXT,
    protocol_version TEXT,
    reason TEXT,
    ask TEXT
);
CREATE UNIQUE INDEX records_by_holder ON records (instance, seq);
CREATE INDEX records_by_token ON records (token, id);
CREATE INDEX records_by_age ON records (at);
ALTER TABLE holdings ADD COLUMN records BIGINT NOT NULL DEFAULT 0;
CREATE TRIGGER records_come AFTER INSERT ON records BEGIN
    UPDATE holdings SET records = records + 1 WHERE token = NEW.token;
    DELETE FROM records WHERE (SELECT h.records FROM holdings h WHERE h.token = NEW.token) > 100000
        AND id = (SELECT id FROM records WHERE token = NEW.token ORDER BY id LIMIT 1);
END;
CREATE TRIGGER records_go AFTER DELETE ON records BEGIN
    UPDATE holdings SET records = records - 1 WHERE token = OLD.token;
END;
";

/// One record, once. It says `human` only where a person's answer to that ask of that instance has been taken: a holder's
/// word is not enough (S15).
const INSERT: &str = "INSERT INTO records (id, instance, seq, token, token_name, holder_kind, at, declared, era, rail, \
    outcome, latency, tool, refusal, client, protocol_version, reason, ask, provenance) \
    SELECT COALESCE((SELECT MAX(id) FROM records), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
    $15, $16, $17, CASE WHEN $18 = 'human' AND NOT EXISTS (SELECT 1 FROM submissions s WHERE s.ask = $17 \
    AND s.instance = $1 AND s.provenance = 'human') THEN 'client' ELSE $18 END \
    WHERE TRUE ON CONFLICT (instance, seq) DO NOTHING";
const PAGE: &str = "SELECT id, instance, token_name, holder_kind, at, declared, era, rail, outcome, provenance, latency, \
    tool, refusal, client, protocol_version, reason, ask FROM records WHERE id < $1 \
    AND ($3 IS NULL OR at >= $3) AND ($4 IS NULL OR at < $4) AND ($5 IS NULL OR client = $5) \
    AND ($6 IS NULL OR tool = $6) AND ($7 IS NULL OR refusal = $7) AND ($8 IS NULL OR token_name = $8) \
    AND ($9 IS NULL OR era = $9) AND ($10 IS NULL OR rail = $10) AND ($11 IS NULL OR outcome = $11) \
    AND ($12 IS NULL OR provenance = $12) AND ($13 IS NULL OR declared = $13) \
    ORDER BY id DESC LIMIT $2";
/// What is older than a time, a bounded number of rows at once.
pub(crate) const OLD: &str =
    "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE at < $1 ORDER BY at LIMIT $2)";

/// A record of a holder's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The holder's number for it: one that is known is not kept again.
    pub seq: u64,
    /// When it was made.
    pub at: Timestamp,
    /// What it says, its names bounded.
    pub record: Record,
}

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordFilter {
    /// Made then or later.
    pub since: Option<Timestamp>,
    /// Made before then.
    pub until: Option<Timestamp>,
    /// Of the client that calls itself so.
    pub client: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// Of this refusal.
    pub refusal: Option<String>,
    /// Of holders with a token of this name.
    pub token: Option<String>,
    /// Of this era.
    pub era: Option<Era>,
    /// Of this rail.
    pub rail: Option<Rail>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// With this provenance.
    pub provenance: Option<Provenance>,
    /// Of callers that declared this.
    pub declared: Option<Declared>,
}

rows::row! {
    RecordRow {
        id: i64,
        instance: String,
        token_name: String,
        holder_kind: String,
        at: i64,
        declared: String,
        era: String,
        rail: String,
        outcome: String,
        provenance: String,
        latency: Option<i64>,
        tool: Option<String>,
        refusal: Option<String>,
        client: Option<String>,
        protocol_version: Option<String>,
        reason: Option<String>,
        ask: Option<String>,
    }
}

impl TryFrom<RecordRow> for RecordEntry {
    type Error = Failure;

    fn try_from(row: RecordRow) -> Result<Self, Failure> {
        Ok(Self {
            id: u64::try_from(row.id).unwrap_or(0),
            at: rows::time("records", row.at)?,
            holder: RecordHolder {
                kind: holder_kind(&row.holder_kind)?,
                token: row.token_name,
                instance: row.instance,
            },
            record: Record {
                declared: word("records", &row.declared)?,
                era: word("records", &row.era)?,
                rail: word("records", &row.rail)?,
                outcome: word("records", &row.outcome)?,
                provenance: word("records", &row.provenance)?,
                latency_ms: row.latency.and_then(|latency| u64::try_from(latency).ok()),
                tool: row.tool,
                refusal: row.refusal,
                client: row.client,
                protocol_version: row.protocol_version,
                reason: row.reason,
                ask: row.ask,
            },
        })
    }
}

impl Store {
    /// Keeps records of an instance, each once.
    ///
    /// # Errors
    /// When the database fails; those that were written by then are kept.
    pub async fn append_records(
        &self,
        instance: &str,
        kind: HolderKind,
        (token, token_name): (&str, &str),
        records: &[NewRecord],
    ) -> Result<(), StoreError> {
        on!(self, db => {
            let kind = rows::kind_word(kind);
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let insert = |NewRecord { seq, at, record }: &NewRecord| {
                Statement::new(&[INSERT])
                    .bind(instance)
                    .bind(number(*seq))
                    .bind(token)
                    .bind(token_name)
                    .bind(kind)
                    .bind(at.as_millisecond())
                    .bind(record.declared.as_str())
                    .bind(record.era.as_str())
                    .bind(record.rail.as_str())
                    .bind(record.outcome.as_str())
                    .bind(record.latency_ms.map(number))
                    .bind(&record.tool)
                    .bind(&record.refusal)
                    .bind(&record.client)
                    .bind(&record.protocol_version)
                    .bind(&record.reason)
                    .bind(&record.ask)
                    .bind(record.provenance.as_str())
            };
            for written in db.write_all(records.iter().map(insert).collect()).await? {
                written?;
            }
            Ok(())
        })
    }

    /// A page of records, the latest first, before the one of that id; and the id to go on with, where there are more.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn records(
        &self,
        filter: &RecordFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<(Vec<RecordEntry>, Option<u64>), StoreError> {
        let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        on!(self, db => {
            // One more than asked for tells whether there is a next page.
            let rows: Vec<RecordRow> = sqlx::query_as(PAGE)
                .bind(before)
                .bind(i64::from(limit) + 1)
                .bind(filter.since.map(Timestamp::as_millisecond))
                .bind(filter.until.map(Timestamp::as_millisecond))
                .bind(&filter.client)
                .bind(&filter.tool)
                .bind(&filter.refusal)
                .bind(&filter.token)
                .bind(filter.era.map(Era::as_str))
                .bind(filter.rail.map(Rail::as_str))
                .bind(filter.outcome.map(Outcome::as_str))
                .bind(filter.provenance.map(Provenance::as_str))
                .bind(filter.declared.map(Declared::as_str))
                .fetch_all(&mut *db.reader().await?)
                .await?;
            let has_more = rows.len() > most;
            let entries: Vec<RecordEntry> =
                rows.into_iter().take(most).map(TryInto::try_into).collect::<Result<_, Failure>>()?;
            let next = entries.last().map(|last| last.id).filter(|_| has_more);
            Ok((entries, next))
        })
    }
}
