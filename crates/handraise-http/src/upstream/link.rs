//! One client's way to the server: the order of its frames, its session, and which of its requests are open.
//!
//! Frames are taken one after the other. A request is on its way as soon as it is taken, and the next frame follows. What
//! the server acknowledges (a notification, an answer to a question of its own) is waited for, so that it is there
//! before what follows; so is the answer to `initialize`, because later requests belong to its session.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use handraise_mcp::{
    declared::modern_version,
    frame::{ById, ClientFrame, Id},
    http::headers::SeenTools,
};
use http::{HeaderMap, HeaderValue};
use tokio::{
    sync::{Notify, Semaphore, mpsc, oneshot},
    task::{AbortHandle, JoinHandle},
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Target,
    dial::{self, Http},
    exchange::{self, Call, Kind},
    listen,
    room::Room,
};
use crate::budget::Charge;

/// How many frames may wait for whoever takes them.
const MOST_ARRIVALS: usize = 32;
/// How long what is queued at the end, and the end of the session, may take.
const LAST: Duration = Duration::from_secs(2);

/// An MCP server at a URL, and the connections to it.
pub struct Server {
    pub(crate) http: Http,
    pub(crate) target: Target,
    /// The longest frame, in bytes.
    pub(crate) limit: usize,
    pub(crate) room: Room,
    concurrency: usize,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Server {
    /// The server at a target. Frames are at most `max_frame` bytes long; a link has at most `concurrency` requests under
    /// way at once, and others wait. What the answers of all links hold is at most `in_flight` bytes.
    ///
    /// # Errors
    /// When connections cannot be prepared, as when this machine trusts nobody.
    pub fn new(target: Target, max_frame: usize, concurrency: usize, in_flight: usize) -> io::Result<Self> {
        let http = dial::client(&target)?;
        let concurrency = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self { http, target, limit: max_frame, room: Room::new(in_flight), concurrency })
    }
}

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
    /// Headers that it came with, and that are passed on.
    pub(crate) params: HeaderMap,
}

impl Link {
    /// A link on which nothing has been sent, and the frames that come from the server. It runs on the current runtime.
    pub fn new(server: &Arc<Server>) -> (Self, Arrivals) {
        let (out, arrivals) = mpsc::channel(MOST_ARRIVALS);
        let (news, heard) = mpsc::unbounded_channel();
        let (queue, frames) = mpsc::unbounded_channel();
        let (queued, moved) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let context = Context {
            server: Arc::clone(server),
            slots: Semaphore::new(server.concurrency),
            out,
            news,
            tools: Mutex::default(),
        };
        let lost = CancellationToken::new();
        let desk = Desk {
            context: Arc::new(context),
            queued: Arc::clone(&queued),
            moved: Arc::clone(&moved),
            session: None,
            open: ById::default(),
            serial: 0,
            modern: None,
            waits: false,
            opens_stream: false,
            lost: lost.clone(),
        };
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

/// A session that the server has opened.
#[derive(Debug)]
pub(crate) struct Session {
    number: u64,
    /// Its name, where the server gave it one.
    pub(crate) id: Option<HeaderValue>,
    /// The version that was negotiated.
    pub(crate) version: HeaderValue,
    /// The server does not know it any more.
    pub(crate) lost: CancellationToken,
    /// We have ended it.
    pub(crate) over: CancellationToken,
}

impl Session {
    pub(crate) fn new(number: u64, id: Option<HeaderValue>, version: HeaderValue) -> Arc<Self> {
        let id = id.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        Arc::new(Self { number, id, version, lost: CancellationToken::new(), over: CancellationToken::new() })
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
    Done(u64, handraise_mcp::frame::RequestId),
}

/// A request that is open.
struct Going {
    serial: u64,
    task: AbortHandle,
    /// Fires when the request has left; taken by the cancel that has to follow it.
    has_left: Option<oneshot::Receiver<()>>,
    cancelled: CancellationToken,
    is_modern: bool,
}

/// Takes frames one after the other.
struct Desk {
    context: Arc<Context>,
    queued: Arc<AtomicUsize>,
    moved: Arc<Notify>,
    session: Option<Arc<Session>>,
    open: ById<Going>,
    serial: u64,
    /// The version of the last request that described itself.
    modern: Option<String>,
    /// What was taken last has to be with the server before the next frame is taken.
    waits: bool,
    /// It was `notifications/initialized`.
    opens_stream: bool,
    /// The server has forgotten a session.
    lost: CancellationToken,
}

impl Desk {
    async fn run(
        mut self,
        mut frames: mpsc::UnboundedReceiver<(Bytes, Beside)>,
        mut heard: mpsc::UnboundedReceiver<News>,
        closing: CancellationToken,
    ) {
        let too_late = async {
            closing.cancelled().await;
            sleep(LAST).await;
        };
        tokio::pin!(too_late);
        loop {
            tokio::select! {
                biased;
                Some(news) = heard.recv() => self.hear(news),
                () = &mut too_late => break,
                frame = frames.recv(), if !self.waits => {
                    let Some((frame, beside)) = frame else { break };
                    self.take(&frame, beside);
                }
            }
        }
        self.end().await;
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Opened(session) => {
                self.watch(&session);
                if session.number == self.serial
                    && let Some(before) = self.session.replace(session)
                {
                    self.leave(before);
                }
            }
            News::OpeningEnded | News::Listening => self.waits = false,
            News::Delivered { is_delivered } => {
                if std::mem::take(&mut self.opens_stream)
                    && is_delivered
                    && let Some(session) = &self.session
                {
                    tokio::spawn(listen::open(Arc::clone(&self.context), Arc::clone(session)));
                } else {
                    self.waits = false;
                }
            }
            News::Done(serial, id) => {
                if self.open.get(id.borrow()).is_some_and(|going| going.serial == serial) {
                    self.open.remove(id.borrow());
                }
            }
        }
    }

    fn watch(&self, session: &Session) {
        let (forgotten, over, lost) = (session.lost.clone(), session.over.clone(), self.lost.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = forgotten.cancelled() => lost.cancel(),
                () = over.cancelled() => {}
            }
        });
    }

