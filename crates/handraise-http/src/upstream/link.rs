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
    queue: mpsc::UnboundedSender<(Bytes, Beside)>,
    queued: Arc<AtomicUsize>,
    moved: Arc<Notify>,
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

impl Link {
    /// A link of `caller` on which nothing has been sent, and the frames that come from the server. It runs on the current
    /// runtime.
    pub fn new(server: &Arc<Server>, caller: &str) -> (Self, Arrivals) {
        let (out, arrivals) = mpsc::channel(MOST_ARRIVALS);
        let (news, heard) = mpsc::unbounded_channel();
        let (queue, frames) = mpsc::unbounded_channel();
        let (queued, moved) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let context = Arc::new(Context::new(server, server.room.of(caller), out, news));
        let lost = CancellationToken::new();
        let desk = Desk::new(context, Arc::clone(&queued), Arc::clone(&moved), lost.clone());
        let closing = CancellationToken::new();
        let desk = tokio::spawn(desk.run(frames, heard, closing.clone()));
        (Self { queue, queued, moved, closing: closing.drop_guard(), desk, lost }, arrivals)
    }

    /// Sends a frame of the client, after all before it. What becomes of it comes out with the arrivals.
    pub fn send(&self, frame: Bytes) {
        self.send_with(frame, Beside::default());
    }

    pub(crate) fn send_with(&self, frame: Bytes, beside: Beside) {
        self.queued.fetch_add(frame.len(), Ordering::Relaxed);
        // The desk goes on for as long as there is a queue.
        let _ = self.queue.send((frame, beside));
    }

    /// Completes when the server has forgotten a session of this link.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        self.lost.clone().cancelled_owned()
    }

    /// How many bytes wait to be sent.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Completes when fewer bytes wait than before.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }

    /// Sends what is queued, ends the session, and lets go of every open request, in bounded time.
    pub async fn close(self) {
        drop((self.queue, self.closing));
        let _ = self.desk.await;
    }
}
