//! The side that listens: Streamable HTTP in front of MCP servers that speak stdio, or Streamable HTTP themselves (mcp.md
//! §1, §4, §5; S6, S10, S37).
//!
//! # One endpoint, two eras
//!
//! `/mcp` serves both, decided per request by what its body says about itself, and never by a header:
//!
//! - a request with a modern `_meta` version is **modern**: one POST, one answer, nothing kept. Its headers must mirror its
//!   body (-32020). Who closes the response has cancelled.
//! - `initialize` opens a **legacy session**, whatever stands in its `_meta`; every other request names one with
//!   `Mcp-Session-Id`. A session has POSTs that are answered with JSON or with a stream, a GET stream, and streams that are
//!   resumed with `Last-Event-ID`. Who disconnects has cancelled nothing.
//!
//! # The parts
//!
//! ```text
//!   net ── door ──▶ plain or service ── walls, callers ──▶ post ──▶ link ── stdin ──▶ child
//!                                                                   │ envelope        │
//!   body ◀── events ◀── outlet ◀── session or shared desk ◀─────────┴─── stdout ◀─────┘
//!   quick ◀─────────────────┘
//! ```
//!
//! A connection's requests are read by [`plain`] for as long as they are what nearly all are: POSTs of the endpoint with
//! a length, and GETs of it. With the first that is something else, the connection is hyper's. What a request may do, and what it is
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
//! A frame is decided about under the lock, and written to the server's pipe there if the pipe has room. Where several
//! requests of a link are open, those that are read in one turn go out together ([`stdin`]). An answer is written to its
//! connection where it was read ([`quick`]), and wakes nobody, as long as the connection takes it at once; what it does not
//! take is sent by the connection's task. The first frame decides the shape of a POST's answer: a response is sent as JSON,
//! anything else begins a stream. Frames are passed on as the bytes that came.
//!
//! Nothing here arms a timer of the runtime while calls come and go ([`alarm`]).
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
//! - A client that cannot be shown a question, because it takes no stream, or has left before it was sent anything to come back
//!   to, has not been shown it: the call ends with its refusal. One that can come back has until the question's deadline.

mod alarm;
mod asked;
mod body;
mod callers;
mod calls;
mod child;
mod clockwork;
mod desk;
mod door;
mod events;
mod general;
mod handover;
mod head;
mod known;
mod lines;
mod link;
mod links;
mod metrics;
mod net;
mod outlet;
mod paced;
mod params;
mod pieces;
mod plain;
mod post;
mod question;
mod quick;
mod remote;
mod replay;
mod reply;
mod restarts;
mod service;
mod session;
mod settings;
mod shared;
mod shares;
mod spare;
mod state;
mod stdin;
mod stdout;
mod strays;
mod tls;
mod waiting;
mod walls;

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsString,
    fmt, io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use handraise_asker::Asker;
