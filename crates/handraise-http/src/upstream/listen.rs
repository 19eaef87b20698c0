//! The stream on which a legacy server speaks outside of requests: opened once the session is, and again when it ends.

use std::{sync::Arc, time::Duration};

use handraise_mcp::frame::ServerFrame;
use http::StatusCode;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{
    answer::{self, Content},
    context::{Context, News},
    events::{self, End, Progress},
    exchange::{backoff, get},
    session::Session,
};

/// How long what the client sends next waits for the stream. A server need not answer before it has something to say.
const PATIENCE: Duration = Duration::from_millis(500);

/// Opens the stream that follows `note`, and says when the server has answered to that: what it asks sooner it may ask nobody.
pub(crate) async fn open(context: Arc<Context>, session: Arc<Session>, note: u64) {
    let (answered, is_open) = oneshot::channel();
    tokio::spawn(run(Arc::clone(&context), session, answered));
    let _ = timeout(PATIENCE, is_open).await;
    context.tell(News::Listening(note));
}

/// Listens for as long as the session lasts, and the server offers a stream. The sender is dropped once the server has
/// answered.
async fn run(context: Arc<Context>, session: Arc<Session>, answered: oneshot::Sender<()>) {
    tokio::select! {
        () = session.lost.cancelled() => {}
        () = session.over.cancelled() => {}
        () = listen(&context, &session, answered) => {}
    }
}

async fn listen(context: &Context, session: &Session, answered: oneshot::Sender<()>) {
    let mut answered = Some(answered);
    let mut progress = Progress::new(context.server.limit);
    let mut tries = 0;
    loop {
        let request = get(context, session, progress.last_id.as_deref());
        let response = context.server.http.request(request).await;
        drop(answered.take());
        if let Ok(response) = response {
            match (response.status(), answer::content(response.headers())) {
                (status, Content::Events) if status.is_success() => {
                    let seen = progress.events;
                    let asked = |frame: &ServerFrame<'_>| {
                        if let Some(id) = frame.request_id() {
                            context.note_asked(id, None);
                        }
                    };
                    let end = events::read(context, response.into_body(), &mut progress, None, asked).await;
                    match end {
                        End::Unwanted => return,
                        // It is come back to after a wait, from the last event that was taken.
                        End::Failed(failure) => {
                            tracing::warn!("a stream of the MCP server is left: {failure}");
                        }
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
