//! `GET /sessions/{id}`, `GET /sessions/{id}/messages`, `POST /sessions/{id}/prompt`, `POST /sessions/{id}/cancel`.

#![expect(unused_qualifications, reason = "utoipa writes out the paths of parameter types")]

use axum::{Json, extract::State, http::StatusCode};
use handraise_api::{
    error::ErrorResponse,
    session::{MessageList, PromptRequest, Session},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::said::{Refusals, Unheard, Unknown};
use crate::{
    agents,
    extract::{Admin, Body, Limit, Named, Query, Viewer},
    failure::Failure,
    inbox::App,
};

const DEFAULT_LIMIT: u32 = 200;

/// One session.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, body = Session),
        Refusals,
        Unknown,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn show(
    State(app): State<App>,
    _: Viewer,
    Named(id): Named,
) -> Result<Json<Session>, Failure> {
    match app.store.session(&id).await? {
        Some((session, instance)) => Ok(Json(app.shown_session(session, instance.as_deref()))),
        None => Err(Failure::not_found("session", &id)),
    }
}

/// Which entries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct After {
    /// `next_after` of the page before.
    #[serde(default)]
    after: u64,
    /// 1 to 500; 200 otherwise.
    #[param(value_type = Option<u32>)]
    limit: Option<Limit>,
}

/// A page of a session's transcript, oldest first.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/messages",
    tag = "sessions",
    params(("id" = String, Path, description = "The session"), After),
    responses(
        (status = 200, body = MessageList),
        (status = 400, body = ErrorResponse),
        Refusals,
        Unknown,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn messages(
    State(app): State<App>,
    _: Viewer,
    Named(id): Named,
    Query(After { after, limit }): Query<After>,
) -> Result<Json<MessageList>, Failure> {
    let limit = Limit::or(limit, DEFAULT_LIMIT);
    if app.store.session(&id).await?.is_none() {
        return Err(Failure::not_found("session", &id));
    }
    let mut messages = app.store.messages(&id, after, limit + 1).await?;
    let more = messages.len() > usize::try_from(limit).unwrap_or(usize::MAX);
    messages.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next_after = messages.last().map(|last| last.seq).filter(|_| more);
    Ok(Json(MessageList { messages, next_after }))
}

/// Prompts a session's agent.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/prompt",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = PromptRequest,
    responses(
        (status = 204, description = "the agent's process took it"),
        (status = 400, body = ErrorResponse),
        Refusals,
        Unknown,
        Unheard,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn prompt(
    State(app): State<App>,
    Admin(_): Admin,
    Named(id): Named,
    Body(PromptRequest { text }): Body<PromptRequest>,
) -> Result<StatusCode, Failure> {
    agents::prompt(&app, id, text).await.map(|()| StatusCode::NO_CONTENT)
}

/// Cancels a session's turn.
#[utoipa::path(
    post,
    path = "/api/v1/sessions/{id}/cancel",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "the agent's process took it"),
        Refusals,
        Unknown,
        Unheard,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    Admin(_): Admin,
    Named(id): Named,
) -> Result<StatusCode, Failure> {
    agents::cancel(&app, id).await.map(|()| StatusCode::NO_CONTENT)
}
