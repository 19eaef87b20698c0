//! The stream on which a legacy server speaks outside of requests: opened once the session is, and again when it ends.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::sleep;

use super::{
    answer::{self, Content},
    events::{self, End, Progress},
    exchange::{backoff, get},
    link::{Context, Session},
};

/// Listens for as long as the session lasts, and the server offers a stream.
pub(crate) async fn run(context: Arc<Context>, session: Arc<Session>) {
    tokio::select! {
        () = session.lost.cancelled() => {}
        () = session.over.cancelled() => {}
        () = listen(&context, &session) => {}
    }
}

async fn listen(context: &Context, session: &Session) {
    let mut progress = Progress::new(context.server.limit);
    let mut tries = 0;
    loop {
        let request = get(context, session, progress.last_id.as_deref());
        if let Ok(response) = context.server.http.request(request).await {
            match (response.status(), answer::content(response.headers())) {
                (status, Content::Events) if status.is_success() => {
                    let seen = progress.events;
                    let end = events::read(context, response.into_body(), &mut progress, None, |_| {}).await;
                    match end {
                        End::Unwanted => return,
                        // It is come back to after a wait, from the last event that was taken.
                        End::Full(full) => tracing::warn!("a stream of the MCP server is left: {full}"),
                        End::Answered | End::Over => {}
                    }
                    if progress.events > seen {
                        tries = 0;
                    }
                }
                (StatusCode::NOT_FOUND, _) if session.id.is_some() => {
                    session.lost.cancel();
                    return;
                }
                (status, _) if status.is_server_error() => {}
                (status, _) => {
                    tracing::debug!(status = status.as_u16(), "the MCP server offers no stream of its own");
                    return;
                }
            }
        }
        sleep(backoff(progress.retry, tries)).await;
        tries = tries.saturating_add(1);
    }
}
