//! The asker: a thread with a holder, and the handle of those who ask.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, Thread},
    time::Duration,
};

use handraise_holder::{AskId, Delivery, EndCause, Holder, HolderSettings};
use handraise_mcp::{
    envelope::{InboxAsk, InboxSaid, Withdrawal},
    record::Record,
};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::{
    asked::{NOT_OPENED, demands, to_ask, to_record, to_said, words},
    look::{FIRST_PAUSE, longer, may_be_there},
};

/// How long the end of an asker waits for the inbox to hear of it.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long whoever ends an asker waits for that.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// How many asks records can still name.
const LATEST: usize = 1024;

/// Says where the inbox is, and nothing where none is known of. It is asked again as long as there is none, and must not
/// wait.
pub type Find = Box<dyn Fn() -> Option<HolderSettings> + Send + Sync>;

/// Tells what became of a question, for whom it was asked.
type Tell<W> = Box<dyn Fn(W, &str, InboxSaid) + Send + Sync>;

/// Asks the inbox for envelopes. A question comes with `W`, for whom it is. Clones ask the same inbox.
pub struct Asker<W: Send + 'static>(Option<Arc<Desk<W>>>);

/// Where questions are opened and taken back.
struct Desk<W> {
    find: Find,
    /// Callers have names of their own, which say nothing about whose they are.
    names_callers: bool,
    tell: Tell<W>,
    holder: OnceLock<Holder>,
    /// The open questions, by their key.
    open: Mutex<HashMap<String, Open>>,
    /// To the thread, once there is one: those that have ended, for it to tell of.
    ended: OnceLock<UnboundedSender<Ended<W>>>,
    /// The keys of what was asked last, and the asks' own ids: records name those.
    latest: Mutex<VecDeque<(String, String)>>,
    thread: Mutex<Option<Running>>,
    stop: Arc<Stop>,
}

/// An open question.
struct Open {
    id: AskId,
    /// It has been taken back, or answered: whichever comes first.
    is_taken: Arc<AtomicBool>,
}

/// A question that has ended.
struct Ended<W> {
    whom: W,
    key: String,
    /// `None`: it was never open.
    delivery: Option<Delivery>,
}

/// The thread, and what hangs up with its end.
struct Running {
    thread: Thread,
    end: Receiver<()>,
}

/// Says that it is over.
#[derive(Default)]
struct Stop {
    is_over: AtomicBool,
    stopped: Notify,
}

