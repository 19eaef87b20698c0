//! `POST /asks/{id}/answer`.

use axum::{Json, extract::State};
use handraise_api::{
    ask::{AnswerRequest, Ask},
    error::{ErrorResponse, NotFoundResponse},
};

use super::said::Refusals;
use crate::{
    answering,
    extract::{Body, Named, Operator},
    failure::Failure,
    inbox::App,
};

/// Answers or skips an ask. The answer is forwarded to the process that asks; what comes back is its word.
#[utoipa::path(
    post,
    path = "/api/v1/asks/{id}/answer",
    tag = "asks",
    params(("id" = String, Path, description = "The ask")),
    request_body = AnswerRequest,
    responses(
        (status = 200, description = "it was delivered, or `replayed`: it had been", body = Ask),
        (status = 400, body = ErrorResponse),
        Refusals,
        (status = 404, description = "there is no such ask, or it had ended", body = NotFoundResponse),
        (status = 413, body = ErrorResponse),
        (status = 422, description = "the answers break a rule; the ask is still open", body = ErrorResponse),
        (status = 503, description = "the process that asks is not connected; nothing was sent", body = ErrorResponse),
        (status = 504, description = "sent, and no verdict yet", body = ErrorResponse),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn answer(
    State(app): State<App>,
    Operator(caller): Operator,
    Named(id): Named,
    Body(request): Body<AnswerRequest>,
) -> Result<Json<Ask>, Failure> {
    answering::answer(app, caller, id, request).await.map(Json)
}
