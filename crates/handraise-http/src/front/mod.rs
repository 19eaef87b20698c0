//! The side that listens: Streamable HTTP in front of MCP servers that speak stdio, or Streamable HTTP themselves (mcp.md
//! §1, §4, §5; S6, S10, S37).
//!
//! # One endpoint, two eras
//!
//! `/mcp` serves both, decided per request by what its body says about itself, and never by a header:
//!
//! - a request with a modern `_meta` version is **modern**: one POST, one answer, nothing kept. Its headers must mirror its
//!   body (-32020). Who closes the response has cancelled.
//! - `initialize` opens a **legacy session**; every other request names one with `Mcp-Session-Id`. A session has POSTs
//!   that are answered with JSON or with a stream, a GET stream, and streams that are resumed with `Last-Event-ID`. Who
//!   disconnects has cancelled nothing.
//!
//! # The parts
//!
//! ```text
//!   net ── door ──▶ plain or service ── walls, callers ──▶ post ──▶ link ── stdin ──▶ child
//!                                                                   │ envelope        │
//!   body ◀── events ◀── outlet ◀── session or shared desk ◀─────────┴──── lines ◀─────┘
//! ```
//!
//! A connection's requests are read by [`plain`] for as long as they are what nearly all are: POSTs of the endpoint with
//! a length. With the first that is something else, the connection is hyper's. What a request may do, and what it is
//! answered, is decided by the same code for both.
//!
//! In front of a server at a URL, a link has a way to it ([`crate::upstream`]) in place of a process: a session of its own
//! for each legacy session, and none for modern requests.
//!
//! A [`link`] is one server process, one envelope, and the streams of those whom it serves, under one lock: a legacy
//! session, or the modern requests of one principal. There is no other way from a client to a server, so that no server
//! serves two principals (S6). Everything that a client can name, such as an id, a token or an event, is looked up in its
//! link alone.
//!
//! A frame is decided about under the lock, and written to the server's pipe there if the pipe has room; an answer wakes
//! the task of its connection and nobody else. The first frame decides the shape of a POST's answer: a response is sent
//! as JSON, anything else begins a stream. Frames are passed on as the bytes that came.
//!
//! # Decided here
//!
//! - A body's line ends outside of strings become spaces: they would end the line that the server reads.
//! - A second open request of a session under one id is refused: one stream has one request.
//! - The modern era has no requests of the server: it is answered here. Notifications that belong to no open request
//!   reach nobody, and neither does a cancellation that is POSTed: ids of one client mean nothing to another.
//! - A silent call's answer becomes a stream after five seconds, where the client takes one, so that those in between
//!   see life; a quiet stream gets a comment every fifteen.
//! - A server that ends takes its session with it: the client is told 404 and opens a new one. One that serves modern
//!   requests is started again by the next of them; one that keeps ending after a while only, and until then they are told
//!   to come back (503).
//! - A client that cannot be shown a question, because it takes no stream or has left, has not been shown it: the call
//!   ends with its refusal.

mod body;
mod callers;
mod child;
mod clockwork;
mod door;
mod events;
mod head;
mod lines;
mod link;
mod metrics;
mod net;
mod outlet;
mod paced;
mod params;
mod pieces;
mod plain;
mod post;
mod remote;
mod replay;
mod reply;
mod restarts;
mod service;
mod session;
mod settings;
mod shared;
mod stdin;
mod tls;
mod walls;

use std::{
    collections::HashMap,
    ffi::OsString,
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use handraise_core::Moment;
use handraise_mcp::{
    envelope::{Caller as Bound, Envelope, Process},
    record::{Record, Recorder},
};
use handraise_spent::Spender;
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    ids,
    spawn::{self, Supervisor},
};
use tokio::{
    net::TcpListener,
    runtime::Handle,
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use clockwork::Clockwork;
use door::Door;
use link::{Desk, Link};
use metrics::{Count, Metrics};
use replay::Replay;
use reply::Refusal;
use restarts::Restarts;
use stdin::Stdin;

use crate::{
    budget::{self, Budget},
    now::now,
    upstream::Server,
};

pub use callers::Caller;
pub use settings::{Caps, FrontError, FrontSettings, Reload, TlsFiles};

/// How long the end may take once it was asked for: the supervisors' grace and a moment.
const LAST_MOMENTS: Duration = Duration::from_millis(1800);

/// How many threads ask the store of spent nonces: while one waits for the disk, other callers are answered.
const SPENDERS: usize = 4;

/// What all connections share.
struct Front {
    process: Arc<Process>,
    upstream: Option<Arc<Server>>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    supervisor: Supervisor,
    max_frame: usize,
    caps: Caps,
    walls: walls::Walls,
    spare: plain::Spare,
    date: plain::Date,
    callers: callers::Callers,
    door: Arc<Door>,
    budget: Arc<Budget>,
    metrics: Metrics,
    clockwork: Clockwork,
    sessions: Mutex<HashMap<String, Arc<Link>>>,
    /// The servers of modern requests, by principal.
    shared: Mutex<HashMap<Arc<str>, Arc<Link>>>,
    /// How these have ended, by principal.
    restarts: Mutex<HashMap<Arc<str>, Restarts>>,
    /// The bodies of those who have no link yet, by principal.
    arriving: Mutex<HashMap<Arc<str>, Arc<Budget>>>,
    children: AtomicUsize,
    links: AtomicU64,
    recorder: Mutex<Box<dyn Recorder + Send>>,
    spender: Spender<Arc<Link>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// The parts say what they are; this is where they hang together.
impl fmt::Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("caps", &self.caps).finish_non_exhaustive()
    }
}

