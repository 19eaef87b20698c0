//! `GET /audit`.

#![expect(unused_qualifications, reason = "utoipa writes out the paths of parameter types")]

use axum::{Json, extract::State};
use handraise_api::{audit::AuditList, error::ErrorResponse};
use serde::Deserialize;
use utoipa::IntoParams;

use super::said::Refusals;
use crate::{
    extract::{Admin, Limit, Query},
    failure::Failure,
    inbox::App,
};

/// Entries of a page when nothing else is said.
const SOME: u32 = 50;

/// Which part of the audit.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Entries before this one; the latest otherwise.
    before: Option<u64>,
    /// 1 to 500; 50 otherwise.
    #[param(value_type = Option<u32>)]
    limit: Option<Limit>,
}

/// What was refused because of who said it, the latest first: forged, replayed and foreign frames of holders, and answers
/// of somebody who may not answer. The last thousand of each token, for 90 days.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "audit",
    params(Wanted),
    responses(
        (status = 200, body = AuditList),
        (status = 400, body = ErrorResponse),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(
    State(app): State<App>,
    _: Admin,
    Query(Wanted { before, limit }): Query<Wanted>,
) -> Result<Json<AuditList>, Failure> {
    let limit = Limit::or(limit, SOME);
    let entries = app.store.refusals(before, limit).await?;
    let is_full = u32::try_from(entries.len()) == Ok(limit);
    let next_before = entries.last().map(|last| last.id).filter(|_| is_full);
    Ok(Json(AuditList { entries, next_before }))
}
