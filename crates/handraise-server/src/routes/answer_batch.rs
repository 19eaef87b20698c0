//! `POST /asks/answer-batch` (S44).

use axum::{Json, extract::State};
use handraise_api::{
    ask::{AnswerRequest, Ask, BatchEntry, BatchRequest},
    error::{ErrorResponse, NotFoundResponse},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::said::{Refusals, Unheard};
use crate::{
    answering,
    extract::{Body, Operator},
    failure::Failure,
    inbox::App,
};

/// Most asks in one batch.
const MOST: usize = 100;

/// The asks of a batch that was delivered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answered {
    /// In the order of the request.
    asks: Vec<Ask>,
}

/// Answers confirms and permissions of one holder, all or none of them.
#[utoipa::path(
    post,
    path = "/api/v1/asks/answer-batch",
    tag = "asks",
    request_body = BatchRequest,
    responses(
        (status = 200, description = "all were delivered", body = Answered),
        (status = 400, body = ErrorResponse),
        Refusals,
        (status = 404, description = "one is not there or had ended; none was delivered", body = NotFoundResponse),
        (status = 422, description = "one breaks a rule; none was delivered", body = ErrorResponse),
        Unheard,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn answer_batch(
    State(app): State<App>,
    Operator(caller): Operator,
    Body(request): Body<BatchRequest>,
) -> Result<Json<Answered>, Failure> {
    let count = request.submissions.len();
    if count == 0 || count > MOST {
        return Err(Failure::bad_request(format!("'submissions' has {count}; it takes 1 to {MOST}")));
    }
    let requests = request
        .submissions
        .into_iter()
        .map(|BatchEntry { id, answers, rejected }| {
            (id, AnswerRequest { answers, rejected, reject_reason: String::new() })
        })
        .collect();
    answering::answer_batch(app, caller, requests).await.map(|asks| Json(Answered { asks }))
}
