//! What happened to one ask, read from the rows that made it happen.

use handraise_api::ask::{Ask, AskEvent};

use crate::{Store, StoreError, lists::by_id, on, rows};

/// Events beyond this are left out, the latest ones first kept.
const MOST: i64 = 500;

const EVENTS: &str = "\
    SELECT seen_at AS at, 0 AS place, 'seen' AS kind, by_name AS who, surface AS detail FROM seen WHERE ask = $1 \
    UNION ALL SELECT submitted_at, 1, 'submitted', by_name, CASE WHEN rejected THEN 'skip' ELSE 'answer' END \
    FROM submissions WHERE ask = $1 \
    UNION ALL SELECT verdict_at, 2, 'verdict', by_name, verdict FROM submissions \
    WHERE ask = $1 AND verdict IS NOT NULL \
    UNION ALL SELECT e.at, 3, e.kind, NULL, NULL FROM instance_events e \
    WHERE e.instance = $2 AND e.at >= $3 AND e.at <= $4 \
    ORDER BY 1 DESC, 2 DESC LIMIT $5";

rows::row! {
    EventRow { at: i64, kind: String, who: Option<String>, detail: Option<String>, }
}

impl Store {
    /// One ask with what happened to it, oldest first, and the instance that owns it.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn ask_detail(&self, id: &str) -> Result<Option<(Ask, Vec<AskEvent>, String)>, StoreError> {
        on!(self, db => {
            let mut reader = db.reader().await?;
            let Some(owned) = by_id!(reader, id) else { return Ok(None) };
            let opened = owned.ask.opened_at.as_millisecond();
            let ended = owned.ask.settlement.as_ref().map_or(i64::MAX, |how| how.at.as_millisecond());
            let rows: Vec<EventRow> = sqlx::query_as(EVENTS)
                .bind(id)
                .bind(&owned.instance)
                .bind(opened)
                .bind(ended)
                .bind(MOST)
                .fetch_all(&mut *reader)
                .await?;
            let mut events = vec![AskEvent {
                at: owned.ask.opened_at,
                kind: "opened".into(),
                by: Some(owned.ask.origin.holder_token.clone()),
                detail: None,
            }];
            for row in rows.into_iter().rev() {
                let EventRow { at, kind, who, detail } = row;
                events.push(AskEvent { at: rows::time("events", at)?, kind, by: who, detail });
            }
            if let Some(how) = &owned.ask.settlement {
                let at = events.iter().position(|event| event.at > how.at).unwrap_or(events.len());
                let settled = AskEvent {
                    at: how.at,
                    kind: "settled".into(),
                    by: how.by.clone(),
                    detail: Some(how.outcome.as_str().into()),
                };
                events.insert(at, settled);
            }
            Ok(Some((owned.ask, events, owned.instance)))
        })
    }
}
