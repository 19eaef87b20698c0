//! `GET /openapi.json`: the contract, generated from the handlers and types themselves.

use axum::Json;
use handraise_api::{event, session};
use utoipa::{
    Modify, OpenApi,
    openapi::security::{Http, HttpAuthScheme, SecurityScheme},
};

use super::{
    agents, answer, answer_batch, ask, asks, audit, events, flags, holder, holder_proof, login, records,
    seen, session as session_routes, session_start, sessions, tokens,
};

#[derive(OpenApi)]
#[openapi(
    info(title = "handraise inbox", description = "Asks of agents and tools, and their answers."),
    paths(
        asks::list,
        ask::show,
        answer::answer,
        answer_batch::answer_batch,
        seen::seen,
        events::stream,
        sessions::list,
        session_start::start,
        session_routes::show,
        session_routes::messages,
        session_routes::prompt,
        session_routes::cancel,
        agents::list,
        audit::list,
        records::list,
        flags::list,
        flags::set,
        tokens::list,
        tokens::create,
        tokens::revoke,
        login::login,
        login::logout,
        holder::attach,
        holder_proof::prove,
        document,
    ),
    components(schemas(event::Snapshot, session::Message)),
    modifiers(&Bearer),
)]
struct Contract;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        openapi.components.get_or_insert_default().add_security_scheme("bearer", bearer);
    }
}

/// The OpenAPI document of everything under `/api/v1`.
pub fn openapi() -> utoipa::openapi::OpenApi {
    Contract::openapi()
}

/// This document.
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    tag = "contract",
    responses((status = 200, description = "OpenAPI 3.1")),
)]
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(openapi())
}
