//! `POST /asks/{id}/seen`: a question was painted (S15).

use axum::{extract::State, http::StatusCode};
use handraise_api::{ask::SeenRequest, error::ErrorResponse};

use super::said::Unknown;
use crate::{
    extract::{Body, Named, Viewer, quoted},
    failure::Failure,
    inbox::App,
    peer::Peer,
};

const TERMINAL: &str = "terminal";

/// Says that this session has the question on screen now. The first time counts.
#[utoipa::path(
    post,
    path = "/api/v1/asks/{id}/seen",
    tag = "asks",
    params(("id" = String, Path, description = "The ask")),
    request_body = SeenRequest,
    responses(
        (status = 204),
        (status = 400, body = ErrorResponse),
        (status = 401, body = ErrorResponse),
        (status = 403, description = "neither a page session nor a terminal on the local socket", body = ErrorResponse),
        Unknown,
        (status = 422, description = "the digest is that of other content", body = ErrorResponse),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn seen(
    State(app): State<App>,
    Viewer(caller): Viewer,
    Named(id): Named,
    Body(request): Body<SeenRequest>,
) -> Result<StatusCode, Failure> {
    let token = &caller.grant.token;
    let surface = match (request.surface.as_deref(), token.page_session, caller.peer) {
        (None, true, _) => "page",
        (Some(TERMINAL), false, Peer::Socket) => TERMINAL,
        (None | Some(TERMINAL), _, _) => {
            return Err(Failure::forbidden(
                "only a signed-in page, or a terminal on this machine's socket, can show a question to a person",
            ));
        }
        (Some(other), _, _) => {
            let other = quoted(other);
            return Err(Failure::bad_request(format!(
                "in the body, 'surface' is {other}; it takes \"terminal\", or is left out"
            )));
        }
    };
    let Some((ask, _)) = app.store.ask(&id).await? else { return Err(Failure::not_found("ask", &id)) };
    if ask.digest != request.digest {
        return Err(Failure::invalid_one(
            "",
            "digest",
            "this is the digest of other content; load the ask again",
        ));
    }
    app.store.seen(app.now(), &id, &token.id, caller.name(), surface).await?;
    Ok(StatusCode::NO_CONTENT)
}
