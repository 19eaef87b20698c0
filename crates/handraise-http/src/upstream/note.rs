//! What a client sends that has no answer of its own: a notification, or the answer to a question of the server's.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{self, Content},
    context::{Context, News},
    dial::collect,
    exchange::{backoff, post},
    failure::Failure,
    session::Session,
};

/// How long a notification or an answer to the server may take.
const SHORT: Duration = Duration::from_secs(30);
/// How often an answer is sent.
const MOST_TRIES: u32 = 5;
/// How long to wait before it is sent for the second time.
const FIRST_AGAIN: Duration = Duration::from_millis(250);

/// What the server answers with 202.
pub(crate) enum Note {
    Notification {
        /// Completes once what it is about has left.
        after: Option<oneshot::Receiver<()>>,
    },
    /// The answer to a question of the server's.
    Answer {
        /// What ends the call that waits for it.
        call: Option<CancellationToken>,
    },
}

/// How it was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    /// The server has it, and does not want it.
    No,
    /// The server does not have it, or cannot do anything with it now.
    Lost,
}

/// Sends what the server answers with 202. An answer that is lost is sent again: it counts once, by its id.
pub(crate) async fn deliver(
    context: Arc<Context>,
    session: Option<Arc<Session>>,
    headers: HeaderMap,
    body: Bytes,
    note: Note,
) {
    let (tries, call) = match note {
        Note::Notification { after } => {
            if let Some(after) = after {
                let _ = timeout(SHORT, after).await;
            }
            (1, None)
        }
        Note::Answer { call } => (MOST_TRIES, call),
    };
    let sending = async {
        for before in 0..tries {
            if before > 0 {
                sleep(backoff(Some(FIRST_AGAIN), before - 1)).await;
            }
            let request = post(&context, &headers, body.clone(), None);
            let taken = match context.server.http.request(request).await {
                Ok(response) => take(&context, response, session.as_deref()).await,
                Err(error) => {
                    let failure = Failure::unreachable(&error);
                    tracing::warn!("a notification or an answer does not reach the MCP server: {failure}");
                    Taken::Lost
                }
            };
            if taken != Taken::Lost {
                return taken;
            }
        }
        Taken::Lost
    };
    let taken = timeout(SHORT, sending).await.unwrap_or_else(|_| {
        tracing::warn!("the MCP server does not take a notification or an answer in time");
        Taken::Lost
    });
    if taken == Taken::Lost
        && let Some(call) = call
    {
        call.cancel();
    }
    context.tell(News::Delivered { is_delivered: taken == Taken::Yes });
}

async fn take(context: &Context, response: Response<Incoming>, session: Option<&Session>) -> Taken {
    let status = response.status();
    if status == StatusCode::NOT_FOUND
        && let Some(session) = session.filter(|session| session.id.is_some())
    {
        session.lost.cancel();
    }
    if !status.is_success() {
        tracing::warn!(status = status.as_u16(), "the MCP server refuses a notification or an answer");
        let is_lost = status.is_server_error()
            || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        return if is_lost { Taken::Lost } else { Taken::No };
    }
    if answer::content(response.headers()) != Content::Events {
        // So that the connection can be used again.
        let _ = timeout(SHORT, collect(response.into_body(), 4096, &mut context.server.room.reading())).await;
    }
    Taken::Yes
}
