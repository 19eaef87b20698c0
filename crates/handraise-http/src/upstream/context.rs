//! What the requests of a link share, and what they tell its desk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handraise_mcp::{
    frame::{Id, RequestId},
    http::headers::SeenTools,
};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{link::Arrival, room::Corner, server::Server, session::Session};

/// How many open questions of a server are remembered.
const MOST_ASKED: usize = 1024;

/// What all requests of a link share.
pub(crate) struct Context {
    pub(crate) server: Arc<Server>,
    /// What it may hold of answers.
    pub(crate) room: Corner,
    pub(crate) slots: Semaphore,
    out: mpsc::Sender<Arrival>,
    news: mpsc::UnboundedSender<News>,
    tools: Mutex<SeenTools>,
    /// Questions of the server that came on the stream of a call, and what ends the call when its answer is lost.
    asked: Mutex<Vec<(RequestId, CancellationToken)>>,
}

/// Nobody takes frames any more.
pub(crate) struct Unwanted;

impl Context {
    pub(crate) fn new(
        server: &Arc<Server>,
        room: Corner,
        out: mpsc::Sender<Arrival>,
        news: mpsc::UnboundedSender<News>,
    ) -> Self {
        let slots = Semaphore::new(server.concurrency);
        Self {
            server: Arc::clone(server),
            room,
            slots,
            out,
            news,
            tools: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Hands a frame of the server on.
    pub(crate) async fn emit(&self, frame: Arrival) -> Result<(), Unwanted> {
        self.out.send(frame).await.map_err(|_| Unwanted)
    }

    pub(crate) fn tell(&self, news: News) {
        // The desk leaves last.
        let _ = self.news.send(news);
    }

    /// Takes note of a question on the stream of a call.
    pub(crate) fn note_asked(&self, id: Id<'_>, lost: &CancellationToken) {
        let mut asked = self.asked();
        // Those of calls that have ended.
        asked.retain(|(_, lost)| !lost.is_cancelled());
        if asked.len() < MOST_ASKED {
            asked.push((id.to_owned(), lost.clone()));
        }
    }

    /// What ends the call on whose stream this was asked, newest first.
    pub(crate) fn take_asked(&self, id: Id<'_>) -> Option<CancellationToken> {
        let mut asked = self.asked();
        let at = asked.iter().rposition(|(known, _)| known.borrow().is(id))?;
        Some(asked.remove(at).1)
    }

    fn asked(&self) -> MutexGuard<'_, Vec<(RequestId, CancellationToken)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tools(&self) -> MutexGuard<'_, SeenTools> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the tasks of a link tell its desk.
pub(crate) enum News {
    /// `initialize` was answered.
    Opened(Arc<Session>),
    /// `initialize` has ended.
    OpeningEnded,
    /// What follows the note of this number goes on without it.
    Overtaken(u64),
    /// The server takes long to take a note.
    Overdue,
    /// A notification, or an answer to the server, was taken or given up.
    Delivered {
        /// Its number.
        note: u64,
        /// Whether the server has it.
        is_delivered: bool,
        /// Whether it was [`Overdue`](News::Overdue).
        was_overdue: bool,
    },
    /// The server has answered for its own stream, which follows the note of this number, or takes long.
    Listening(u64),
    /// A request has ended.
    Done(u64, RequestId),
}
