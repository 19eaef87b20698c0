//! Takes the frames of one client one after the other, and knows its session and which of its requests are open.
//!
//! A request is on its way as soon as it is taken, and the next frame follows. What the server acknowledges (a notification,
//! an answer to a question of its own) is waited for, so that it is there before what follows, though not for long: a server
//! that does not acknowledge it holds up nothing else than more of the same ([`lanes`](super::lanes)). So is the answer to
//! `initialize`, because later requests belong to its session.

use std::{sync::Arc, time::Duration};

use handraise_mcp::{
    declared::modern_version,
    frame::{ById, ClientFrame, Id},
};
use http::HeaderMap;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    context::{AskedOn, Context, News},
    exchange::{self, Again, Call, Kind, Sending},
    lanes::{Lane, Lanes, Sent},
    link::Waiting,
    listen,
    note::{self, Letter, Note, OVERDUE},
    session::Session,
};

/// How long what is queued at the end, and the end of the session, may take.
const LAST: Duration = Duration::from_secs(2);
/// How long what follows `notifications/initialized` waits for it, before which a server may refuse everything else.
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(5);
/// How long what follows a note waits for it while another one is overdue.
const IMPATIENCE: Duration = Duration::from_millis(100);

/// A request that is open.
struct Going {
    serial: u64,
    task: AbortHandle,
    /// Fires when the request has left; taken by the cancel that has to follow it.
    has_left: Option<oneshot::Receiver<()>>,
    cancelled: CancellationToken,
    is_modern: bool,
}

/// What the next frame waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    Nothing,
    /// The answer to `initialize`.
    Opening,
    /// The note of this number, or what follows it.
    Note(u64),
}

/// Takes frames one after the other.
pub(crate) struct Desk {
    context: Arc<Context>,
    session: Option<Arc<Session>>,
    open: ById<Going>,
    serial: u64,
    /// The version of the last request that described itself.
    modern: Option<String>,
    /// What was taken last and has to be with the server before the next frame is taken.
    waits: Waits,
    /// The number of the last note.
    last_note: u64,
    /// How many notes are overdue.
    overdue: usize,
    /// Notes on their way, and those that wait.
    lanes: Lanes,
    /// The session that was opened has not been told so.
    is_opening: bool,
    /// There will be no more frames.
    is_last: bool,
    /// The note that was `notifications/initialized`, until the server has it.
    initialized: Option<u64>,
    /// The server has forgotten a session.
    lost: CancellationToken,
}

impl Desk {
    /// A desk that has taken nothing. `lost` fires when the server has forgotten a session.
    pub(crate) fn new(context: Arc<Context>, lost: CancellationToken) -> Self {
        Self {
            context,
            session: None,
            open: ById::default(),
            serial: 0,
            modern: None,
            waits: Waits::Nothing,
            last_note: 0,
            overdue: 0,
            lanes: Lanes::default(),
            is_opening: false,
            is_last: false,
            initialized: None,
            lost,
        }
    }

    /// Takes frames until there are no more, or until a moment after `closing`.
    pub(crate) async fn run(
        mut self,
        mut frames: mpsc::UnboundedReceiver<Waiting>,
        mut heard: mpsc::UnboundedReceiver<News>,
        closing: CancellationToken,
    ) {
        let too_late = async {
            closing.cancelled().await;
            sleep(LAST).await;
        };
        tokio::pin!(too_late);
        while !(self.is_last && self.waits == Waits::Nothing && self.lanes.holds_none()) {
            tokio::select! {
                biased;
                Some(news) = heard.recv() => self.hear(news),
                () = &mut too_late => break,
                frame = frames.recv(), if self.takes() => match frame {
                    Some(waiting) => self.take(waiting),
                    None => self.is_last = true,
                },
            }
        }
        self.end().await;
    }

