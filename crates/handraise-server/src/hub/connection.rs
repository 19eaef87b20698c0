//! One connection of a holder, and the requests that are sent over it.
//!
//! Whether a frame was written is the difference between "nothing was sent" and "nobody knows": the writer marks a
//! request the moment before it hands it to the socket, and requests fail only after the writer has stopped.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use handraise_api::{
    error::ErrorBody,
    frame::{Frame, FrameKind},
    words::HolderKind,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::lock;
use crate::access::Grant;

/// Frames that may wait for a holder to read them; a slower one is dropped.
const QUEUED_FRAMES: usize = 1_024;
/// Bytes that may wait for a holder to read them.
const QUEUED_BYTES: usize = 32 * 1024 * 1024;

/// How many endings are remembered until the holder tells of them itself. It does so at once; of one that is forgotten
/// the database knows.
const ENDINGS: usize = 256;

/// How long the writing of a verdict is waited for.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

/// What a holder answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) error: Option<ErrorBody>,
}

/// Why a holder did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Nothing of the request left the inbox.
    NotWritten,
    /// It was written, or begun; what became of it is unknown.
    Unknown,
}

/// A frame on its way to the socket.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    begun: Option<Arc<AtomicBool>>,
}

/// One connection of an instance.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) instance: String,
    pub(crate) epoch: u64,
    pub(crate) kind: HolderKind,
    pub(crate) grant: Arc<Grant>,
    /// Cancelled to end it.
    pub(crate) closed: CancellationToken,
    outgoing: mpsc::Sender<Outgoing>,
    queued_bytes: AtomicUsize,
    next_id: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Waiting>>,
    /// Submissions that are being forwarded on this connection, and whether their response came: their verdict is not to
    /// be asked for.
    forwarding: Mutex<HashMap<String, bool>>,
    /// Asks that ended by a response on this connection, each with the submission that won.
    ended: Mutex<VecDeque<(String, String)>>,
    /// Told when a submission was seen through.
    seen_through: Notify,
}

/// Who waits for a response.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Reply>,
    /// The submission that it is the verdict on.
    submission: Option<String>,
}

impl Connection {
    pub(crate) fn new(
        instance: String,
        epoch: u64,
        kind: HolderKind,
        grant: Arc<Grant>,
        closed: CancellationToken,
    ) -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outgoing, queue) = mpsc::channel(QUEUED_FRAMES);
        let connection = Self {
            instance,
            epoch,
            kind,
            grant,
            closed,
            outgoing,
            queued_bytes: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            waiting: Mutex::default(),
            forwarding: Mutex::default(),
            ended: Mutex::default(),
            seen_through: Notify::new(),
        };
        (Arc::new(connection), queue)
    }

    /// Sends a request and waits for its response, however long it takes; the connection's end ends the wait.
    pub(crate) async fn request<T: Serialize>(&self, action: &str, payload: &T) -> Result<Reply, Lost> {
        self.ask(action, payload, None).await
    }

    /// Sends a submission that is [`forwarding`](Self::forwarding), and waits for its verdict like for any response.
    pub(crate) async fn submit<T: Serialize>(
        &self,
        action: &str,
        payload: &T,
        submission: &str,
    ) -> Result<Reply, Lost> {
        self.ask(action, payload, Some(submission.to_owned())).await
    }

    async fn ask<T: Serialize>(
        &self,
        action: &str,
        payload: &T,
        submission: Option<String>,
    ) -> Result<Reply, Lost> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let Some(text) = frame(FrameKind::Request, &id.to_string(), action, Some(payload), None) else {
            return Err(Lost::NotWritten);
        };
        let begun = Arc::new(AtomicBool::new(false));
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, Waiting { answer: sender, submission });
        if !self.enqueue(Outgoing { text, begun: Some(Arc::clone(&begun)) }) {
            lock(&self.waiting).remove(&id);
            return Err(Lost::NotWritten);
        }
        match answer.await {
            Ok(reply) => Ok(reply),
            // The writer had stopped before this sender was dropped, so the mark is final.
            Err(_) if begun.load(Ordering::Acquire) => Err(Lost::Unknown),
            Err(_) => Err(Lost::NotWritten),
        }
    }

    /// Answers a request of the holder.
    pub(crate) fn respond<T: Serialize>(
        &self,
        id: &str,
        action: &str,
        payload: Option<&T>,
        error: Option<ErrorBody>,
    ) {
        if let Some(text) = frame(FrameKind::Response, id, action, payload, error) {
            self.enqueue(Outgoing { text, begun: None });
        }
    }

    /// A holder that does not read is dropped, not buffered without bound.
    fn enqueue(&self, outgoing: Outgoing) -> bool {
        let bytes = outgoing.text.len();
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if queued > QUEUED_BYTES.max(bytes) || self.outgoing.try_send(outgoing).is_err() {
            self.closed.cancel();
            return false;
        }
        true
    }

    /// The writer is about to hand a frame to the socket.
    pub(crate) fn begin(&self, outgoing: &Outgoing) {
        if let Some(begun) = &outgoing.begun {
            begun.store(true, Ordering::Release);
        }
        self.queued_bytes.fetch_sub(outgoing.text.len(), Ordering::Relaxed);
    }

    /// A response came in. Says whether there was a request of that id on this connection without a response yet.
    pub(crate) fn answered(&self, id: &str, reply: Reply) -> bool {
        let waiting = id.parse().ok().and_then(|id: u64| lock(&self.waiting).remove(&id));
        let Some(Waiting { answer, submission }) = waiting else { return false };
        if let Some(submission) = submission
            && let Some(came) = lock(&self.forwarding).get_mut(&submission)
        {
            *came = true;
        }
        // Whoever asked may have given up.
        let _ = answer.send(reply);
        true
    }

    /// The writer has stopped: nobody will be answered any more.
    pub(crate) fn fail_waiting(&self) {
        lock(&self.waiting).clear();
    }

    pub(crate) fn forwarding(&self, submission: &str) {
        lock(&self.forwarding).insert(submission.to_owned(), false);
    }

    pub(crate) fn forwarded(&self, submission: &str) {
        lock(&self.forwarding).remove(submission);
        self.seen_through.notify_waiters();
    }

    /// An ask has ended by a response on this connection, and that is written.
    pub(crate) fn ended(&self, ask: &str, submission: &str) {
        let mut ended = lock(&self.ended);
        if ended.len() >= ENDINGS {
            ended.pop_front();
        }
        ended.push_back((ask.to_owned(), submission.to_owned()));
    }

    /// Whether it is written that this submission ended this ask. Said once.
    pub(crate) fn has_ended(&self, ask: &str, submission: &str) -> bool {
        let mut ended = lock(&self.ended);
        let found = ended.iter().position(|(known, winner)| known == ask && winner == submission);
        found.and_then(|found| ended.remove(found)).is_some()
    }

    pub(crate) fn is_forwarding(&self, submission: &str) -> bool {
        lock(&self.forwarding).contains_key(submission)
    }

    /// Waits until a submission is seen through whose response has come: what the response says is being written. One
    /// whose response has not come is not waited for: it is behind whoever waits here, because a response passes nothing
    /// but asks that open.
    pub(crate) async fn settled_by(&self, submission: &str) {
        let written = async {
            loop {
                let mut seen_through = pin!(self.seen_through.notified());
                seen_through.as_mut().enable();
                if lock(&self.forwarding).get(submission) != Some(&true) {
                    return;
                }
                seen_through.await;
            }
        };
        // Nothing is lost when it is not: the settlement is then written by whoever waited.
        let _ = tokio::time::timeout(WRITTEN_WITHIN, written).await;
    }
}

