//! The asker: a thread with a holder, and the handle of those who ask.

use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
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
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    limited::Limited,
};
use tokio::sync::{
    Notify,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

use crate::{
    asked::{NotOpened, answered, demands, not_opened, to_ask, to_record, to_said, words},
    look::{FIRST_PAUSE, longer, may_be_there},
};

/// How long the end of an asker waits for the inbox to hear of it.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long whoever ends an asker waits for that.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// How many asks records can still name.
const LATEST: usize = 1024;
/// How many answers that were told of are remembered: one may be taken back before it was heard.
const TOLD: usize = 1_024;
/// How often a question hurries the thread, in milliseconds.
const HURRIED_EVERY: u64 = 1_000;

/// Says where the inbox is, and nothing where none is known of. It is asked again as long as there is none, and must not
/// wait.
pub type Find = Box<dyn Fn() -> Option<HolderSettings> + Send + Sync>;

/// Tells what became of a question, for whom it was asked.
type Tell<W> = Box<dyn Fn(W, &str, InboxSaid) + Send + Sync>;

/// Asks the inbox for envelopes. A question comes with `W`, for whom it is.
pub struct Asker<W: Send + 'static>(Option<Arc<Desk<W>>>);

/// Where questions are opened and taken back.
struct Desk<W> {
    find: Find,
    /// Callers have names of their own, which say nothing about whose they are.
    names_callers: bool,
    tell: Tell<W>,
    holder: OnceLock<Holder>,
    asked: Mutex<Asked>,
    /// How often it is logged that a question cannot be opened: clients set the pace.
    unopened: Mutex<Limited>,
    /// The pause after the first look.
    pause: Duration,
    /// When the thread was last hurried, in milliseconds of the boot clock.
    hurried: AtomicU64,
    /// To the thread, once there is one: those that have ended, for it to tell of.
    ended: OnceLock<UnboundedSender<Ended<W>>>,
    /// The keys of what was asked last, and the asks' own ids: records name those.
    latest: Mutex<VecDeque<(String, String)>>,
    thread: Mutex<Option<Running>>,
    stop: Arc<Stop>,
}

/// The questions that are open, and those that were told of last.
#[derive(Default)]
struct Asked {
    /// By their key.
    ids: HashMap<String, AskId>,
    told: VecDeque<String>,
}

impl Asked {
    /// The question is told of now; `None` when it has been taken back.
    fn tell_of(&mut self, key: &str) -> Option<AskId> {
        let id = self.ids.get(key)?.clone();
        self.told.push_back(key.to_owned());
        if self.told.len() > TOLD
            && let Some(oldest) = self.told.pop_front()
        {
            self.ids.remove(&oldest);
        }
        Some(id)
    }
}

/// A question that has ended.
struct Ended<W> {
    whom: W,
    key: String,
    /// `Err`: it was never open, and why.
    delivery: Result<Delivery, &'static str>,
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
    /// The thread has ended: nobody is told anything.
    is_deaf: AtomicBool,
    stopped: Notify,
    /// Somebody wants the inbox now.
    hurried: Notify,
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
        Self::start_with(find, names_callers, FIRST_PAUSE, tell)
    }

    fn start_with(
        find: Find,
        names_callers: bool,
        pause: Duration,
        tell: impl Fn(W, &str, InboxSaid) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk {
            find,
            names_callers,
            tell: Box::new(tell),
            holder: OnceLock::new(),
            asked: Mutex::default(),
            unopened: Mutex::new(Limited::new(SystemClock::shared())),
            pause,
            hurried: AtomicU64::new(0),
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
            if desk.stop.is_deaf.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(holder) = desk.holder.get() {
                return holder.operator_last_there();
            }
            desk.hurry();
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
            if let Some(left_out) = lock(&desk.unopened).admit() {
                let what = words(ask.source);
                tracing::warn!(left_out, "{what} cannot be put to the inbox: {}", why.words);
            }
            desk.ended(Ended { whom, key: ask.key.clone(), delivery: Err(why.reason) });
        }
    }

    /// Takes a question back. Nobody is told what becomes of it, and the inbox says that it was withdrawn. Returns the record:
    /// where an operator had answered before, [with that](Record::answered). The holder's lock orders both.
    #[must_use]
    pub fn withdraw(&self, key: &str, why: Withdrawal, record: Record) -> Record {
        let Some(desk) = &self.0 else { return record };
        let Some(id) = lock(&desk.asked).ids.remove(key) else { return record };
        let Some(holder) = desk.holder.get() else { return record };
        holder.withdraw(
            &id,
            match why {
                Withdrawal::Cancelled => EndCause::CallCancelled,
                Withdrawal::TimedOut => EndCause::Deadline,
                Withdrawal::Gone => EndCause::AgentDisconnected,
            },
        );
        match holder.settled(&id).as_ref().and_then(answered) {
            Some((outcome, provenance)) => record.answered(outcome, provenance),
            None => record,
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
    fn open(&self, whom: W, ask: &InboxAsk) -> Result<(), (W, NotOpened)> {
        let is_deaf = self.stop.is_deaf.load(Ordering::SeqCst);
        let (Some(holder), Some(ended), false) = (self.holder.get(), self.ended.get(), is_deaf) else {
            return Err((whom, NotOpened::not_there()));
        };
        let asked =
            to_ask(ask, self.names_callers).and_then(|new| Ok((new, demands(ask, self.names_callers)?)));
        let (new, demands) = match asked {
            Ok(asked) => asked,
            Err(why) => return Err((whom, why)),
        };
        let (sender, key) = (ended.clone(), ask.key.clone());
        // What is refused is dropped with its courier; who asked is still needed then.
        let courier = Arc::new(Mutex::new(Some(whom)));
        let whom = Arc::clone(&courier);
        // Nobody looks for it before it is there.
        let mut asked = lock(&self.asked);
        let opened = holder.open_for(new, demands, move |delivery| {
            let Some(whom) = lock(&whom).take() else { return false };
            sender.send(Ended { whom, key, delivery: Ok(delivery) }).is_ok()
        });
        match opened {
            Ok(id) => {
                tracing::debug!(ask.id = %id, "asked the inbox");
                let mut latest = lock(&self.latest);
                if latest.len() == LATEST {
                    latest.pop_front();
                }
                latest.push_back((ask.key.clone(), id.to_string()));
                asked.ids.insert(ask.key.clone(), id);
                Ok(())
            }
            Err(refused) => {
                drop(asked);
                match lock(&courier).take() {
                    Some(whom) => Err((whom, refused.into())),
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
            Err(reason) => not_opened(reason),
            Ok(delivery) => {
                let Some(id) = lock(&self.asked).tell_of(&key) else { return };
                to_said(delivery, holder.settled(&id).as_ref())
            }
        };
        (self.tell)(whom, &key, said);
    }

    /// Has the inbox looked for at once, by the thread, or by one that starts where there is something to look for by now.
    fn hurry(self: &Arc<Self>) {
        if let Some(running) = &*lock(&self.thread) {
            let (now, last) = (SystemClock.boot_millis(), self.hurried.load(Ordering::Relaxed));
            if now.saturating_sub(last) >= HURRIED_EVERY {
                self.hurried.store(now, Ordering::Relaxed);
                running.thread.unpark();
                self.stop.hurried.notify_one();
            }
            return;
        }
        if (self.find)().is_some()
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
            let _deaf = Deaf(Arc::clone(&stop));
            run(&desk, &stop, endings);
        })?;
        *running = Some(Running { thread: thread.thread().clone(), end });
        Ok(())
    }
}

/// Says that the thread has ended, however it has.
struct Deaf(Arc<Stop>);

impl Drop for Deaf {
    fn drop(&mut self) {
        self.0.is_deaf.store(true, Ordering::SeqCst);
    }
}

impl Stop {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }
}

/// Looks for the inbox, and tells of ends for as long as it is not over.
fn run<W: Send + 'static>(desk: &Arc<Desk<W>>, stop: &Stop, mut endings: UnboundedReceiver<Ended<W>>) {
    let mut pause = desk.pause;
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
    let mut pause = desk.pause;
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
            () = stop.hurried.notified() => {}
            () = stop.stopped.notified() => return None,
        }
        pause = longer(pause);
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