    /// Whether the next frame may be taken.
    fn takes(&self) -> bool {
        !self.is_last && self.waits == Waits::Nothing && !self.lanes.are_full()
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Opened(session) => {
                self.watch(&session);
                if session.number == self.serial {
                    self.is_opening = true;
                    if let Some(before) = self.session.replace(session) {
                        self.initialized = None;
                        self.leave(before);
                    }
                }
            }
            News::OpeningEnded => self.waits_no_more(Waits::Opening),
            News::Overtaken(note) | News::Listening(note) => self.waits_no_more(Waits::Note(note)),
            News::Overdue => self.overdue += 1,
            News::Delivered { note, lane, is_delivered, was_overdue } => {
                self.overdue -= usize::from(was_overdue);
                self.has_arrived(lane);
                let is_initialized = self.initialized.take_if(|initialized| *initialized == note).is_some();
                if is_initialized
                    && is_delivered
                    && let Some(session) = &self.session
                {
                    tokio::spawn(listen::open(Arc::clone(&self.context), Arc::clone(session), note));
                } else {
                    self.waits_no_more(Waits::Note(note));
                }
            }
            News::Done(serial, id) => {
                if self.open.get(id.borrow()).is_some_and(|going| going.serial == serial) {
                    self.open.remove(id.borrow());
                }
            }
        }
    }

    /// This is not waited for any more, if it was.
    fn waits_no_more(&mut self, waits: Waits) {
        if self.waits == waits {
            self.waits = Waits::Nothing;
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

    fn take(&mut self, waiting: Waiting) {
        let bytes = waiting.frame.clone();
        let Ok(frame) = ClientFrame::read(&bytes) else {
            // Whoever owns the link has read it before.
            tracing::debug!("a frame for the MCP server cannot be read, and is left out");
            return;
        };
        let version = modern_version(&frame);
        match (frame.method(), frame.id()) {
            (Some(_), Some(id)) => self.request(&frame, id, version, waiting),
            (Some("notifications/cancelled"), None) => self.cancel(&frame, waiting),
            _ => {
                let is_initialized = frame.method() == Some("notifications/initialized");
                let headers = self.headers(&frame, version.as_deref());
                let (note, lane) = match frame.id().filter(|_| frame.is_response()) {
                    Some(id) => match self.context.take_asked(id) {
                        Some(AskedOn::Call(call)) => (Note::Answer { call: Some(call) }, Lane::Awaited),
                        Some(AskedOn::OwnStream) => (Note::Answer { call: None }, Lane::Awaited),
                        None => (Note::Answer { call: None }, Lane::Ordinary),
                    },
                    None if is_initialized && std::mem::take(&mut self.is_opening) => {
                        (Note::Notification { after: None }, Lane::Awaited)
                    }
                    None => (Note::Notification { after: None }, Lane::Ordinary),
                };
                let patience = if is_initialized { PATIENCE_AT_FIRST } else { OVERDUE };
                let number = self.deliver(headers, waiting, note, lane, patience);
                if is_initialized {
                    self.initialized = Some(number);
                }
            }
        }
    }

    fn request(&mut self, frame: &ClientFrame<'_>, id: Id<'_>, version: Option<String>, waiting: Waiting) {
        let params = waiting.beside.params.clone();
        self.serial += 1;
        let serial = self.serial;
        let opens = frame.method() == Some("initialize");
        let headers = match &version {
            Some(version) => exchange::modern_headers(&self.context, frame, version, params.as_deref()),
            None if opens => HeaderMap::new(),
            None => self.session_headers(frame, params.as_deref()),
        };
        let kind = match version {
            // Whatever it says about itself, it opens a session.
            _ if opens => {
                self.waits = Waits::Opening;
                Kind::Opening(serial)
            }
            Some(version) => {
                self.modern = Some(version);
                Kind::Modern
            }
            None => Kind::Legacy(self.session.clone()),
        };
        let is_modern = matches!(kind, Kind::Modern);
        let (has_left, left) = oneshot::channel();
        let cancelled = CancellationToken::new();
        let owned = id.to_owned();
        let lists_tools = frame.method() == Some("tools/list");
        let again = is_modern && frame.method() == Some("tools/call");
        let again = again.then(|| Again::new(&self.context, &waiting)).flatten();
        let body = waiting.into_counted();
        let call = Call {
            id: owned.clone(),
            kind,
            headers,
            lists_tools,
            cancelled: cancelled.clone(),
            unanswered: CancellationToken::new(),
        };
        let context = Arc::clone(&self.context);
        let task = tokio::spawn(async move {
            exchange::run(Arc::clone(&context), call, Sending { body, again, has_left }).await;
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
    fn cancel(&mut self, frame: &ClientFrame<'_>, waiting: Waiting) {
        let going = frame.cancelled().and_then(|id| self.open.remove(id));
        let (after, lane) = match going {
            Some(going) if going.is_modern => {
                going.task.abort();
                return;
            }
            Some(mut going) => {
                going.cancelled.cancel();
                (going.has_left.take(), Lane::Awaited)
            }
            // Late; a server of the modern era has no use for it.
            None if self.session.is_none() => return,
            None => (None, Lane::Ordinary),
        };
        let headers = self.headers(frame, None);
        self.deliver(headers, waiting, Note::Notification { after }, lane, OVERDUE);
    }

    /// Sends a note, for which what follows waits, or holds it; returns its number.
    fn deliver(
        &mut self,
        headers: HeaderMap,
        waiting: Waiting,
        note: Note,
        lane: Lane,
        patience: Duration,
    ) -> u64 {
        self.last_note += 1;
        let number = self.last_note;
        let patience = if self.overdue == 0 { patience } else { IMPATIENCE };
        let letter = Letter { number, lane, headers, waiting, note, patience };
        if let Some(sent) = self.lanes.take((letter, self.session.clone())) {
            self.waits = Waits::Note(number);
            self.send(sent);
        }
        number
    }

    fn send(&self, (letter, session): Sent) {
        tokio::spawn(note::deliver(Arc::clone(&self.context), session, letter));
    }

    /// A note has arrived or was given up: another one goes in its place.
    fn has_arrived(&mut self, lane: Lane) {
        let Some(next) = self.lanes.arrived(lane) else { return };
        if self.is_last {
            self.waits = Waits::Note(next.0.number);
        }
        self.send(next);
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