/// Serves until `shutdown` completes. `ready` is told the address.
///
/// # Errors
/// When it cannot begin: see [`FrontError`].
pub async fn serve(
    settings: FrontSettings,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), FrontError> {
    let is_open = !settings.listen.ip().is_loopback();
    if is_open && settings.callers.is_empty() {
        return Err(FrontError::NoCallers(settings.listen));
    }
    if is_open && settings.tls.is_none() && !settings.insecure_behind_proxy {
        return Err(FrontError::Insecure(settings.listen));
    }
    let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
    spawn::become_subreaper().map_err(FrontError::Prepare)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(FrontError::Prepare)?;
    let failed = |source| FrontError::Listen { address: settings.listen, source };
    let listener = TcpListener::bind(settings.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (front, reload) = Front::new(settings, address.port(), is_open).map_err(FrontError::Prepare)?;
    ready(address);
    tracing::info!(%address, tls = tls.is_some(), "serving MCP at /mcp");

    front.tasks.spawn(clockwork::run(Arc::clone(&front)));
    front.tasks.spawn(net::accept(Arc::clone(&front), listener, tls));
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = hangup.recv() => reload(),
        }
    }
    front.end().await;
    Ok(())
}

impl Front {
    fn new(settings: FrontSettings, port: u16, is_open: bool) -> io::Result<(Arc<Self>, Reload)> {
        let FrontSettings { process, caps, callers, recorder, reload, spent, .. } = settings;
        let runtime = Handle::current();
        let tell = move |link: Arc<Link>, ticket, was| {
            // What follows from an answer may start a task.
            let _inside = runtime.enter();
            link.spent(ticket, was);
        };
        let front = Self {
            process,
            upstream: settings.upstream,
            command: settings.command,
            environment: settings.environment,
            supervisor: settings.supervisor,
            max_frame: settings.max_frame,
            caps,
            walls: walls::Walls::new(port, settings.allowed_hosts, settings.allowed_origins, is_open),
            spare: plain::Spare::default(),
            date: plain::Date::new(SystemClock.wall()),
            callers: callers::Callers::new(&callers),
            door: Door::new(caps.connections),
            budget: Budget::new(caps.bytes_in_flight),
            metrics: Metrics::default(),
            clockwork: Clockwork::default(),
            sessions: Mutex::default(),
            shared: Mutex::default(),
            restarts: Mutex::default(),
            arriving: Mutex::default(),
            children: AtomicUsize::new(0),
            links: AtomicU64::new(0),
            recorder: Mutex::new(recorder),
            spender: Spender::start(spent, SPENDERS, SystemClock::shared(), tell)?,
            tasks: TaskTracker::new(),
            shutdown: CancellationToken::new(),
        };
        Ok((Arc::new(front), reload))
    }

    /// Ends everything in order, within bounds.
    async fn end(&self) {
        let links = self.take_links();
        for link in &links {
            link.end();
        }
        self.shutdown.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(LAST_MOMENTS, self.tasks.wait()).await;
    }

    fn take_links(&self) -> Vec<Arc<Link>> {
        let sessions = std::mem::take(&mut *lock(&self.sessions)).into_values();
        let shared = std::mem::take(&mut *lock(&self.shared)).into_values();
        sessions.chain(shared).collect()
    }