impl<W: Send + 'static> Asker<W> {
    /// One that has nobody to ask.
    pub fn none() -> Self {
        Self(None)
    }

    /// Begins to look for the inbox, where one may be. `names_callers`: principals are names of callers. `tell` is told once what became of each question that is not taken
    /// back, on a thread of its own.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(
        find: Find,
        names_callers: bool,
        tell: impl Fn(W, &str, InboxSaid) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk {
            find,
            names_callers,
            tell: Box::new(tell),
            holder: OnceLock::new(),
            open: Mutex::default(),
            ended: OnceLock::new(),
            latest: Mutex::default(),
            thread: Mutex::default(),
            stop: Arc::default(),
        });
        if (desk.find)().is_some() {
            desk.start()?;
        }
        Ok(Self(Some(desk)))
    }

    /// Whether there may ever be somebody to ask.
    pub fn may_ask(&self) -> bool {
        self.0.is_some()
    }

    /// How long ago an operator could last be asked; nothing while the inbox cannot be reached. Never waits.
    pub fn seen(&self) -> impl Fn() -> Option<Duration> + Send + Sync + 'static {
        let desk = self.0.as_ref().map(Arc::downgrade);
        move || {
            let desk = desk.as_ref()?.upgrade()?;
            if let Some(holder) = desk.holder.get() {
                return holder.operator_last_there();
            }
            desk.start_if_found();
            None
        }
    }

    /// Whether the inbox's operators let gateways ask questions of their own (the flag `elicitation`); where nobody has said
    /// anything, yes. Never waits for anybody far away.
    pub fn switch(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let desk = self.0.as_ref().map(Arc::downgrade);
        move || {
            let desk = desk.as_ref().and_then(Weak::upgrade);
            desk.and_then(|desk| desk.holder.get().map(Holder::elicitation)).unwrap_or(true)
        }
    }

    /// Asks, for somebody. Whoever takes a question back does so after this.
    pub fn ask(&self, whom: W, ask: &InboxAsk) {
        let Some(desk) = &self.0 else { return };
        if let Err((whom, why)) = desk.open(whom, ask) {
            tracing::warn!("{} cannot be put to the inbox: {why}", words(ask.source));
            desk.ended(Ended { whom, key: ask.key.clone(), delivery: None });
        }
    }

    /// Takes a question back. Nobody is told what becomes of it.
    pub fn withdraw(&self, key: &str, why: Withdrawal) {
        let Some(desk) = &self.0 else { return };
        let Some(open) = lock(&desk.open).remove(key) else { return };
        open.is_taken.store(true, Ordering::SeqCst);
        if let Some(holder) = desk.holder.get() {
            holder.withdraw(
                &open.id,
                match why {
                    Withdrawal::Cancelled => EndCause::RequestCancelled,
                    Withdrawal::TimedOut => EndCause::Deadline,
                    Withdrawal::Gone => EndCause::AgentDisconnected,
                },
            );
        }
    }

    /// Tells the inbox of a rail that was tried, while there is one. Never waits.
    pub fn record(&self, record: &Record) {
        let Some(desk) = &self.0 else { return };
        let Some(holder) = desk.holder.get() else { return };
        let ask = record.ask.as_ref().and_then(|key| {
            lock(&desk.latest).iter().rev().find(|(known, _)| known == key).map(|(_, id)| id.clone())
        });
        holder.record(to_record(record, ask));
    }

    /// Lets the inbox hear how everything ended, within bounds. From now on nobody is asked.
    pub fn end(&self) {
        let Some(desk) = &self.0 else { return };
        desk.stop.is_over.store(true, Ordering::SeqCst);
        desk.stop.stopped.notify_one();
        if let Some(Running { thread, end }) = lock(&desk.thread).take() {
            thread.unpark();
            let _ = end.recv_timeout(LAST_MOMENT);
        }
    }
}

impl<W: Send + 'static> Drop for Asker<W> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<W: Send + 'static> fmt::Debug for Asker<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("may_ask", &self.may_ask()).finish_non_exhaustive()
    }
}

