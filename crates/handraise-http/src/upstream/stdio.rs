//! A client on stdin and stdout in front of a server at a URL: the envelope between the two, on one task.

use std::{fs::File, io, os::fd::AsFd, sync::Arc, time::Duration};

use bytes::Bytes;
use handraise_asker::{Asker, Find};
use handraise_mcp::{
    Now,
    confirm::Spent,
    envelope::{Caller, Envelope, InboxSaid, Out, Process, Route},
    frame::{
        ClientFrame,
        overlong::{self, Overlong},
    },
    record::Recorder,
};
use handraise_spent::{Spender, Store};
use handraise_transport::{clock::SystemClock, ends::Ends, ids, limited::Limited};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{
    Arrivals, Link, Server,
    stdin::{self, Ahead, FromClient},
    stdout::{self, Stdout},
};
use crate::now::now;

/// Whose frames come from stdin.
const PRINCIPAL: &str = "stdio";
/// How much may wait for a side that does not read before nothing more is taken from the other side.
pub(super) const MOST_BACKLOG: usize = 16 * 1024 * 1024;
/// How long calls that are open when the client ends may take.
const LAST_CALLS: Duration = Duration::from_secs(60);
/// How long what is written to the client at the end may take.
const FLUSH: Duration = Duration::from_secs(5);
/// The same when a signal has asked for the end.
const FLUSH_AT_ONCE: Duration = Duration::from_secs(1);
/// How long a sleep trusts the timer, which stands still during suspend, while the clock of deadlines does not.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What a gateway between stdio and a URL needs to know.
pub struct Stdio {
    /// The envelope's settings, and what all envelopes share.
    pub process: Arc<Process>,
    /// The server.
    pub server: Arc<Server>,
    /// Reads the settings anew.
    pub reload: Box<dyn Fn() + Send>,
    /// Takes the records.
    pub recorder: Box<dyn Recorder + Send>,
    /// Keeps what has confirmed a call, where calls are guarded.
    pub spent: Option<Store>,
    /// Says where the inbox is, unless nobody there is to be asked.
    pub inbox: Option<Find>,
}

/// What comes from outside of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The end is asked for.
    End,
    /// The settings are to be read anew.
    Reload,
}

/// What somebody says who was asked.
enum Said {
    /// The store of spent nonces, of the question with that ticket.
    Spent(u64, Spent),
    /// The inbox, of the question under that key.
    Inbox(String, InboxSaid),
}

/// Runs the gateway until its client has ended, or a signal has asked for it.
///
/// # Errors
/// When it cannot begin.
pub async fn run(settings: Stdio, mut signals: mpsc::Receiver<Signal>) -> io::Result<()> {
    let Stdio { process, server, reload, recorder, spent, inbox } = settings;
    let max_frame = server.limit;
    let envelope = Envelope::new(Arc::clone(&process), ids::random().map_err(io::Error::other)?);
    let (link, mut arrivals) = Link::new(&server, PRINCIPAL);
    let mut client = stdin::read(max_frame)?;
    let (says, mut said) = mpsc::unbounded_channel();
    let inbox_says = says.clone();
    let tell = move |(), ticket, was| {
        // Who is gone needs no answer.
        let _ = says.send(Said::Spent(ticket, was));
    };
    let spender = Spender::start(spent, 1, SystemClock::shared(), tell)?;
    let asker = match inbox {
        None => Asker::none(),
        Some(find) => {
            let tell = move |(), key: &str, said| drop(inbox_says.send(Said::Inbox(key.to_owned(), said)));
            let asker = Asker::start(find, false, tell)?;
            process.attach_inbox(asker.seen());
            process.attach_switch(asker.switch());
            asker
        }
    };
    // One client, by its pipe: there is nobody else whom a state could belong to.
    let caller = Arc::new(Caller { principal: PRINCIPAL.to_owned(), session: None });
    let mut gateway = Gateway {
        process,
        envelope,
        link,
        caller,
        max_frame,
        stdout: Stdout::start()?,
        recorder,
        spender,
        asker,
        noise: Limited::new(SystemClock::shared()),
        out: Vec::new(),
    };
    let gone = stdout::reader_gone()?;
    let end =
        gateway.until_the_end(&mut client, &mut arrivals, &mut said, &mut signals, &*reload, gone).await;
    gateway.end(end).await;
    Ok(())
}

/// Why it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client has ended, and has what it waited for.
    Client,
    /// Somebody has asked for it.
    Signal,
}

struct Gateway {
    process: Arc<Process>,
    envelope: Envelope,
    link: Link,
    caller: Arc<Caller>,
    max_frame: usize,
    stdout: Stdout,
    recorder: Box<dyn Recorder + Send>,
    /// Asks the store of spent nonces.
    spender: Spender<()>,
    /// Asks the inbox, where there may be one.
    asker: Asker<()>,
    noise: Limited,
    out: Vec<Out>,
}

