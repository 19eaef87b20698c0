//! What the requests of a link share, and what they tell its desk.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use handraise_mcp::{
    frame::{Id, RequestId},
    http::headers::SeenTools,
};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::{lanes::Lane, link::Arrival, room::Corner, server::Server, session::Session};
use crate::budget::Budget;

/// How many open questions of a server are remembered that came on streams of calls, and how many on its own.
const MOST_ASKED: usize = 1024;
/// The longest id of a question that is remembered, in bytes. Ids of servers have no bound of their own.
const LONGEST_ID: usize = 1024;
/// How many bytes are held of a link's calls that may have to be sent once more, with other headers.
const MOST_AGAIN: usize = 16 * 1024 * 1024;

/// What all requests of a link share.
pub(crate) struct Context {
    pub(crate) server: Arc<Server>,
    /// What it may hold of answers.
    pub(crate) room: Corner,
    /// What is held of calls that have been sent, because they may have to be sent once more.
    pub(crate) again: Arc<Budget>,
    pub(crate) slots: Semaphore,
    out: mpsc::Sender<Arrival>,
    news: mpsc::UnboundedSender<News>,
    tools: Mutex<SeenTools>,
    asked: Mutex<Asked>,
}

/// Open questions of the server.
#[derive(Default)]
struct Asked {
    /// Those that came on the stream of a call, and what ends the call when its answer is lost.
    of_calls: Vec<(RequestId, CancellationToken)>,
    /// Those that came on the server's own stream, the oldest first. Nothing says when they are over.
    alone: VecDeque<RequestId>,
}

/// Where the server has asked something.
pub(crate) enum AskedOn {
    /// On the stream of a call, and what ends that.
    Call(CancellationToken),
    /// On its own.
    OwnStream,
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
            again: Budget::new(MOST_AGAIN),
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

    /// Takes note of a question on the stream of a call, which `lost` ends, or on the server's own.
    pub(crate) fn note_asked(&self, id: Id<'_>, lost: Option<&CancellationToken>) {
        if id.raw().len() > LONGEST_ID {
            return;
        }
        let mut asked = self.asked();
        let Some(lost) = lost else {
            if asked.alone.len() >= MOST_ASKED {
                asked.alone.pop_front();
            }
            asked.alone.push_back(id.to_owned());
            return;
        };
        // Those of calls that have ended.
        asked.of_calls.retain(|(_, lost)| !lost.is_cancelled());
        if asked.of_calls.len() < MOST_ASKED {
            asked.of_calls.push((id.to_owned(), lost.clone()));
        }
    }

    /// Where this was asked, newest first; `None`: it was not.
    pub(crate) fn take_asked(&self, id: Id<'_>) -> Option<AskedOn> {
        let mut asked = self.asked();
        if let Some(at) = asked.of_calls.iter().rposition(|(known, _)| known.borrow().is(id)) {
            return Some(AskedOn::Call(asked.of_calls.remove(at).1));
        }
        let at = asked.alone.iter().rposition(|known| known.borrow().is(id))?;
        asked.alone.remove(at).map(|_| AskedOn::OwnStream)
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
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
        /// What has room again.
        lane: Lane,
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