fn frame<T: Serialize>(
    kind: FrameKind,
    id: &str,
    action: &str,
    payload: Option<&T>,
    error: Option<ErrorBody>,
) -> Option<String> {
    let payload = match payload.map(serde_json::value::to_raw_value).transpose() {
        Ok(payload) => payload,
        Err(error) => {
            tracing::error!(%error, action, "a frame could not be written");
            return None;
        }
    };
    let frame = Frame { id: Some(id.to_owned()), kind, action: action.to_owned(), payload, error };
    serde_json::to_string(&frame).ok()
}

#[cfg(test)]
mod tests {
    use handraise_api::access::{Scope, Token};
    use handraise_store::StoredToken;

    use super::*;

    /// A connection whose socket takes nothing.
    fn unread() -> (Arc<Connection>, mpsc::Receiver<Outgoing>) {
        let token = Token {
            id: "t".into(),
            name: "laptop".into(),
            scope: Scope::Holder,
            owner: None,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: None,
            page_session: false,
        };
        let grant = Grant::new(StoredToken { token, hash: "00".repeat(32), parent: None }).unwrap();
        Connection::new("i".into(), 1, HolderKind::Agent, Arc::new(grant), CancellationToken::new())
    }

    #[tokio::test]
    async fn s37_a_holder_that_does_not_read_is_dropped_and_what_it_was_not_sent_is_known() {
        let frames = (QUEUED_FRAMES, "x".to_owned());
        let bytes = (QUEUED_BYTES / (1024 * 1024), "x".repeat(1024 * 1024 - 200));
        for (fits, payload) in [frames, bytes] {
            let (connection, mut queue) = unread();
            let waiting: Vec<_> = (0..fits)
                .map(|_| {
                    let (connection, payload) = (Arc::clone(&connection), payload.clone());
                    tokio::spawn(async move { connection.request("asks.x", &payload).await.map(drop) })
                })
                .collect();
            while queue.len() < fits {
                tokio::task::yield_now().await;
            }
            assert!(!connection.closed.is_cancelled(), "{fits} may wait");
            let one_more = connection.request("asks.x", &payload).await.map(drop);
            assert_eq!(one_more, Err(Lost::NotWritten));
            assert!(connection.closed.is_cancelled(), "{fits} and one more may not");
            // The writer had begun with the first when it stopped.
            connection.begin(&queue.recv().await.unwrap());
            connection.fail_waiting();
            let mut lost = Vec::new();
            for waiting in waiting {
                lost.push(waiting.await.unwrap().unwrap_err());
            }
            assert_eq!(lost.iter().filter(|lost| **lost == Lost::Unknown).count(), 1);
            assert_eq!(lost.first(), Some(&Lost::Unknown));
        }
    }
}