use handraise_mcp::{
    envelope::Process,
    record::{Record, Recorder},
};
use handraise_spent::Spender;
use handraise_transport::{
    clock::{Clock as _, SystemClock},
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
use link::Link;
use metrics::{Count, Metrics};
use restarts::Restarts;
use shares::{Shares, Taken};

use crate::{
    budget::{self, Budget, Budgets},
    upstream::Server,
};

pub use callers::Caller;
pub use settings::{Caps, FrontError, FrontSettings, Reload, TlsFiles};

/// How long the end may take once it was asked for: the supervisors' grace and a moment.
const LAST_MOMENTS: Duration = Duration::from_millis(1800);

/// How many threads ask the store of spent nonces: while one waits for the disk, other callers are answered.
const SPENDERS: usize = 4;

/// A session that is open, and its place.
struct Session {
    link: Arc<Link>,
    _place: Taken,
}

/// What all connections share.
pub(crate) struct Front {
    process: Arc<Process>,
    upstream: Option<Arc<Server>>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    supervisor: Supervisor,
    max_frame: usize,
    caps: Caps,
    walls: walls::Walls,
    spare: spare::Spare,
    /// What servers are read into, and what goes to them is gathered in.
    frames: Arc<spare::Spare>,
    date: plain::Date,
    callers: callers::Callers,
    door: Arc<Door>,
    budgets: Budgets,
    metrics: Arc<Metrics>,
    clockwork: Clockwork,
    sessions: Mutex<HashMap<String, Session>>,
    /// The servers of modern requests, by principal.
    shared: Mutex<HashMap<Arc<str>, Arc<Link>>>,
    /// How these have ended, by principal.
    restarts: Mutex<HashMap<Arc<str>, Restarts>>,
    /// How those of sessions have that never opened one, by principal.
    openings: Mutex<HashMap<Arc<str>, Restarts>>,
    /// The bodies of those who have no link yet, by principal.
    arriving: Mutex<HashMap<Arc<str>, Arc<Budget>>>,
    children: Arc<Mutex<Shares>>,
    /// The places of sessions.
    places: Arc<Mutex<Shares>>,
    links: AtomicU64,
    recorder: Mutex<Box<dyn Recorder + Send>>,
    spender: Spender<Arc<Link>>,
    asker: Asker<Arc<Link>>,
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

    clockwork::start(&front).map_err(FrontError::Prepare)?;
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
        let FrontSettings { process, caps, callers, recorder, reload, spent, inbox, .. } = settings;
        let runtime = Handle::current();
        let shutdown = CancellationToken::new();
        let names: BTreeSet<&str> = callers.iter().map(|caller| caller.name.as_str()).collect();
        let shares = |most| Arc::new(Mutex::new(Shares::new(most, names.len())));
        let tell = move |link: Arc<Link>, ticket, was| {
            // What follows from an answer may start a task.
            let _inside = runtime.enter();
            link.spent(ticket, was);
        };
        let runtime = Handle::current();
        let tell_of_inbox = move |link: Arc<Link>, key: &str, said| {
            let _inside = runtime.enter();
            link.inbox_said(key, &said);
        };
        let asker = match inbox {
            None => Asker::none(),
            Some(find) => {
                let asker = Asker::start(find, !callers.is_empty(), tell_of_inbox)?;
                process.attach_inbox(asker.seen());
                process.attach_switch(asker.switch());
                asker
            }
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
            spare: spare::Spare::new(plain::ROOM),
            frames: Arc::new(spare::Spare::new(child::PIPE)),
            date: plain::Date::new(SystemClock.wall()),
            callers: callers::Callers::new(&callers),
            door: Door::new(caps.connections, &shutdown),
            budgets: Budgets::new(caps.bytes_in_flight, &names),
            metrics: Arc::default(),
            clockwork: Clockwork::default(),
            sessions: Mutex::default(),
            shared: Mutex::default(),
            restarts: Mutex::default(),
            openings: Mutex::default(),
            arriving: Mutex::default(),
            children: shares(caps.children),
            places: shares(caps.sessions),
            links: AtomicU64::new(0),
            recorder: Mutex::new(recorder),
            asker,
            spender: Spender::start(spent, SPENDERS, SystemClock::shared(), tell)?,
            tasks: TaskTracker::new(),
            shutdown,
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
        self.asker.end();
    }

    fn take_links(&self) -> Vec<Arc<Link>> {
        let sessions = std::mem::take(&mut *lock(&self.sessions)).into_values().map(|session| session.link);
        let shared = std::mem::take(&mut *lock(&self.shared)).into_values();
        sessions.chain(shared).collect()
    }

    fn next_number(&self) -> u64 {
        self.links.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes records.
    fn record<'r>(&self, records: impl Iterator<Item = &'r Record>) {
        let mut records = records.peekable();
        if records.peek().is_some() {
            let recorder = lock(&self.recorder);
            records.for_each(|record| {
                recorder.record(record);
                self.asker.record(record);
            });
        }
    }

    /// How many sessions and shared servers there are.
    fn counts(&self) -> (usize, usize) {
        (lock(&self.sessions).len(), lock(&self.shared).len())
    }

    /// What one holder of a principal's may make us hold: a part of all, and at least one of the longest frames.
    fn part(&self, principal: &str) -> Arc<Budget> {
        self.budgets.of(principal).part((self.caps.bytes_in_flight / 4).max(self.max_frame))
    }

    /// The budget of a principal's bodies that belong to no session.
    fn arriving(&self, principal: &Arc<str>) -> Arc<Budget> {
        Arc::clone(lock(&self.arriving).entry(Arc::clone(principal)).or_insert_with(|| self.part(principal)))
    }

    /// Lets a second pass.
    fn tick(&self) {
        self.date.set(SystemClock.wall());
        self.door.tick(&self.metrics);
        let mut links: Vec<Arc<Link>> =
            lock(&self.sessions).values().map(|session| Arc::clone(&session.link)).collect();
        links.extend(lock(&self.shared).values().cloned());
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

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
