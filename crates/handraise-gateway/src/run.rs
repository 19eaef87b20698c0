//! The loop: waits for whoever is ready, keeps time, takes signals, and decides when it is over.

use std::{
    fs::File,
    io,
    os::fd::AsFd as _,
    process::ExitStatus,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use handraise_core::Moment;
use handraise_mcp::{
    Now,
    confirm::Spent,
    envelope::{Caller, Envelope, Out, Process},
    record::Recorder,
};
use handraise_spent::Spender;
use handraise_transport::{
    blocking::Supervised,
    clock::{Clock as _, SystemClock},
    ids,
    limited::Limited,
    spawn,
};
use rustix::event::Timespec;

use crate::{
    GatewayError, GatewaySettings, anew,
    ending::{Ending, Progress, Situation, Step},
    flow::Flow,
    outlet::{Gone, Outlet},
    start, stderr,
    turns::{Luck, MOST_TURNS, Side},
    waiter::{Interests, Ready, Until, Waiter, Who},
    wake::Wakeups,
};

/// How long a sleep trusts the timer, which stands still during suspend, while the clock of deadlines does not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long the server's last words may take to reach the log.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How much of our own may wait for a side that does not read before nothing more is taken from the other side.
const MOST_MADE: usize = 16 * 1024 * 1024;
/// Exit status when it is not known how the server ended, or when a signal cut its end short.
const UNKNOWN: u8 = 1;

/// Runs the gateway until its server has ended; returns the server's exit status.
///
/// # Errors
/// When the server cannot be started.
pub fn run(mut settings: GatewaySettings) -> Result<u8, GatewayError> {
    let (wakeups, waker) = Wakeups::register().map_err(GatewayError::Prepare)?;
    spawn::become_subreaper().map_err(GatewayError::Prepare)?;
    let server = start::start(&mut settings)?;
    let GatewaySettings { process, max_frame, reload, recorder, spent, .. } = settings;
    let (says, said) = channel();
    let tell = move |(), ticket, was| {
        // Who is gone needs no answer.
        let _ = says.send((ticket, was));
        waker.wake();
    };
    let spender = Spender::start(spent, 1, SystemClock::shared(), tell).map_err(GatewayError::Prepare)?;
    let (stdin, never_waits) = anew::stdin().map_err(GatewayError::Prepare)?;
    let to_server = Outlet::to_pipe(server.stdin).map_err(GatewayError::Prepare)?;
    let to_client = Outlet::to_stdout().map_err(GatewayError::Prepare)?;
    rustix::io::ioctl_fionbio(&server.stdout, true).map_err(|errno| GatewayError::Prepare(errno.into()))?;
    let mut gateway = Gateway {
        envelope: Envelope::new(Arc::clone(&process), ids::random()?),
        process,
        // One client, by its pipe: there is nobody else whom a state could belong to.
        caller: Arc::new(Caller { principal: "stdio".to_owned(), session: None }),
        up: Flow::new(stdin, to_server, max_frame),
        down: Flow::new(server.stdout, to_client, max_frame),
        max_frame,
        now: now(),
        out: Vec::new(),
        recorder,
        spender,
        said,
        noise: Limited::new(SystemClock::shared()),
        waiter: Waiter::new(),
        luck: [Luck::new(never_waits), Luck::new(true)],
        wakeups,
        child: server.child,
        status: None,
        complaints: Some(server.stderr),
        said_all: None,
        progress: Progress::default(),
        watches_server: true,
        ending: Ending::default(),
        asked_to_end: false,
        reload,
    };
    Ok(gateway.until_the_end())
}

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) envelope: Envelope,
    pub(crate) process: Arc<Process>,
    pub(crate) caller: Arc<Caller>,
    /// From the client to the server.
    pub(crate) up: Flow,
    /// From the server to the client.
    pub(crate) down: Flow,
    pub(crate) max_frame: usize,
    /// When what is judged now was read.
    pub(crate) now: Now,
    /// What the envelope has said and nobody has carried out.
    pub(crate) out: Vec<Out>,
    recorder: Box<dyn Recorder + Send>,
    /// Asks the store of spent nonces, where calls are guarded.
    spender: Spender<()>,
    /// What it says, with the question's ticket.
    said: Receiver<(u64, Spent)>,
    pub(crate) noise: Limited,
    waiter: Waiter,
    /// Whether it pays to look at the client, and at the server, without waiting for them.
    luck: [Luck; 2],
    wakeups: Wakeups,
    child: Supervised,
    /// How the server ended.
    status: Option<io::Result<ExitStatus>>,
    /// The server's stderr, until it says something.
    complaints: Option<File>,
    /// Hangs up when the server's stderr is through.
    said_all: Option<Receiver<()>>,
    progress: Progress,
    /// Whether the server has been seen to read on until now.
    watches_server: bool,
    ending: Ending,
    asked_to_end: bool,
    reload: Box<dyn Fn() + Send>,
}

