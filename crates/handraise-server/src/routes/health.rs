//! `GET /healthz`, `GET /readyz`, `GET /metrics`: for machines that watch the inbox.

use axum::{
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use handraise_store::Fault;

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
    if let Err(error) = app.store.ping().await {
        tracing::error!(%error, "the inbox is not ready");
        return (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n");
    }
    match app.store.trouble() {
        None => (StatusCode::OK, "ready\n"),
        Some(fault) => (StatusCode::SERVICE_UNAVAILABLE, why_not(fault)),
    }
}

/// What keeps the inbox from taking asks and answers. The sweep tries whether it is over.
fn why_not(fault: Fault) -> &'static str {
    match fault {
        Fault::Full => "the disk of the database is full\n",
        Fault::Denied => "the database may not be written\n",
        Fault::Damaged => "the database is damaged\n",
        Fault::Locked => "another program has the database locked\n",
        Fault::Closed => "the database is closed; the inbox has to be started again\n",
        Fault::Disk | Fault::Other => "the database cannot be written\n",
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
