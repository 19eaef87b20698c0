//! `POST /sessions`.

use axum::{Json, extract::State, http::StatusCode};
use handraise_api::{
    error::ErrorResponse,
    session::{Session, StartSession},
};

use super::said::Refusals;
use crate::{
    agents,
    extract::{Admin, Body},
    failure::Failure,
    inbox::App,
};

/// Starts a configured agent. With a prompt, its first turn begins as soon as it is there.
#[utoipa::path(
    post,
    path = "/api/v1/sessions",
    tag = "sessions",
    request_body = StartSession,
    responses(
        (status = 201, body = Session),
        (status = 400, description = "no such agent, or nowhere to run it", body = ErrorResponse),
        Refusals,
        (status = 429, description = "too many agents run", body = ErrorResponse),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn start(
    State(app): State<App>,
    Admin(_): Admin,
    Body(wanted): Body<StartSession>,
) -> Result<(StatusCode, Json<Session>), Failure> {
    let session = agents::start(&app, crate::local::TOKEN_NAME, wanted).await?;
    Ok((StatusCode::CREATED, Json(session)))
}