impl Gateway {
    fn until_the_end(&mut self) -> u8 {
        loop {
            self.note_ends();
            let until = match self.ending.next(self.now.boot, &self.situation()) {
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
            let next = [until, self.envelope.next_deadline()].into_iter().flatten().min();
            let timeout = next.map(|next| self.now.boot.until(next).min(LOOK_AGAIN));
            let awaits_room = !self.up.outlet.is_empty();
            let ready = self.wait(timeout);
            self.now = now();
            if self.envelope.next_deadline().is_some_and(|deadline| deadline <= self.now.boot) {
                self.envelope.tick(self.now, &mut self.out);
                self.carry_out();
                self.flush();
            }
            if ready.has(Who::Wakeups) && !self.signalled() {
                return UNKNOWN;
            }
            match (ready.has(Who::Client), ready.has(Who::Server)) {
                (true, true) => {
                    self.read(Side::Client);
                    self.read(Side::Server);
                }
                (true, false) => self.converse(Side::Client),
                (false, true) => self.converse(Side::Server),
                (false, false) => {}
            }
            if ready.has(Who::Complaints) {
                self.log_complaints();
            }
            if ready.has(Who::ToServer) && !awaits_room {
                self.note_deaf();
            }
            if ready.has(Who::ToServer) || ready.has(Who::ToClient) {
                self.flush();
            }
        }
    }

    /// Reads a side once, if it may; whether something has come.
    fn read(&mut self, side: Side) -> bool {
        match side {
            Side::Client => self.read_client(),
            Side::Server => self.read_server(),
        }
    }

    /// Reads a side that is ready, and goes on with the other and with the first again, as long as there is something:
    /// who has just been written to may have answered already, and then a look costs less than to wait for it.
    fn converse(&mut self, first: Side) {
        self.read(first);
        let mut side = first.other();
        for _ in 0..MOST_TURNS {
            if !self.luck[side as usize].is_expected() {
                return;
            }
            self.now = now();
            let has_come = self.read(side);
            self.luck[side as usize].note(has_come);
            if !has_come {
                return;
            }
            side = side.other();
        }
    }

    /// Waits for somebody who is ready, at most so long.
    fn wait(&mut self, timeout: Option<Duration>) -> Ready {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let (up, down) = (&self.up.outlet, &self.down.outlet);
        let to_server =
            if up.is_empty() { self.watches_server.then_some(Until::Deaf) } else { Some(Until::Room) };
        let interests: Interests<'_> = [
            (Some(self.wakeups.pipe.as_fd()), Some(Until::Input)),
            (Some(self.up.source().as_fd()), self.reads_client().then_some(Until::Input)),
            (Some(self.down.source().as_fd()), self.reads_server().then_some(Until::Input)),
            (self.complaints.as_ref().map(File::as_fd), Some(Until::Input)),
            (up.file().map(File::as_fd), to_server),
            (down.file().map(File::as_fd), (!down.is_empty()).then_some(Until::Room)),
        ];
        self.waiter.wait(&interests, timeout.as_ref())
    }

    /// Whether the client is read: when all that it has sent has gone on, and what that brings finds room.
    pub(crate) fn reads_client(&self) -> bool {
        self.up.wants_more() && self.down.outlet.made() <= MOST_MADE
    }

    /// The same of the server.
    pub(crate) fn reads_server(&self) -> bool {
        self.down.wants_more() && self.up.outlet.made() <= MOST_MADE
    }

