//! `GET /records`.

#![expect(unused_qualifications, reason = "utoipa writes out the paths of parameter types")]

use axum::{Json, extract::State};
use handraise_api::{
    Timestamp,
    error::ErrorResponse,
    record::RecordList,
    words::{Declared, Era, Outcome, Provenance, Rail},
};
use handraise_store::RecordFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use super::said::Refusals;
use crate::{
    extract::{Limit, Query, Viewer},
    failure::Failure,
    inbox::App,
};

/// Records of a page when nothing else is said.
const SOME: u32 = 50;

/// Which records. Filters that are named together all hold; names are compared as they stand.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Made at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Made before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Of the client or agent that calls itself so.
    client: Option<String>,
    /// Of calls of this tool.
    tool: Option<String>,
    /// Of this refusal.
    refusal: Option<String>,
    /// Of holders whose token has this name.
    token: Option<String>,
    /// Of this era.
    #[param(inline)]
    era: Option<Era>,
    /// Of this rail.
    #[param(inline)]
    rail: Option<Rail>,
    /// With this outcome.
    #[param(inline)]
    outcome: Option<Outcome>,
    /// With this provenance.
    #[param(inline)]
    provenance: Option<Provenance>,
    /// Of callers that declared this.
    #[param(inline)]
    declared: Option<Declared>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
    /// 1 to 500; 50 otherwise.
    #[param(value_type = Option<u32>)]
    limit: Option<Limit>,
}

/// Which rails holders have tried to reach a human, and how each try ended, the latest first: never arguments, never
/// answers. The last 100,000 of each holder token, for 90 days. A record says `human` only where the inbox has taken a
/// person's answer to its ask; everything else in it is its holder's word.
#[utoipa::path(
    get,
    path = "/api/v1/records",
    tag = "records",
    params(Wanted),
    responses(
        (status = 200, body = RecordList),
        (status = 400, description = "a parameter cannot be read", body = ErrorResponse),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: Viewer,
    Query(wanted): Query<Wanted>,
) -> Result<Json<RecordList>, Failure> {
    let before = match wanted.cursor.as_deref().map(str::parse) {
        Some(Err(_)) => {
            return Err(Failure::bad_request(
                "'cursor' is not one that this call gave out; it takes 'next_cursor' of the page before",
            ));
        }
        Some(Ok(before)) => Some(before),
        None => None,
    };
    let filter = RecordFilter {
        since: wanted.since,
        until: wanted.until,
        client: wanted.client,
        tool: wanted.tool,
        refusal: wanted.refusal,
        token: wanted.token,
        era: wanted.era,
        rail: wanted.rail,
        outcome: wanted.outcome,
        provenance: wanted.provenance,
        declared: wanted.declared,
    };
    let (records, next) = app.store.records(&filter, before, Limit::or(wanted.limit, SOME)).await?;
    Ok(Json(RecordList { records, next_cursor: next.map(|next| next.to_string()) }))
}
