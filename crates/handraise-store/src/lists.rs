//! Reading asks: one, or pages of them.

use handraise_api::{ask::Ask, words::Source};

use crate::{
    Store, StoreError, on,
    rows::{self, AskRow, OwnedAsk},
};

/// How many asks of one holder stand in one round (inbox.md, `GET /asks`).
const ROUND: i64 = 5;

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

macro_rules! select_asks {
    ($($rest:expr),+) => {
        concat!(
            "SELECT ",
            rows::ask_columns!(),
            " FROM asks a LEFT JOIN submissions s ON s.id = a.submission_id ",
            $($rest),+
        )
    };
}

pub(crate) const BY_ID: &str = select_asks!("WHERE a.id = $1");

/// The rows of one round, in their order, after `(due, id) = ($3, $4)`.
///
/// Holders are found by skipping along the index, and of each only its five asks of the round are read: the cost is
/// that of holders times five, however many asks are open. Bodies are read for the picked rows alone.
macro_rules! round {
    ($and:expr) => {
        concat!(
            "WITH RECURSIVE holders (instance) AS (\
             SELECT MIN(instance) FROM asks WHERE state <> 'settled'",
            $and,
            " UNION ALL SELECT (SELECT MIN(instance) FROM asks WHERE state <> 'settled'",
            $and,
            " AND instance > holders.instance) FROM holders WHERE holders.instance IS NOT NULL), \
             picked (id, due) AS (SELECT p.id, p.due FROM holders h JOIN asks p ON p.id IN (\
             SELECT id FROM asks WHERE state <> 'settled'",
            $and,
            " AND instance = h.instance ORDER BY due, id LIMIT 5 OFFSET $1) \
             WHERE (p.due > $2 OR (p.due = $2 AND p.id > $3)) ORDER BY p.due, p.id LIMIT $4) ",
            select_asks!("JOIN picked ON picked.id = a.id ORDER BY picked.due, picked.id")
        )
    };
}

pub(crate) const OPEN: &str = round!("");
pub(crate) const OPEN_BY_SOURCE: &str = round!(" AND source = $5");
pub(crate) const OPEN_BY_SESSION: &str = select_asks!(
    "WHERE a.state <> 'settled' AND a.session_id = $1 AND (a.due > $2 OR (a.due = $2 AND a.id > $3)) \
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

const COUNT_OPEN: &str = "SELECT COUNT(*) FROM asks WHERE state <> 'settled'";

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
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (mut round, mut key, mut id) =
            after.map_or((0, i64::MIN, ""), |after| (after.round, after.key, after.id.as_str()));
        let mut asks: Vec<(Ask, String)> = Vec::new();
        let mut next = None;
        on!(self, db => {
            // One more than asked for tells whether there is a next page.
            while asks.len() <= limit {
                let wanted = i64::try_from(limit + 1 - asks.len()).unwrap_or(i64::MAX);
                let query = match (&filter.session, filter.source) {
                    (Some(session), source) => sqlx::query_as(OPEN_BY_SESSION)
                        .bind(session)
                        .bind(key)
                        .bind(id)
                        .bind(wanted)
                        .bind(source.map(Source::as_str)),
                    (None, Some(source)) => sqlx::query_as(OPEN_BY_SOURCE)
                        .bind(round * ROUND)
                        .bind(key)
                        .bind(id)
                        .bind(wanted)
                        .bind(source.as_str()),
                    (None, None) => {
                        sqlx::query_as(OPEN).bind(round * ROUND).bind(key).bind(id).bind(wanted)
                    }
                };
                let rows: Vec<AskRow> = query.fetch_all(db.readers()).await?;
                let full = rows.len() == usize::try_from(wanted).unwrap_or(usize::MAX);
                // A round in which nobody has anything left is the last. One whose rest was empty may not be.
                let exhausted = rows.is_empty() && key == i64::MIN;
                for row in rows {
                    if asks.len() == limit {
                        break;
                    }
                    next = Some(Cursor { round, key: row.due, id: row.id.clone() });
                    let OwnedAsk { ask, instance } = row.try_into()?;
                    asks.push((ask, instance));
                }
                if full {
                    return Ok(Page { asks, next });
                }
                if exhausted || filter.session.is_some() {
                    break;
                }
                round += 1;
                (key, id) = (i64::MIN, "");
            }
            Ok(Page { asks, next: None })
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
            let rows: Vec<AskRow> = query.fetch_all(db.readers()).await?;
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

    /// How many asks are open.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn count_open(&self) -> Result<u64, StoreError> {
        on!(self, db => {
            let count: i64 = sqlx::query_scalar(COUNT_OPEN).fetch_one(db.readers()).await?;
            Ok(u64::try_from(count).unwrap_or(0))
        })
    }
}