    /// Ends a session that was followed by another one.
    fn leave(&self, session: Arc<Session>) {
        session.over.cancel();
        let context = Arc::clone(&self.context);
        tokio::spawn(async move { exchange::end_session(&context, &session, LAST).await });
    }

    fn take(&mut self, bytes: &Bytes, beside: Beside) {
        self.queued.fetch_sub(bytes.len(), Ordering::Relaxed);
        self.moved.notify_one();
        let Ok(frame) = ClientFrame::read(bytes) else {
            // Whoever owns the link has read it before.
            tracing::debug!("a frame for the MCP server cannot be read, and is left out");
            return;
        };
        let version = modern_version(&frame);
        match (frame.method(), frame.id()) {
            (Some(_), Some(id)) => self.request(&frame, id, version, bytes.clone(), beside),
            (Some("notifications/cancelled"), None) => self.cancel(&frame, bytes.clone()),
            _ => {
                self.opens_stream = frame.method() == Some("notifications/initialized");
                let headers = self.headers(&frame, version.as_deref());
                self.deliver(headers, bytes.clone(), None);
            }
        }
    }

    fn request(
        &mut self,
        frame: &ClientFrame<'_>,
        id: Id<'_>,
        version: Option<String>,
        body: Bytes,
        beside: Beside,
    ) {
        self.serial += 1;
        let serial = self.serial;
        let headers;
        let kind = match version {
            Some(version) => {
                headers = exchange::modern_headers(&self.context, frame, &version, &beside.params);
                self.modern = Some(version);
                Kind::Modern
            }
            None if frame.method() == Some("initialize") => {
                headers = HeaderMap::new();
                self.waits = true;
                Kind::Opening(serial)
            }
            None => {
                headers = self.session.as_ref().map(|session| session.headers()).unwrap_or_default();
                Kind::Legacy(self.session.clone())
            }
        };
        let is_modern = matches!(kind, Kind::Modern);
        let (has_left, left) = oneshot::channel();
        let cancelled = CancellationToken::new();
        let owned = id.to_owned();
        let lists_tools = frame.method() == Some("tools/list");
        let call = Call {
            id: owned.clone(),
            body,
            kind,
            headers,
            beside,
            has_left,
            lists_tools,
            cancelled: cancelled.clone(),
        };
        let context = Arc::clone(&self.context);
        let task = tokio::spawn(async move {
            exchange::run(Arc::clone(&context), call).await;
            context.tell(News::Done(serial, owned));
        });
        let going = Going { serial, task: task.abort_handle(), has_left: Some(left), cancelled, is_modern };
        // Under an id that is open, the newest counts.
        self.open.insert(id, going);
    }

    /// A modern request is cancelled by leaving its stream, a legacy one by saying so.
    fn cancel(&mut self, frame: &ClientFrame<'_>, bytes: Bytes) {
        let going = frame.cancelled().and_then(|id| self.open.remove(id));
        let after = match going {
            Some(going) if going.is_modern => {
                going.task.abort();
                return;
            }
            Some(mut going) => {
                going.cancelled.cancel();
                going.has_left.take()
            }
            // Late; a server of the modern era has no use for it.
            None if self.session.is_none() => return,
            None => None,
        };
        let headers = self.headers(frame, None);
        self.deliver(headers, bytes, after);
    }

    fn deliver(&mut self, headers: HeaderMap, body: Bytes, after: Option<oneshot::Receiver<()>>) {
        self.waits = true;
        let (context, session) = (Arc::clone(&self.context), self.session.clone());
        tokio::spawn(exchange::deliver(context, session, headers, body, after));
    }

    /// The headers of a frame that is no request.
    fn headers(&self, frame: &ClientFrame<'_>, version: Option<&str>) -> HeaderMap {
        match (version.or(self.modern.as_deref().filter(|_| self.session.is_none())), &self.session) {
            (Some(version), _) => exchange::modern_headers(&self.context, frame, version, &HeaderMap::new()),
            (None, Some(session)) => session.headers(),
            (None, None) => HeaderMap::new(),
        }
    }

    /// The client has ended, and with it everything that it waits for.
    async fn end(&mut self) {
        for going in self.open.take() {
            going.task.abort();
        }
        if let Some(session) = self.session.take() {
            session.over.cancel();
            exchange::end_session(&self.context, &session, LAST).await;
        }
    }
}
