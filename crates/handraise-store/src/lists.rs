//! Reading asks: one, or pages of them.

use handraise_api::{ask::Ask, words::Source};

use crate::{
    Store, StoreError, on,
    rows::{self, AskRow, OwnedAsk},
};

/// How many asks of one holder stand in one round (inbox.md, `GET /asks`).
const ROUND: i64 = 5;
/// How many rounds are read at once, at most.
const MOST_ROUNDS: i64 = 128;

/// Which asks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Of this session.
    pub session: Option<String>,
    /// Of this source.
    pub source: Option<Source>,
}

/// Where a page begins: after this key. Opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Which round, for open asks.
    round: i64,
    /// The sort key: `due` of open asks, `settled_at` of settled ones.
    key: i64,
    /// Breaks ties.
    id: String,
}

impl Cursor {
    /// The cursor as clients pass it back.
    pub fn encode(&self) -> String {
        format!("{}.{}.{}", self.round, self.key, self.id)
    }

    /// Reads a cursor; `None` when it is none.
    pub fn decode(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let round = parts.next()?.parse().ok().filter(|round| (0..i64::MAX / ROUND).contains(round))?;
        let key = parts.next()?.parse().ok()?;
        let id = parts.next().filter(|id| id.len() <= 64)?.to_owned();
        Some(Self { round, key, id })
    }
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The asks, each with the instance that owns it.
    pub asks: Vec<(Ask, String)>,
    /// Where the next page begins; `None` on the last.
    pub next: Option<Cursor>,
}

/// One ask on any connection or transaction.
macro_rules! by_id {
    ($connection:expr, $id:expr) => {{
        let row: Option<$crate::rows::AskRow> =
            sqlx::query_as($crate::lists::BY_ID).bind($id).fetch_optional(&mut *$connection).await?;
        row.map($crate::rows::OwnedAsk::try_from).transpose()?
    }};
}
pub(crate) use by_id;

/// One ask within a transaction.
macro_rules! by_id_in {
    ($tx:expr, $id:expr) => {{
        let reading = $crate::statement::Statement::new(&[$crate::lists::BY_ID]).bind($id);
        let row: Option<$crate::rows::AskRow> = $tx.run(reading).await?.row(0)?;
        row.map($crate::rows::OwnedAsk::try_from).transpose()?
    }};
}
pub(crate) use by_id_in;

/// Reads whole asks as `a`, each with the submission `s` that won.
macro_rules! select_asks {
    ($($rest:expr),+ $(,)?) => {
        concat!(
            "SELECT ",
            $crate::rows::ask_columns!(),
            " FROM asks a LEFT JOIN submissions s ON s.id = a.submission_id ",
            $($rest),+
        )
    };
}
pub(crate) use select_asks;

pub(crate) const BY_ID: &str = select_asks!("WHERE a.id = $1");

/// The rows of a few rounds, from round `$1` on for `$5` rows of each holder, after `(due, id) = ($2, $3)` of the first
/// of them.
///
/// Holders are found by skipping along the index, and of each only its asks of these rounds are read: the cost is
/// that of what is asked for, however many asks are open. Bodies are read for the picked rows alone.
macro_rules! rounds {
    ($and:expr) => {
        concat!(
            "WITH RECURSIVE holders (instance) AS (\
             SELECT MIN(instance) FROM asks WHERE state <> 'settled'",
            $and,
            " UNION ALL SELECT (SELECT MIN(instance) FROM asks WHERE state <> 'settled'",
            $and,
            " AND instance > holders.instance) FROM holders WHERE holders.instance IS NOT NULL), \
             taken (id, due, place) AS (SELECT p.id, p.due, \
             ROW_NUMBER() OVER (PARTITION BY p.instance ORDER BY p.due, p.id) - 1 \
             FROM holders h JOIN asks p ON p.id IN (\
             SELECT id FROM asks WHERE state <> 'settled'",
            $and,
            " AND instance = h.instance ORDER BY due, id LIMIT $5 OFFSET $1 * 5)), \
             picked (id, due, round) AS (SELECT id, due, $1 + place / 5 FROM taken \
             WHERE place >= 5 OR due > $2 OR (due = $2 AND id > $3) ORDER BY 3, 2, 1 LIMIT $4) ",
            "SELECT picked.round, ",
            rows::ask_columns!(),
            " FROM picked JOIN asks a ON a.id = picked.id LEFT JOIN submissions s ON s.id = a.submission_id \
             ORDER BY picked.round, picked.due, picked.id"
        )
    };
}

pub(crate) const OPEN: &str = rounds!("");
pub(crate) const OPEN_BY_SOURCE: &str = rounds!(" AND source = $6");
pub(crate) const OPEN_BY_SESSION: &str = concat!(
    "SELECT CAST(0 AS BIGINT) AS round, ",
    rows::ask_columns!(),
    " FROM asks a LEFT JOIN submissions s ON s.id = a.submission_id WHERE a.state <> 'settled' AND a.session_id = $1 AND (a.due > $2 OR (a.due = $2 AND a.id > $3)) \
     AND ($5 IS NULL OR a.source = $5) ORDER BY a.due, a.id LIMIT $4"
);

