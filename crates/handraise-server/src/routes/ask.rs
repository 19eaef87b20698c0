//! `GET /asks/{id}`.

use axum::{Json, extract::State};
use handraise_api::ask::AskDetail;

use super::said::{Refusals, Unknown};
use crate::{
    extract::{Named, Viewer},
    failure::Failure,
    inbox::App,
};

/// One ask with what happened to it.
#[utoipa::path(
    get,
    path = "/api/v1/asks/{id}",
    tag = "asks",
    params(("id" = String, Path, description = "The ask")),
    responses(
        (status = 200, body = AskDetail),
        Refusals,
        Unknown,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn show(
    State(app): State<App>,
    _: Viewer,
    Named(id): Named,
) -> Result<Json<AskDetail>, Failure> {
    match app.store.ask_detail(&id).await? {
        Some((ask, events, instance)) => Ok(Json(AskDetail { ask: app.shown(ask, &instance), events })),
        None => Err(Failure::not_found("ask", &id)),
    }
}
