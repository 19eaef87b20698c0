//! The main thread: starts everything, keeps time, takes signals, and decides when it is over.

use std::{
    fs::File,
    io,
    os::fd::AsFd,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use handraise_core::Moment;
use handraise_mcp::envelope::{Envelope, Process};
use handraise_transport::{blocking::Supervised, ids, spawn};

use crate::{
    GatewayError, GatewaySettings, client,
    ending::{Ending, Situation, Step},
    outlet::{Outlet, holds_unread},
    server,
    shared::{Shared, Side, now},
    spender, start, stderr,
    wake::{Wakeups, Woken},
};

/// How long a sleep trusts the timer, which stands still during suspend, while the clock of deadlines does not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long the server's last words may take to reach the log.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Exit status when it is not known how the server ended, or when a signal cut its end short.
const UNKNOWN: u8 = 1;

/// Runs the gateway until its server has ended; returns the server's exit status.
///
/// # Errors
/// When the server cannot be started.
pub fn run(settings: GatewaySettings) -> Result<u8, GatewayError> {
    let (wakeups, waker) = Wakeups::register().map_err(GatewayError::Prepare)?;
    spawn::become_subreaper().map_err(GatewayError::Prepare)?;
    let server = start::start(&settings)?;
    let (stdin, stdout) = (own(io::stdin())?, own(io::stdout())?);
    let GatewaySettings { process, max_frame, reload, recorder, spent, .. } = settings;
    let envelope = Envelope::new(Arc::clone(&process), ids::random()?);
    let (to_client, to_upstream) = (Outlet::new(stdout), Outlet::new(server.stdin));
    let (spender, questions) = channel();
    let shared = Arc::new(Shared::new(envelope, process, to_client, to_upstream, waker, recorder, spender));
    if let Some(store) = spent {
        let shared = Arc::clone(&shared);
        start_thread("spender", move || spender::run(&shared, store, &questions))?;
    }

    let (client_shared, server_shared) = (Arc::clone(&shared), Arc::clone(&shared));
    let (from_server, complaints) = (server.stdout, server.stderr);
    start_thread("server", move || server::run(&server_shared, from_server, max_frame))?;
    start_thread("client", move || client::run(&client_shared, stdin, max_frame))?;
    let (said_all_sender, said_all) = channel();
    start_thread("log", move || stderr::log(complaints, said_all_sender))?;

    let mut main = Main {
        shared,
        child: server.child,
        status: None,
        ending: Ending::default(),
        asked_to_end: false,
        watches_upstream: true,
        reload,
        said_all,
    };
    Ok(main.until_the_end(wakeups))
}

/// Our own copy of a standard stream, without its buffer.
fn own(stream: impl AsFd) -> Result<File, GatewayError> {
    stream.as_fd().try_clone_to_owned().map(File::from).map_err(GatewayError::Prepare)
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), GatewayError> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(GatewayError::Prepare)
}

struct Main {
    shared: Arc<Shared>,
    child: Supervised,
    /// How the server ended.
    status: Option<io::Result<ExitStatus>>,
    ending: Ending,
    asked_to_end: bool,
    /// Whether the server has been seen to read on until now.
    watches_upstream: bool,
    reload: Box<dyn Fn() -> Result<bool, String>>,
    /// Hangs up when the server's stderr is through.
    said_all: Receiver<()>,
}

impl Main {
    fn until_the_end(&mut self, mut wakeups: Wakeups) -> u8 {
        loop {
            if self.status.is_none() {
                self.status = self.child.try_wait().transpose();
            }
            let until = match self.ending.next(now().boot, &self.situation()) {
                Step::Wait(until) => until,
                Step::Terminate => {
                    self.child.terminate();
                    continue;
                }
                Step::Report => {
                    self.report();
                    continue;
                }
                Step::Exit => return self.exit_status(),
            };
            let timeout = self.tick(until);
            // Held while it is watched only: the server waits for its end.
            let pipe = self.watches_upstream.then(|| self.shared.outlet(Side::Upstream).watch()).flatten();
            let Woken { ends, reload, unread } = wakeups.wait(pipe.as_deref(), timeout);
            if let Some(pipe) = pipe.filter(|_| unread) {
                self.watches_upstream = false;
                // A server that has read everything may still answer. What is sent from now on fails by itself.
                if holds_unread(&pipe) {
                    self.shared.gone(Side::Upstream);
                }
            }
            if ends > 0 {
                if self.asked_to_end || ends > 1 {
                    tracing::warn!("ending at once, on the second signal");
                    return UNKNOWN;
                }
                self.end_in_order();
            }
            if reload {
                self.reload();
            }
        }
    }

    /// Settles what is due, and says how long to sleep.
    fn tick(&self, until: Option<Moment>) -> Option<Duration> {
        let now = now();
        let mut state = self.shared.lock();
        let mut out = Vec::new();
        if state.envelope.next_deadline().is_some_and(|deadline| deadline <= now.boot) {
            state.envelope.tick(now, &mut out);
        }
        let next = [until, state.envelope.next_deadline()].into_iter().flatten().min();
        state.sleeps_until = next;
        self.shared.carry_out(state, &mut out);
        next.map(|next| now.boot.until(next).min(LOOK_AGAIN))
    }

    fn situation(&self) -> Situation {
        let upstream_is_silent = self.shared.upstream_is_silent.load(Ordering::Relaxed);
        let is_drained = self.shared.is_drained();
        let state = self.shared.lock();
        Situation {
            progress: state.progress,
            has_exited: self.status.is_some(),
            upstream_is_silent,
            is_drained,
            open_requests: state.envelope.open_requests(),
            asked_to_end: self.asked_to_end,
        }
    }

    /// Tells the client how its open calls end.
    fn report(&self) {
        let how = match &self.status {
            Some(Ok(status)) => describe(*status),
            Some(Err(_)) => "it is unknown how".to_owned(),
            // It lives on, and is of no use.
            None => "it closed its stdin".to_owned(),
        };
        if self.status.is_some() {
            // What it complained about stands in the log before this.
            let _ = self.said_all.recv_timeout(LAST_WORDS);
        }
        let mut state = self.shared.lock();
        let (is_expected, open) =
            (state.progress.client_ended || self.asked_to_end, state.envelope.open_requests());
        let mut out = Vec::new();
        state.envelope.upstream_ended(&how, now(), &mut out);
        self.shared.carry_out(state, &mut out);
        if is_expected {
            tracing::debug!(open_calls = open, "the MCP server has ended: {how}");
        } else {
            tracing::warn!(open_calls = open, "the MCP server has ended: {how}");
        }
    }

    fn end_in_order(&mut self) {
        tracing::info!("ending in order; the same signal again ends at once");
        self.asked_to_end = true;
        let mut state = self.shared.lock();
        let mut out = Vec::new();
        state.envelope.client_closed(now(), &mut out);
        self.shared.carry_out(state, &mut out);
    }

    fn reload(&self) {
        let process: &Process = &self.shared.process;
        match (self.reload)() {
            Ok(is_on) => {
                process.set_elicitation(is_on);
                tracing::info!(
                    elicitation = if is_on { "on" } else { "off" },
                    "the settings were read again"
                );
            }
            Err(error) => tracing::error!("the settings stay as they are: {error}"),
        }
    }

    fn exit_status(&self) -> u8 {
        match &self.status {
            Some(Ok(status)) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(UNKNOWN),
            Some(Err(_)) | None => UNKNOWN,
        }
    }
}

/// How the server ended, for the client: the exit status and nothing else (S33).
fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit status {code}"),
        None => "its supervisor was killed".to_owned(),
    }
}
