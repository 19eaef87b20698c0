//! What a client sends that has no answer of its own: a notification, or the answer to a question of the server's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
    lanes::Lane,
    link::Waiting,
    session::Session,
};

/// How long a notification or an answer to the server may take.
const SHORT: Duration = Duration::from_secs(30);
/// After how long it is overdue.
pub(crate) const OVERDUE: Duration = Duration::from_secs(1);
/// How often an answer is sent.
const MOST_TRIES: u32 = 5;
/// How long to wait before it is sent for the second time.
const FIRST_AGAIN: Duration = Duration::from_millis(250);

/// What is sent, and how.
pub(crate) struct Letter {
    /// What the desk knows it by.
    pub(crate) number: u64,
    /// Beside what it goes.
    pub(crate) lane: Lane,
    pub(crate) headers: HeaderMap,
    /// It counts as held, and as queued, until the server has it.
    pub(crate) waiting: Waiting,
    pub(crate) note: Note,
    /// For how long what follows waits for it.
    pub(crate) patience: Duration,
}

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

/// Sends what the server answers with 202, and says so once it no longer counts. An answer that is lost is sent again: it counts once, by its id.
pub(crate) async fn deliver(context: Arc<Context>, session: Option<Arc<Session>>, letter: Letter) {
    let Letter { number, lane, headers, waiting, note, patience } = letter;
    let (tries, after, call) = match note {
        Note::Notification { after } => (1, after, None),
        Note::Answer { call } => (MOST_TRIES, None, call),
    };
    let sending = async {
        if let Some(after) = after {
            let _ = timeout(SHORT, after).await;
        }
        for before in 0..tries {
            if before > 0 {
                sleep(backoff(Some(FIRST_AGAIN), before - 1)).await;
            }
            let request = post(&context, &headers, waiting.frame.clone(), None);
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
    let was_overdue = AtomicBool::new(false);
    let time = async {
        sleep(patience).await;
        context.tell(News::Overtaken(number));
        sleep(OVERDUE.saturating_sub(patience)).await;
        was_overdue.store(true, Ordering::Relaxed);
        context.tell(News::Overdue);
        sleep(SHORT.saturating_sub(patience.max(OVERDUE))).await;
    };
    let taken = tokio::select! {
        biased;
        taken = sending => taken,
        () = time => {
            tracing::warn!("the MCP server does not take a notification or an answer in time");
            Taken::Lost
        }
    };
    if taken == Taken::Lost
        && let Some(call) = call
    {
        call.cancel();
    }
    drop(waiting);
    let (is_delivered, was_overdue) = (taken == Taken::Yes, was_overdue.load(Ordering::Relaxed));
    context.tell(News::Delivered { note: number, lane, is_delivered, was_overdue });
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
        let _ = timeout(SHORT, collect(response.into_body(), 4096, &mut context.room.reading())).await;
    }
    Taken::Yes
}