impl Gateway {
    async fn until_the_end(
        &mut self,
        client: &mut mpsc::Receiver<FromClient>,
        arrivals: &mut Arrivals,
        said: &mut mpsc::UnboundedReceiver<Said>,
        signals: &mut mpsc::Receiver<Signal>,
        reload: &(dyn Fn() + Send),
        reader_gone: impl Future<Output = ()>,
    ) -> End {
        tokio::pin!(reader_gone);
        let mut last_calls = None;
        let (mut waiting, mut ahead) = (None::<FromClient>, Ahead::default());
        loop {
            if let Some(came) = waiting.take_if(|came| ahead.lets_go(came.length(), self.link.queued())) {
                self.came(came);
            }
            if self.stdout.is_gone() {
                return End::Client;
            }
            if last_calls.is_some_and(|until| self.envelope.open_requests() == 0 || Instant::now() >= until) {
                return End::Client;
            }
            let to_client = self.stdout.queued();
            let wakes = [self.alarm(), last_calls].into_iter().flatten().min();
            tokio::select! {
                biased;
                signal = signals.recv() => match signal {
                    Some(Signal::Reload) => reload(),
                    Some(Signal::End) | None => return End::Signal,
                },
                () = &mut reader_gone => return End::Client,
                came = client.recv(), if last_calls.is_none() && waiting.is_none() => {
                    waiting = came;
                    if waiting.is_none() {
                        self.input(Envelope::client_closed);
                        last_calls = Some(Instant::now() + LAST_CALLS);
                    }
                },
                Some(said) = said.recv() => self.input(|envelope, now, out| match said {
                    Said::Spent(ticket, was) => envelope.spent(ticket, was, now, out),
                    Said::Inbox(key, said) => envelope.inbox_said(&key, &said, now, out),
                }),
                Some(arrival) = arrivals.recv(), if to_client < MOST_BACKLOG => {
                    self.upstream_frame(&arrival.frame);
                }
                () = sleep_until(wakes.unwrap_or_else(Instant::now)), if wakes.is_some() => {
                    self.input(Envelope::tick);
                }
                () = self.stdout.moved.notified() => {}
                () = self.link.moved(), if waiting.is_some() => {}
            }
        }
    }

    /// When the envelope wants to hear the time.
    fn alarm(&self) -> Option<Instant> {
        let wait = now().boot.until(self.envelope.next_deadline()?);
        Some(Instant::now() + wait.min(LOOK_AGAIN))
    }

    fn came(&mut self, came: FromClient) {
        match came {
            FromClient::Frame { bytes, .. } => self.client_frame(&bytes),
            FromClient::TooLong(ends) => self.client_too_long(&ends),
        }
    }

    fn client_frame(&mut self, bytes: &Bytes) {
        // A request under no id would be POSTed like a notification, and what the server says to that is no answer.
        match ClientFrame::read(bytes).and_then(ClientFrame::answerable) {
            Ok(frame) => {
                let route = self.envelope.client_frame(&frame, &self.caller, now(), &mut self.out);
                self.carry_out();
                if route == Route::Forward {
                    self.link.send(bytes.clone());
                }
            }
            Err(malformed) => {
                tracing::warn!(problem = %malformed.problem, "a frame of the client is refused (S3)");
                self.input(|envelope, now, out| envelope.client_malformed(&malformed, now, out));
            }
        }
    }

    fn client_too_long(&mut self, ends: &Ends) {
        let limit = self.max_frame;
        tracing::warn!(limit, "a frame of the client is too long and is thrown away");
        match overlong::read(&ends.head, &ends.tail) {
            Overlong::Request(id) => self.stdout.write(overlong::reply(&id, limit).into()),
            Overlong::Response(Some(id)) => {
                // To a question of ours, it is an answer that cannot be read.
                let unreadable = overlong::without_answer(&id);
                let Ok(frame) = ClientFrame::read(&unreadable) else { return };
                let route = self.envelope.client_frame(&frame, &self.caller, now(), &mut self.out);
                self.carry_out();
                if route == Route::Forward {
                    // The server asked; it hears that no answer will come.
                    self.link.send(overlong::reply(&id, limit).into());
                }
            }
            Overlong::Response(None) | Overlong::Unknown => {}
        }
    }

    fn upstream_frame(&mut self, bytes: &Bytes) {
        let Ok(frame) = self.process.read_server_frame(bytes) else {
            if let Some(left_out) = self.noise.admit() {
                tracing::warn!(left_out, "the MCP server sent an event that is no frame; it is left out");
            }
            return;
        };
        let route = self.envelope.upstream_frame(&frame, now(), &mut self.out);
        self.carry_out();
        if route == Route::Forward {
            self.stdout.write(bytes.clone());
        }
    }

    fn input(&mut self, act: impl FnOnce(&mut Envelope, Now, &mut Vec<Out>)) {
        act(&mut self.envelope, now(), &mut self.out);
        self.carry_out();
    }

    /// Carries out what the envelope has said.
    fn carry_out(&mut self) {
        for out in self.out.drain(..) {
            match out {
                Out::ToClient { frame, .. } => self.stdout.write(frame.into()),
                Out::ToUpstream(frame) => self.link.send(frame.into()),
                Out::Record(record) => {
                    self.recorder.record(&record);
                    self.asker.record(&record);
                }
                Out::Spend(spend) => self.spender.ask(&self.caller.principal, (), spend),
                Out::Ask(ask) => self.asker.ask((), &ask),
                Out::Withdraw { key, why, record } => {
                    let record = self.asker.withdraw(&key, why, *record);
                    self.recorder.record(&record);
                    self.asker.record(&record);
                }
            }
        }
    }

    /// Answers what is open, lets the client read it, and ends the session.
    async fn end(mut self, end: End) {
        if end == End::Signal {
            tracing::info!("ending in order; another signal after half a second ends at once");
            self.input(Envelope::client_closed);
        }
        self.input(|envelope, now, out| envelope.upstream_ended("handraise has ended", now, out));
        let flush = async {
            while self.stdout.queued() > 0 && !self.stdout.is_gone() {
                self.stdout.moved.notified().await;
            }
        };
        let patience = if end == End::Signal { FLUSH_AT_ONCE } else { FLUSH };
        let _ = timeout(patience, flush).await;
        self.link.close().await;
        self.asker.end();
    }
}

/// Our own copy of a standard stream, without its buffer.
pub(super) fn own(stream: impl AsFd) -> io::Result<File> {
    stream.as_fd().try_clone_to_owned().map(File::from)
}
