//! `GET /healthz`, `GET /readyz`, `GET /metrics`: for machines that watch the inbox.

use axum::{
    extract::State,
    http::{HeaderName, StatusCode, header},
};

use crate::inbox::App;

type Text = ([(HeaderName, &'static str); 1], String);

/// The process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The inbox can take asks and answers.
pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, &'static str) {
    if app.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "going down\n");
    }
    match app.store.ping().await {
        Ok(()) => (StatusCode::OK, "ready\n"),
        Err(error) => {
            tracing::error!(%error, "the inbox is not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
        }
    }
}

/// Counters in the text format of Prometheus; no names, no contents.
pub(crate) async fn metrics(State(app): State<App>) -> Result<Text, StatusCode> {
    let open = app.store.count_open().await.map_err(|error| {
        tracing::error!(%error, "open asks could not be counted");
        StatusCode::SERVICE_UNAVAILABLE
    })?;
    let text = app.metrics.render(open, app.hub.count(), app.events.streams());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