macro_rules! settled {
    ($filter:expr) => {
        select_asks!(
            "WHERE a.state = 'settled'",
            $filter,
            " AND a.settled_at <= $1 AND (a.settled_at < $1 OR a.id < $2) \
             ORDER BY a.settled_at DESC, a.id DESC LIMIT $3"
        )
    };
}

pub(crate) const SETTLED: &str = settled!("");
pub(crate) const SETTLED_BY_SOURCE: &str = settled!(" AND a.source = $4");
pub(crate) const SETTLED_BY_SESSION: &str =
    settled!(" AND a.session_id = $4 AND ($5 IS NULL OR a.source = $5)");

/// The round of an open ask, and the ask.
struct RoundRow(i64, AskRow);

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for RoundRow
where
    AskRow: sqlx::FromRow<'r, R>,
    i64: sqlx::Type<R::Database> + sqlx::Decode<'r, R::Database>,
    &'static str: sqlx::ColumnIndex<R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self(row.try_get("round")?, AskRow::from_row(row)?))
    }
}

impl Store {
    /// A page of open asks, those with a submission on its way included: in rounds over the holders, each holder's five
    /// nearest deadlines, then its next five; within a round by deadline, without deadline last. Asks of one session
    /// come by deadline alone.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open_asks(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let mut rest = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut round, mut key, mut id) =
            after.map_or((0, i64::MIN, ""), |after| (after.round, after.key, after.id.as_str()));
        let mut asks: Vec<(Ask, String)> = Vec::new();
        let mut next = None;
        // Later rounds are never larger, so that many are read at once when those before were small.
        let mut rounds = 1;
        on!(self, db => {
            loop {
                // One more than asked for tells whether there is a next page.
                let wanted = i64::try_from(rest + 1).unwrap_or(i64::MAX);
                let query = match (&filter.session, filter.source) {
                    (Some(session), source) => sqlx::query_as(OPEN_BY_SESSION)
                        .bind(session)
                        .bind(key)
                        .bind(id)
                        .bind(wanted)
                        .bind(source.map(Source::as_str)),
                    (None, source) => {
                        let statement = if source.is_some() { OPEN_BY_SOURCE } else { OPEN };
                        let query = sqlx::query_as(statement)
                            .bind(round)
                            .bind(key)
                            .bind(id)
                            .bind(wanted)
                            .bind(rounds * ROUND);
                        if let Some(source) = source { query.bind(source.as_str()) } else { query }
                    }
                };
                let rows: Vec<RoundRow> = query.fetch_all(&mut *db.reader().await?).await?;
                let found = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                // Rounds in which nobody has anything left are the last. One whose rest was empty may not be.
                let is_last = filter.session.is_some() || (found == 0 && key == i64::MIN);
                for RoundRow(round, row) in rows.into_iter().take(rest) {
                    next = Some(Cursor { round, key: row.due, id: row.id.clone() });
                    let OwnedAsk { ask, instance } = row.try_into()?;
                    asks.push((ask, instance));
                }
                if found == wanted {
                    return Ok(Page { asks, next });
                }
                if is_last {
                    return Ok(Page { asks, next: None });
                }
                rest -= usize::try_from(found).unwrap_or(rest);
                round += rounds;
                // What stood before the cursor is not known.
                if key == i64::MIN {
                    let each = (found / rounds).max(1);
                    rounds = (i64::try_from(rest).unwrap_or(i64::MAX - 1) / each + 1).min(MOST_ROUNDS);
                }
                (key, id) = (i64::MIN, "");
            }
        })
    }

    /// A page of settled asks, the latest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn settled_asks(
        &self,
        filter: &Filter,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page, StoreError> {
        let (key, id) = after.map_or((i64::MAX, ""), |after| (after.key, after.id.as_str()));
        let wanted = i64::from(limit) + 1;
        on!(self, db => {
            let query = match (&filter.session, filter.source) {
                (Some(session), source) => sqlx::query_as(SETTLED_BY_SESSION)
                    .bind(key)
                    .bind(id)
                    .bind(wanted)
                    .bind(session)
                    .bind(source.map(Source::as_str)),
                (None, Some(source)) => sqlx::query_as(SETTLED_BY_SOURCE)
                    .bind(key)
                    .bind(id)
                    .bind(wanted)
                    .bind(source.as_str()),
                (None, None) => sqlx::query_as(SETTLED).bind(key).bind(id).bind(wanted),
            };
            let rows: Vec<AskRow> = query.fetch_all(&mut *db.reader().await?).await?;
            let more = i64::try_from(rows.len()).unwrap_or(i64::MAX) == wanted;
            let mut next = None;
            let mut asks = Vec::new();
            for row in rows.into_iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
                next = row.settled_at.map(|key| Cursor { round: 0, key, id: row.id.clone() });
                let OwnedAsk { ask, instance } = row.try_into()?;
                asks.push((ask, instance));
            }
            Ok(Page { asks, next: next.filter(|_| more) })
        })
    }
}
