//! `POST /login`, `POST /logout` (S1, S11).

use axum::{Json, extract::State, http::StatusCode};
use handraise_api::{
    access::{LoginRequest, LoginResponse},
    error::ErrorResponse,
};

use super::said::Refusals;
use crate::{
    extract::{Body, From, Viewer},
    failure::Failure,
    inbox::App,
};

/// Signs a page in with the secret of a sign-in link, once, or with a token, in its scope.
#[utoipa::path(
    post,
    path = "/api/v1/login",
    tag = "access",
    request_body = LoginRequest,
    responses(
        (status = 200, body = LoginResponse),
        (status = 400, body = ErrorResponse),
        (status = 401, description = "the secret is not good (any more)", body = ErrorResponse),
        (status = 403, body = ErrorResponse),
        (status = 429, description = "too many failed attempts", body = ErrorResponse),
    ),
)]
pub(crate) async fn login(
    State(app): State<App>,
    From(peer): From,
    Body(request): Body<LoginRequest>,
) -> Result<Json<LoginResponse>, Failure> {
    let LoginRequest { secret, name } = request;
    let (token, grant) = app.access.sign_in(peer, &secret, name.as_deref()).await?;
    tracing::info!(token.id = grant.token.id, name = grant.token.name, "a page signed in");
    let (scope, name, owner) = (grant.token.scope, grant.token.name.clone(), grant.token.owner.clone());
    Ok(Json(LoginResponse { token, scope, name, owner }))
}

/// Signs a page out: its token ends, and its streams within a second.
#[utoipa::path(
    post,
    path = "/api/v1/logout",
    tag = "access",
    responses(
        (status = 204),
        (status = 400, description = "this is no page session", body = ErrorResponse),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn logout(State(app): State<App>, Viewer(caller): Viewer) -> Result<StatusCode, Failure> {
    let token = &caller.grant.token;
    if !token.page_session {
        return Err(Failure::bad_request(
            "only a signed-in page signs out; revoke a token with DELETE /tokens/{id}",
        ));
    }
    app.access.revoke(&token.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
