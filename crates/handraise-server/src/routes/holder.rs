//! `GET /holder`: the holder stream (acp.md).

use std::sync::Arc;

use axum::{
    Extension,
    extract::{State, ws::WebSocketUpgrade, ws::rejection::WebSocketUpgradeRejection},
    response::Response,
};
use handraise_api::{error::ErrorResponse, frame::MAX_FRAME_BYTES};

use super::said::Refusals;
use crate::{door::Place, extract::Holder, failure::Failure, holder, inbox::App};

/// Attaches a holder by WebSocket.
#[utoipa::path(
    get,
    path = "/api/v1/holder",
    tag = "holders",
    responses(
        (status = 101, description = "the holder stream"),
        (status = 400, description = "no WebSocket handshake", body = ErrorResponse),
        Refusals,
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn attach(
    State(app): State<App>,
    Holder(caller): Holder,
    place: Option<Extension<Arc<Place>>>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let upgrade = upgrade.map_err(|error| {
        Failure::bad_request(format!("this call takes a WebSocket handshake: {}", error.body_text()))
    })?;
    let tasks = app.tasks.clone();
    Ok(upgrade.max_message_size(MAX_FRAME_BYTES).max_frame_size(MAX_FRAME_BYTES).on_upgrade(
        move |socket| async move {
            let served = tasks.spawn(holder::serve(app, caller.grant, socket));
            let served = async move {
                // It is a connection for as long as it is open, whatever it speaks.
                let _place = place;
                served.await
            };
            if let Err(error) = served.await {
                tracing::error!(%error, "a holder's connection failed");
            }
        },
    ))
}