    fn next_number(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed)
    }

    fn record(&self, records: &[Record]) {
        let recorder = lock(&self.recorder);
        for record in records {
            recorder.record(record);
        }
    }

    /// How many sessions and shared servers there are.
    fn counts(&self) -> (usize, usize) {
        (lock(&self.sessions).len(), lock(&self.shared).len())
    }

    /// What one holder may make us hold: a part of all, and at least one of the longest frames.
    fn part(&self) -> Arc<Budget> {
        self.budget.part((self.caps.bytes_in_flight / 4).max(self.max_frame))
    }

    /// The budget of a principal's bodies that belong to no session.
    fn arriving(&self, principal: &Arc<str>) -> Arc<Budget> {
        Arc::clone(lock(&self.arriving).entry(Arc::clone(principal)).or_insert_with(|| self.part()))
    }

    /// A principal's session.
    fn session(&self, id: &str, principal: &str) -> Option<Arc<Link>> {
        let link = lock(&self.sessions).get(id).cloned()?;
        // Somebody else's session is none (S10).
        (&*link.principal == principal && !link.is_over()).then_some(link)
    }

    /// Opens a session, and starts its server.
    fn open_session(self: &Arc<Self>, principal: &Arc<str>) -> Result<(String, Arc<Link>), Refusal> {
        let id = ids::secret().map_err(|error| start_failed(&error))?;
        let mut sessions = lock(&self.sessions);
        if sessions.len() >= self.caps.sessions {
            self.metrics.count(Count::Sessions);
            return Err(Refusal::Sessions);
        }
        let bound = Bound { principal: principal.to_string(), session: Some(id.clone()) };
        let replay = Replay::new(self.caps.replay_events, self.caps.replay_bytes);
        let budget = self.part();
        let desk = session::Desk::new(Arc::new(bound), Arc::clone(&budget), replay);
        let link = self.start(principal, Desk::Session(Box::new(desk)), budget)?;
        sessions.insert(id.clone(), Arc::clone(&link));
        Ok((id, link))
    }

    /// The server of a principal's modern requests.
    fn shared(self: &Arc<Self>, principal: &Arc<str>) -> Result<Arc<Link>, Refusal> {
        let mut shared = lock(&self.shared);
        if let Some(link) = shared.get(principal).filter(|link| !link.is_over()) {
            return Ok(Arc::clone(link));
        }
        if let Some(seconds) = lock(&self.restarts).get(principal).and_then(|known| known.wait(now().boot)) {
            return Err(Refusal::Restarting(seconds));
        }
        let budget = self.part();
        let desk = shared::Desk::new(Arc::clone(&budget), self.caps.subscriptions);
        let link = self.start(principal, Desk::Shared(desk), budget)?;
        shared.insert(Arc::clone(principal), Arc::clone(&link));
        Ok(link)
    }

    fn start(
        self: &Arc<Self>,
        principal: &Arc<str>,
        desk: Desk,
        budget: Arc<Budget>,
    ) -> Result<Arc<Link>, Refusal> {
        let random = || ids::random().map_err(|error| start_failed(&error));
        if let Some(server) = &self.upstream {
            let envelope = Envelope::new(Arc::clone(&self.process), random()?);
            return Ok(remote::start(self, server, Arc::clone(principal), envelope, desk, budget));
        }
        let Some(place) = child::Counted::take(self) else {
            self.metrics.count(Count::Children);
            return Err(Refusal::Children);
        };
        let seed = random()?;
        let mut started = child::start(self).map_err(|error| start_failed(&error))?;
        let envelope = Envelope::new(Arc::clone(&self.process), seed);
        let stdin = Stdin::new(started.take_stdin().ok_or(Refusal::Start)?);
        let link = Link::new(self, Arc::clone(principal), envelope, desk, stdin, budget);
        child::attend(&link, started, place);
        Ok(link)
    }

    /// A server of modern requests has ended by itself.
    fn ended_by_itself(&self, link: &Link, started: Moment) {
        // Without randomness there is nothing to spread, and all of the wait.
        let random = ids::random().map_or(u8::MAX, |bytes| bytes[0]);
        let mut restarts = lock(&self.restarts);
        let known = restarts.entry(Arc::clone(&link.principal)).or_default();
        let wait = known.ended(started, now().boot, random);
        if !wait.is_zero() {
            tracing::warn!(
                principal = &*link.principal,
                ?wait,
                "an MCP server keeps ending; none is started for a while"
            );
        }
    }

    /// A link's server has ended.
    fn forget(&self, link: &Arc<Link>) {
        lock(&self.sessions).retain(|_, known| !Arc::ptr_eq(known, link));
        lock(&self.shared).retain(|_, known| !Arc::ptr_eq(known, link));
    }

    /// Ends a session.
    fn end_session(&self, id: &str) {
        let link = lock(&self.sessions).remove(id);
        if let Some(link) = link {
            link.end();
        }
    }

    /// Lets a second pass.
    fn tick(&self) {
        self.date.set(SystemClock.wall());
        self.door.tick(&self.metrics);
        let links: Vec<Arc<Link>> =
            lock(&self.sessions).values().chain(lock(&self.shared).values()).cloned().collect();
        let idle = u64::try_from(self.caps.idle.as_millis()).unwrap_or(u64::MAX);
        for link in links {
            if link.tick(idle) {
                self.metrics.count(Count::IdleSessions);
                self.forget(&link);
                link.end();
            }
        }
        // Nothing of theirs is arriving.
        lock(&self.arriving).retain(|_, budget| Arc::strong_count(budget) > 1);
    }
}

fn start_failed(error: &dyn fmt::Display) -> Refusal {
    tracing::error!("the MCP server cannot be started: {error}");
    Refusal::Start
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
