//! The routes: one endpoint, one file.

mod agents;
mod answer;
mod answer_batch;
mod ask;
mod asks;
mod audit;
mod events;
mod flags;
mod health;
mod holder;
mod holder_proof;
mod login;
mod openapi;
mod records;
mod said;
mod seen;
mod session;
mod session_start;
mod sessions;
mod tokens;

use std::{any::Any, sync::Arc};

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{delete, get, post, put},
};
use handraise_api::error::ErrorCode;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    failure::Failure,
    inbox::App,
    page,
    walls::{self, Walls},
};

pub use openapi::openapi;

/// Everything that the inbox answers, behind its walls.
pub(crate) fn router(app: App, walls: Walls) -> Router {
    let api = Router::new()
        .route("/asks", get(asks::list))
        .route("/asks/answer-batch", post(answer_batch::answer_batch))
        .route("/asks/{id}", get(ask::show))
        .route("/asks/{id}/answer", post(answer::answer))
        .route("/asks/{id}/seen", post(seen::seen))
        .route("/events", get(events::stream))
        .route("/sessions", get(sessions::list).post(session_start::start))
        .route("/sessions/{id}", get(session::show))
        .route("/sessions/{id}/messages", get(session::messages))
        .route("/sessions/{id}/prompt", post(session::prompt))
        .route("/sessions/{id}/cancel", post(session::cancel))
        .route("/agents", get(agents::list))
        .route("/audit", get(audit::list))
        .route("/records", get(records::list))
        .route("/flags", get(flags::list))
        .route("/flags/{name}", put(flags::set))
        .route("/tokens", get(tokens::list).post(tokens::create))
        .route("/tokens/{id}", delete(tokens::revoke))
        .route("/login", post(login::login))
        .route("/logout", post(login::logout))
        .route("/holder", get(holder::attach))
        .route("/holder/proof", get(holder_proof::prove))
        .route("/openapi.json", get(openapi::document))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method);
    Router::new()
        .nest("/api/v1", api)
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(page::serve)
        .with_state(app)
        .layer(CatchPanicLayer::custom(|_: Box<dyn Any + Send>| panicked()))
        .layer(middleware::from_fn_with_state(Arc::new(walls), walls::guard))
}

/// What a caller hears of a fault of ours; where it was, the panic's own words on stderr say.
fn panicked() -> Response {
    tracing::error!("a call failed by a fault of ours");
    let message = "the call failed by a fault of the inbox; its log says more";
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, message).into_response()
}

async fn unknown(uri: Uri) -> Failure {
    Failure::not_found("call", uri.path())
}

async fn wrong_method(method: Method) -> Failure {
    Failure::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::BadRequest,
        format!("this call does not take {method}"),
    )
}
