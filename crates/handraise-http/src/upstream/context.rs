//! What the requests of a link share, and what they tell its desk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use handraise_mcp::{frame::RequestId, http::headers::SeenTools};
use tokio::sync::{Semaphore, mpsc};

use super::{link::Arrival, server::Server, session::Session};

/// What all requests of a link share.
pub(crate) struct Context {
    pub(crate) server: Arc<Server>,
    pub(crate) slots: Semaphore,
    out: mpsc::Sender<Arrival>,
    news: mpsc::UnboundedSender<News>,
    tools: Mutex<SeenTools>,
}

/// Nobody takes frames any more.
pub(crate) struct Unwanted;

impl Context {
    pub(crate) fn new(
        server: &Arc<Server>,
        out: mpsc::Sender<Arrival>,
        news: mpsc::UnboundedSender<News>,
    ) -> Self {
        let slots = Semaphore::new(server.concurrency);
        Self { server: Arc::clone(server), slots, out, news, tools: Mutex::default() }
    }

    /// Hands a frame of the server on.
    pub(crate) async fn emit(&self, frame: Arrival) -> Result<(), Unwanted> {
        self.out.send(frame).await.map_err(|_| Unwanted)
    }

    pub(crate) fn tell(&self, news: News) {
        // The desk leaves last.
        let _ = self.news.send(news);
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
    /// A notification, or an answer to the server, was taken or given up.
    Delivered {
        /// Whether the server has it.
        is_delivered: bool,
    },
    /// The server has answered for its own stream, or takes long.
    Listening,
    /// A request has ended.
    Done(u64, RequestId),
}
