//! `GET /sessions`.

use axum::{Json, extract::State};
use handraise_api::session::{Session, SessionList};

use super::said::Refusals;
use crate::{extract::Viewer, failure::Failure, inbox::App};

/// Most sessions that have not ended, as many as holders may have asks from (S37: 256, with room for lost ones).
const ALIVE: u32 = 500;
/// Most that are listed because they are the latest, ended or not.
const LATEST: u32 = 100;

/// The sessions that have not ended and the latest that have, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/sessions",
    tag = "sessions",
    responses(
        (status = 200, body = SessionList),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(State(app): State<App>, _: Viewer) -> Result<Json<SessionList>, Failure> {
    Ok(Json(SessionList { sessions: all(&app).await? }))
}

/// The sessions as operators see them.
pub(crate) async fn all(app: &App) -> Result<Vec<Session>, handraise_store::StoreError> {
    let sessions = app.store.sessions(ALIVE, LATEST).await?;
    Ok(sessions.into_iter().map(|(session, owner)| app.shown_session(session, owner.as_deref())).collect())
}
