//! `GET /tokens`, `POST /tokens`, `DELETE /tokens/{id}`.

use axum::{Json, extract::State, http::StatusCode};
use handraise_api::{
    access::{CreateToken, CreatedToken, TokenList},
    error::ErrorResponse,
};

use super::said::{Refusals, Unknown};
use crate::{
    extract::{Admin, Body, Named},
    failure::Failure,
    inbox::App,
};

/// Every token and signed-in page, the newest first; never a secret.
#[utoipa::path(
    get,
    path = "/api/v1/tokens",
    tag = "tokens",
    responses(
        (status = 200, body = TokenList),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn list(State(app): State<App>, _: Admin) -> Json<TokenList> {
    Json(TokenList { tokens: app.access.tokens() })
}

/// Makes a token. Its secret is shown this once.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    tag = "tokens",
    request_body = CreateToken,
    responses(
        (status = 201, body = CreatedToken),
        (status = 400, body = ErrorResponse),
        Refusals,
        (status = 429, description = "there are too many", body = ErrorResponse),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn create(
    State(app): State<App>,
    Admin(caller): Admin,
    Body(wanted): Body<CreateToken>,
) -> Result<(StatusCode, Json<CreatedToken>), Failure> {
    let (id, token) = app.access.create(&wanted).await?;
    tracing::info!(
        token.id = id,
        token.scope = wanted.scope.as_str(),
        by = caller.name(),
        "a token was made"
    );
    Ok((StatusCode::CREATED, Json(CreatedToken { id, token })))
}

/// Revokes a token and the pages that signed in with it; their streams end within a second (S34).
#[utoipa::path(
    delete,
    path = "/api/v1/tokens/{id}",
    tag = "tokens",
    params(("id" = String, Path, description = "The token")),
    responses(
        (status = 204),
        Refusals,
        Unknown,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    Admin(caller): Admin,
    Named(id): Named,
) -> Result<StatusCode, Failure> {
    if !app.access.revoke(&id).await? {
        return Err(Failure::not_found("token", &id));
    }
    tracing::info!(token.id = id, by = caller.name(), "a token was revoked");
    Ok(StatusCode::NO_CONTENT)
}
