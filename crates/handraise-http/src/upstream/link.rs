//! One client's way to the server, from outside: frames in, frames out, and how much waits.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::HeaderMap;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{context::Context, desk::Desk, server::Server};
use crate::budget::Charge;

/// How many frames may wait for whoever takes them.
const MOST_ARRIVALS: usize = 32;

/// One client's way to the server.
#[derive(Debug)]
pub struct Link {
    queue: mpsc::UnboundedSender<Waiting>,
    backlog: Arc<Backlog>,
    /// Ends the desk in bounded time once it is dropped.
    closing: DropGuard,
    desk: JoinHandle<()>,
    lost: CancellationToken,
}

/// Where frames of the server come out.
pub type Arrivals = mpsc::Receiver<Arrival>;

/// A frame of the server, which counts as held for as long as this lives.
#[derive(Debug)]
pub struct Arrival {
    pub(crate) frame: Bytes,
    _held: Option<Arc<Charge>>,
}

impl Arrival {
    /// A frame of what is held.
    pub(crate) fn new(frame: Bytes, held: &Arc<Charge>) -> Self {
        Self { frame, _held: Some(Arc::clone(held)) }
    }
}

impl From<Vec<u8>> for Arrival {
    /// A short frame of our own.
    fn from(frame: Vec<u8>) -> Self {
        Self { frame: frame.into(), _held: None }
    }
}

/// What belongs to a frame of the client, beside it.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// Its bytes count as held until the server has them.
    pub(crate) charge: Option<Charge>,
    /// Headers that it came with, and that are passed on; nothing where its client writes none.
    pub(crate) params: Option<Arc<HeaderMap>>,
}

/// How many bytes of a link wait.
#[derive(Debug, Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// They have become fewer.
    moved: Notify,
}

impl Backlog {
    fn queued(self: &Arc<Self>, bytes: usize) -> Queued {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Queued { backlog: Arc::clone(self), bytes }
    }
}

/// Bytes that count as queued for as long as this lives.
#[derive(Debug)]
pub(crate) struct Queued {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.backlog.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.backlog.moved.notify_one();
    }
}

/// A frame of the client that waits, and what belongs to it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) frame: Bytes,
    pub(crate) beside: Beside,
    pub(crate) queued: Queued,
}

impl Waiting {
    /// The frame, which counts as held and as queued for as long as anybody has it.
    pub(crate) fn into_counted(self) -> Bytes {
        let Self { frame, beside, queued } = self;
        Bytes::from_owner(Counted { frame, _charge: beside.charge, _queued: queued })
    }
}

struct Counted {
    frame: Bytes,
    _charge: Option<Charge>,
    _queued: Queued,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Link {
    /// A link of `caller` on which nothing has been sent, and the frames that come from the server. It runs on the current
    /// runtime.
    pub fn new(server: &Arc<Server>, caller: &str) -> (Self, Arrivals) {
        let (out, arrivals) = mpsc::channel(MOST_ARRIVALS);
        let (news, heard) = mpsc::unbounded_channel();
        let (queue, frames) = mpsc::unbounded_channel();
        let context = Arc::new(Context::new(server, server.room.of(caller), out, news));
        let lost = CancellationToken::new();
        let desk = Desk::new(context, lost.clone());
        let closing = CancellationToken::new();
        let desk = tokio::spawn(desk.run(frames, heard, closing.clone()));
        (Self { queue, backlog: Arc::default(), closing: closing.drop_guard(), desk, lost }, arrivals)
    }

    /// Sends a frame of the client, after all before it. What becomes of it comes out with the arrivals.
    pub fn send(&self, frame: Bytes) {
        self.send_with(frame, Beside::default());
    }

    pub(crate) fn send_with(&self, frame: Bytes, beside: Beside) {
        let queued = self.backlog.queued(frame.len());
        // The desk goes on for as long as there is a queue.
        let _ = self.queue.send(Waiting { frame, beside, queued });
    }

    /// Completes when the server has forgotten a session of this link.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.lost.clone().cancelled_owned()
    }

    /// How many bytes wait to be sent, or are on their way, and of what the server has to acknowledge also those that it has
    /// not.
    pub fn queued(&self) -> usize {
        self.backlog.bytes.load(Ordering::Relaxed)
    }

    /// Completes when fewer bytes wait than before.
    pub async fn moved(&self) {
        self.backlog.moved.notified().await;
    }

    /// Sends what is queued, ends the session, and lets go of every open request, in bounded time.
    pub async fn close(self) {
        drop((self.queue, self.closing));
        let _ = self.desk.await;
    }
}
