//! Takes the frames of one client one after the other, and knows its session and which of its requests are open.
//!
//! A request is on its way as soon as it is taken, and the next frame follows. What the server acknowledges (a notification,
//! an answer to a question of its own) is waited for, so that it is there before what follows; so is the answer to
//! `initialize`, because later requests belong to its session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use handraise_mcp::{
    declared::modern_version,
    frame::{ById, ClientFrame, Id},
};
use http::HeaderMap;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::AbortHandle,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    context::{Context, News},
    exchange::{self, Call, Kind},
    link::Beside,
    listen,
    note::{self, Note},
    session::Session,
};

/// How long what is queued at the end, and the end of the session, may take.
const LAST: Duration = Duration::from_secs(2);

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
pub(crate) struct Desk {
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
    /// A desk that has taken nothing. `queued` is how many bytes wait for it, and `moved` is told when they become fewer;
    /// `lost` fires when the server has forgotten a session.
    pub(crate) fn new(
        context: Arc<Context>,
        queued: Arc<AtomicUsize>,
        moved: Arc<Notify>,
        lost: CancellationToken,
    ) -> Self {
        Self {
            context,
            queued,
            moved,
            session: None,
            open: ById::default(),
            serial: 0,
            modern: None,
            waits: false,
            opens_stream: false,
            lost,
        }
    }

    /// Takes frames until there are no more, or until a moment after `closing`.
    pub(crate) async fn run(
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
                let note = match frame.id().filter(|_| frame.is_response()) {
                    Some(id) => Note::Answer { call: self.context.take_asked(id) },
                    None => Note::Notification { after: None },
                };
                self.deliver(headers, bytes.clone(), note);
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
                headers = exchange::modern_headers(&self.context, frame, &version, beside.params.as_deref());
                self.modern = Some(version);
                Kind::Modern
            }
            None if frame.method() == Some("initialize") => {
                headers = HeaderMap::new();
                self.waits = true;
                Kind::Opening(serial)
            }
            None => {
                headers = self.session_headers(frame, beside.params.as_deref());
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
            unanswered: CancellationToken::new(),
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

    /// The headers of a session's request. Some clients write headers of the newer era there.
    fn session_headers(&self, frame: &ClientFrame<'_>, params: Option<&HeaderMap>) -> HeaderMap {
        let mut headers = self.session.as_ref().map(|session| session.headers()).unwrap_or_default();
        if let Some(params) = params {
            headers.extend(exchange::param_headers(&self.context, frame, params));
        }
        headers
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
        self.deliver(headers, bytes, Note::Notification { after });
    }

    fn deliver(&mut self, headers: HeaderMap, body: Bytes, note: Note) {
        self.waits = true;
        let (context, session) = (Arc::clone(&self.context), self.session.clone());
        tokio::spawn(note::deliver(context, session, headers, body, note));
    }

    /// The headers of a frame that is no request.
    fn headers(&self, frame: &ClientFrame<'_>, version: Option<&str>) -> HeaderMap {
        match (version.or(self.modern.as_deref().filter(|_| self.session.is_none())), &self.session) {
            (Some(version), _) => exchange::modern_headers(&self.context, frame, version, None),
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