impl<W: Send + 'static> Desk<W> {
    /// Opens a question with the holder.
    fn open(&self, whom: W, ask: &InboxAsk) -> Result<(), (W, String)> {
        let (Some(holder), Some(ended)) = (self.holder.get(), self.ended.get()) else {
            return Err((whom, "it is not there".to_owned()));
        };
        let asked = to_ask(ask).and_then(|new| Ok((new, demands(ask, self.names_callers)?)));
        let (new, demands) = match asked {
            Ok(asked) => asked,
            Err(why) => return Err((whom, why)),
        };
        let is_taken = Arc::new(AtomicBool::new(false));
        let (taken, sender, key) = (Arc::clone(&is_taken), ended.clone(), ask.key.clone());
        // What is refused is dropped with its courier; who asked is still needed then.
        let courier = Arc::new(Mutex::new(Some(whom)));
        let whom = Arc::clone(&courier);
        // Nobody looks for it before it is there.
        let mut open = lock(&self.open);
        let opened = holder.open_for(new, demands, move |delivery| {
            // What was taken back is no longer answered.
            if taken.swap(true, Ordering::SeqCst) && matches!(delivery, Delivery::Accept(_)) {
                return false;
            }
            let Some(whom) = lock(&whom).take() else { return false };
            sender.send(Ended { whom, key, delivery: Some(delivery) }).is_ok()
        });
        match opened {
            Ok(id) => {
                tracing::debug!(ask.id = %id, "asked the inbox");
                let mut latest = lock(&self.latest);
                if latest.len() == LATEST {
                    latest.pop_front();
                }
                latest.push_back((ask.key.clone(), id.to_string()));
                open.insert(ask.key.clone(), Open { id, is_taken });
                Ok(())
            }
            Err(refused) => {
                drop(open);
                match lock(&courier).take() {
                    Some(whom) => Err((whom, refused.to_string())),
                    None => Ok(()),
                }
            }
        }
    }

    fn ended(&self, ended: Ended<W>) {
        // Without the thread nobody hears, and the envelope waits no longer than it may.
        let _ = self.ended.get().map(|sender| sender.send(ended));
    }

    /// Tells of an end, unless the question has been taken back.
    fn tell_of(&self, holder: &Holder, ended: Ended<W>) {
        let Ended { whom, key, delivery } = ended;
        let said = match delivery {
            None => NOT_OPENED,
            Some(delivery) => {
                let Some(open) = lock(&self.open).remove(&key) else { return };
                to_said(delivery, holder.settled(&open.id).as_ref())
            }
        };
        (self.tell)(whom, &key, said);
    }

    /// Starts the thread, where there is something to look for by now.
    fn start_if_found(self: &Arc<Self>) {
        if lock(&self.thread).is_none()
            && (self.find)().is_some()
            && let Err(error) = self.start()
        {
            tracing::warn!("nobody looks for the inbox: {error}");
        }
    }

    fn start(self: &Arc<Self>) -> io::Result<()> {
        let mut running = lock(&self.thread);
        let (sender, endings) = unbounded_channel();
        if self.stop.is_over() || running.is_some() || self.ended.set(sender).is_err() {
            return Ok(());
        }
        // The thread does not keep the desk: whoever asks does.
        let (desk, stop) = (Arc::clone(self), Arc::clone(&self.stop));
        let (hangs_up, end) = channel();
        let thread = thread::Builder::new().name("inbox".to_owned()).spawn(move || {
            let _hangs_up: Sender<()> = hangs_up;
            run(&desk, &stop, endings);
        })?;
        *running = Some(Running { thread: thread.thread().clone(), end });
        Ok(())
    }
}

impl Stop {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// Looks for the inbox, and tells of ends for as long as it is not over.
fn run<W: Send + 'static>(desk: &Arc<Desk<W>>, stop: &Stop, mut endings: UnboundedReceiver<Ended<W>>) {
    let mut pause = FIRST_PAUSE;
    // Without a runtime as long as nobody listens.
    while !(desk.find)().is_some_and(|settings| may_be_there(&settings)) {
        thread::park_timeout(pause);
        if stop.is_over() {
            return;
        }
        pause = longer(pause);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::warn!("the inbox cannot be asked: {error}");
            return;
        }
    };
    runtime.block_on(async {
        let Some(holder) = connect(desk, stop).await else { return };
        let _ = desk.holder.set(holder.clone());
        let stopped = stop.stopped.notified();
        tokio::pin!(stopped);
        while !stop.is_over() {
            tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(ended) = endings.recv() => desk.tell_of(&holder, ended),
            }
        }
        let _ = tokio::time::timeout(LAST_WORDS, holder.shutdown()).await;
    });
    runtime.shutdown_background();
}

/// Dials until the inbox is there; `None` when it is over before.
async fn connect<W: Send + 'static>(desk: &Desk<W>, stop: &Stop) -> Option<Holder> {
    let mut pause = FIRST_PAUSE;
    let mut was_told = false;
    while !stop.is_over() {
        if let Some(settings) = (desk.find)() {
            let dialled = tokio::select! {
                dialled = Holder::connect(settings) => dialled,
                () = stop.stopped.notified() => return None,
            };
            match dialled {
                Ok(holder) => {
                    tracing::info!("attached to the inbox: questions that the client cannot show go there");
                    return Some(holder);
                }
                // Once is enough for a log.
                Err(error) if was_told => tracing::debug!("{error}"),
                Err(error) => {
                    tracing::warn!("{error}; looking for it again");
                    was_told = true;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.stopped.notified() => return None,
        }
        pause = longer(pause);
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
