//! The loop: waits for whoever is ready, keeps time, takes signals, and decides when it is over.

use std::{
    fs::File,
    io,
    process::ExitStatus,
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

use handraise_asker::Asker;
use handraise_core::Moment;
use handraise_mcp::{
    Now,
    confirm::Spent,
    envelope::{Caller, Envelope, InboxSaid, Out, Process},
    record::Recorder,
};
use handraise_spent::Spender;
use handraise_transport::{
    blocking::Supervised,
    clock::{Clock as _, SystemClock},
    ids,
    limited::Limited,
    signals::SAME,
    spawn,
};

use crate::{
    GatewayError, GatewaySettings, anew,
    closing::UNKNOWN,
    ending::{Ending, Progress, Step},
    flow::Flow,
    outlet::{Gone, Outlet},
    start,
    turns::{Luck, MOST_TURNS, Side},
    waiter::{Waiter, Who},
    wake::Wakeups,
};

/// How long a sleep trusts the timer, which stands still during suspend, while the clock of deadlines does not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Runs the gateway until its server has ended; returns the server's exit status.
///
/// # Errors
/// When the server cannot be started.
pub fn run(mut settings: GatewaySettings) -> Result<u8, GatewayError> {
    let (wakeups, waker) = Wakeups::register().map_err(GatewayError::Prepare)?;
    spawn::become_subreaper().map_err(GatewayError::Prepare)?;
    let server = start::start(&mut settings)?;
    let GatewaySettings { process, max_frame, reload, recorder, spent, inbox, .. } = settings;
    let (says, said) = channel();
    let asker = match inbox {
        None => Asker::none(),
        Some(find) => {
            let (inbox_says, inbox_wakes) = (says.clone(), waker.clone());
            let tell = move |(), key: &str, end| {
                let _ = inbox_says.send(Said::Inbox(key.to_owned(), end));
                inbox_wakes.wake();
            };
            let asker = Asker::start(find, false, tell).map_err(GatewayError::Prepare)?;
            process.attach_inbox(asker.seen());
            process.attach_switch(asker.switch());
            asker
        }
    };
    let tell = move |(), ticket, was| {
        // Who is gone needs no answer.
        let _ = says.send(Said::Spent(ticket, was));
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
        asker,
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
        client_hung_up: false,
        ending: Ending::default(),
        asked_to_end: None,
        reload,
    };
    Ok(gateway.until_the_end())
}

/// What somebody says who was asked.
enum Said {
    /// The store of spent nonces, of the question with that ticket.
    Spent(u64, Spent),
    /// The inbox, of the question under that key.
    Inbox(String, InboxSaid),
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
    /// Asks the inbox, where there may be one.
    asker: Asker<()>,
    /// What both say.
    said: Receiver<Said>,
    pub(crate) noise: Limited,
    pub(crate) waiter: Waiter,
    /// Whether it pays to look at the client, and at the server, without waiting for them.
    luck: [Luck; 2],
    pub(crate) wakeups: Wakeups,
    child: Supervised,
    /// How the server ended.
    pub(crate) status: Option<io::Result<ExitStatus>>,
    /// The server's stderr, until it says something.
    pub(crate) complaints: Option<File>,
    /// Hangs up when the server's stderr is through.
    pub(crate) said_all: Option<Receiver<()>>,
    pub(crate) progress: Progress,
    /// The client has closed its output, of which something may still be unread.
    pub(crate) client_hung_up: bool,
    ending: Ending,
    /// When a signal asked for the end.
    pub(crate) asked_to_end: Option<Moment>,
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
            let ready = self.wait(timeout);
            if self.envelope.next_deadline().is_some_and(|deadline| deadline <= self.now.boot) {
                // Who was asked has judged in time what is here by now.
                self.hear();
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

    /// Puts frames where they belong.
    pub(crate) fn carry_out(&mut self) {
        for out in self.out.drain(..) {
            let (flow, mut frame) = match out {
                Out::ToClient { frame, .. } => (&mut self.down, frame),
                Out::ToUpstream(frame) => (&mut self.up, frame),
                Out::Record(record) => {
                    self.recorder.record(&record);
                    self.asker.record(&record);
                    continue;
                }
                Out::Spend(spend) => {
                    self.spender.ask(&self.caller.principal, (), spend);
                    continue;
                }
                Out::Ask(ask) => {
                    self.asker.ask((), &ask);
                    continue;
                }
                Out::Withdraw { key, why, record } => {
                    let record = self.asker.withdraw(&key, why, *record);
                    self.recorder.record(&record);
                    self.asker.record(&record);
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
            self.client_is_gone();
        }
    }

    /// Takes what those say who were asked.
    fn hear(&mut self) {
        while let Ok(said) = self.said.try_recv() {
            match said {
                Said::Spent(ticket, was) => self.envelope.spent(ticket, was, self.now, &mut self.out),
                Said::Inbox(key, said) => self.envelope.inbox_said(&key, &said, self.now, &mut self.out),
            }
            self.carry_out();
            self.flush();
        }
    }

    /// Takes signals and answers of others; false when everything ends at once.
    fn signalled(&mut self) -> bool {
        let woken = self.wakeups.take();
        self.hear();
        if self.status.is_none() {
            self.status = self.child.try_wait().transpose();
        }
        match self.asked_to_end {
            None if woken.end => self.end_in_order(),
            Some(first) if woken.end && self.now.boot >= first + SAME => {
                tracing::warn!("ending at once, on the second signal");
                return false;
            }
            None | Some(_) => {}
        }
        if woken.reload {
            (self.reload)();
        }
        true
    }
}

/// Both clocks.
pub(crate) fn now() -> Now {
    Now { boot: Moment::from_millis(SystemClock.boot_millis()), wall_ms: SystemClock.wall_millis() }
}