    /// Puts frames where they belong.
    pub(crate) fn carry_out(&mut self) {
        for out in self.out.drain(..) {
            let (flow, mut frame) = match out {
                Out::ToClient { frame, .. } => (&mut self.down, frame),
                Out::ToUpstream(frame) => (&mut self.up, frame),
                Out::Record(record) => {
                    self.recorder.record(&record);
                    continue;
                }
                Out::Spend(spend) => {
                    self.spender.ask(&self.caller.principal, (), spend);
                    continue;
                }
            };
            frame.push(b'\n');
            flow.outlet.add(frame);
        }
    }

    /// Writes what both sides take now.
    pub(crate) fn flush(&mut self) {
        if self.up.flush() == Err(Gone) {
            self.progress.upstream_deaf = true;
        }
        if self.down.flush() == Err(Gone) {
            self.progress.client_gone = true;
        }
    }

    /// Notes whose last words have gone on.
    fn note_ends(&mut self) {
        // A guarded call needs the server until its confirmation is settled. Each has a time limit of its own.
        let is_needed = self.envelope.guarded_calls() > 0 && !self.progress.client_gone;
        if self.up.has_ended && self.up.outlet.is_empty() && !is_needed && !self.progress.client_ended {
            self.progress.client_ended = true;
            self.up.outlet.close();
        }
        self.progress.upstream_ended = self.down.has_ended && self.down.outlet.is_empty();
    }

    /// The server has closed its stdin. If it has read everything before, it may still answer; what is sent from now on
    /// fails by itself.
    fn note_deaf(&mut self) {
        self.watches_server = false;
        if self.up.outlet.holds_unread() {
            self.progress.upstream_deaf = true;
        }
    }

    /// Takes signals and answers of the store; false when everything ends at once.
    fn signalled(&mut self) -> bool {
        let woken = self.wakeups.take();
        while let Ok((ticket, was)) = self.said.try_recv() {
            self.envelope.spent(ticket, was, self.now, &mut self.out);
            self.carry_out();
            self.flush();
        }
        if self.status.is_none() {
            self.status = self.child.try_wait().transpose();
        }
        if woken.end {
            if self.asked_to_end {
                tracing::warn!("ending at once, on the second signal");
                return false;
            }
            self.end_in_order();
        }
        if woken.reload {
            (self.reload)();
        }
        true
    }

    /// From now on a thread reads the server's stderr: the log may have to be waited for.
    fn log_complaints(&mut self) {
        let Some(complaints) = self.complaints.take() else { return };
        self.waiter.leave(Who::Complaints, complaints.as_fd());
        let (said_all_sender, said_all) = channel();
        let thread = thread::Builder::new().name("log".to_owned());
        match thread.spawn(move || stderr::log(complaints, said_all_sender)) {
            Ok(_) => self.said_all = Some(said_all),
            Err(error) => tracing::error!("nobody logs what the MCP server complains about: {error}"),
        }
    }

    fn situation(&self) -> Situation {
        Situation {
            progress: self.progress,
            has_exited: self.status.is_some(),
            upstream_is_silent: self.down.outlet.is_empty(),
            is_drained: self.down.outlet.is_empty(),
            open_requests: self.envelope.open_requests(),
            asked_to_end: self.asked_to_end,
        }
    }

    /// Tells the client how its open calls end.
    fn report(&mut self) {
        let how = match &self.status {
            Some(Ok(status)) => describe(*status),
            Some(Err(_)) => "it is unknown how".to_owned(),
            // It lives on, and is of no use.
            None => "it closed its stdin".to_owned(),
        };
        if self.status.is_some() {
            // What it complained about stands in the log before this.
            self.log_complaints();
            let _ = self.said_all.as_ref().map(|said_all| said_all.recv_timeout(LAST_WORDS));
        }
        let open = self.envelope.open_requests();
        self.envelope.upstream_ended(&how, self.now, &mut self.out);
        self.carry_out();
        self.flush();
        if self.progress.client_ended || self.asked_to_end {
            tracing::debug!(open_calls = open, "the MCP server has ended: {how}");
        } else {
            tracing::warn!(open_calls = open, "the MCP server has ended: {how}");
        }
    }

    fn end_in_order(&mut self) {
        tracing::info!("ending in order; the same signal again ends at once");
        self.asked_to_end = true;
        self.envelope.client_closed(self.now, &mut self.out);
        self.carry_out();
        self.flush();
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

/// Both clocks.
pub(crate) fn now() -> Now {
    Now { boot: Moment::from_millis(SystemClock.boot_millis()), wall_ms: SystemClock.wall_millis() }
}
