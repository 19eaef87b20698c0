//! The handle that agentctl and the other asking sides hold.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt as _;
use handraise_api::{
    frame::{Flags, SessionUpdated},
    record::Record,
    words::{HolderKind, Who},
};
use handraise_core::{
    AskId,
    holder::{Delivery, EndCause, Refused},
};
use handraise_transport::{
    clock::{SharedClock, SystemClock},
    ids,
};
use tokio::{sync::mpsc, task::AbortHandle};

use crate::{
    Command, Demands, InboxAddress, NewAsk, NewMessage, Settled, Token,
    dial::{ConnectError, Dialer},
    state::Shared,
    upkeep::{keep_connected, keep_time},
};

/// Commands that wait for whoever runs the sessions.
const COMMANDS: usize = 64;

/// How often an inbox that is away is dialled while somebody waits for it.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// What a holder needs to know to reach its inbox.
#[derive(Debug, Clone)]
pub struct HolderSettings {
    /// Where the inbox is.
    pub inbox: InboxAddress,
    /// A token of scope `holder`.
    pub token: Token,
    /// What kind of holder this is.
    pub kind: HolderKind,
    /// Whose answers to its asks count (S16).
    pub who: Who,
    /// handraise's version.
    pub version: String,
    /// The machine's name.
    pub host: String,
    /// Both clocks.
    pub clock: SharedClock,
    /// How patient the stream is.
    pub timing: Timing,
}

/// How patient the stream is. Tests are less patient than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From dialling to the welcome.
    pub handshake: Duration,
    /// An inbox that was quiet for so long is pinged.
    pub ping_every: Duration,
    /// An inbox that says nothing, acknowledges nothing or reads nothing for so long is given up.
    pub dead_after: Duration,
    /// The first wait before dialling again; each further one is twice as long.
    pub backoff_min: Duration,
    /// The longest wait before dialling again.
    pub backoff_max: Duration,
    /// How long closing in good order may take.
    pub close: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            ping_every: Duration::from_secs(10),
            dead_after: Duration::from_secs(30),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            close: Duration::from_millis(500),
        }
    }
}

/// Keeps the asks of this process. Clones share them.
///
/// When the last clone is dropped without [`shutdown`](Self::shutdown), every open ask is cancelled on the spot; the
/// inbox finds out by itself.
#[derive(Debug, Clone)]
pub struct Holder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    tasks: Vec<AbortHandle>,
    is_detached: bool,
    who: Who,
    close: Duration,
}

impl Drop for Inner {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            engine.shut_down(now, courier);
        });
    }
}

impl Holder {
    /// How long a shutdown waits for the inbox (F7).
    pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

    /// How long an inbox may take to come back for the receipt of an answer. Without the receipt it would show the answer
    /// as on its way for a day.
    pub const RECEIPT_GRACE: Duration = Duration::from_secs(30);

    /// Dials the inbox and introduces itself. Afterwards a lost connection is dialled again for ever, and asks
    /// stay open meanwhile.
    ///
    /// # Errors
    /// When the inbox cannot be reached, does not take the token, or is not what it claims to be (S43). The
    /// message says what to do.
    pub async fn connect(settings: HolderSettings) -> Result<Self, ConnectError> {
        let (timing, who) = (settings.timing, settings.who);
        let shared = Arc::new(Shared::new(Arc::clone(&settings.clock)));
        let mut dialer = Dialer::new(settings);
        let (socket, welcome) = dialer.dial().await?;
        shared.connected(&welcome);
        let tasks = [
            tokio::spawn(keep_connected(Arc::clone(&shared), dialer, socket, timing)).abort_handle(),
            tokio::spawn(keep_time(Arc::clone(&shared))).abort_handle(),
        ];
        Ok(Self(Arc::new(Inner {
            shared,
            tasks: tasks.into(),
            is_detached: false,
            who,
            close: timing.close,
        })))
    }

    /// A holder without an inbox: every [`open`](Self::open) is refused with [`Refused::NoInbox`], everything else
    /// does nothing.
    pub fn detached() -> Self {
        let shared = Arc::new(Shared::new(SystemClock::shared()));
        let who = Who::default();
        Self(Arc::new(Inner { shared, tasks: Vec::new(), is_detached: true, who, close: Duration::ZERO }))
    }

    /// The runtime flags as the inbox said last: in its welcome (F5), or when an operator has set one since. All off when
    /// detached.
    pub fn flags(&self) -> Flags {
        self.0.shared.look(|state| state.flags)
    }

    /// Whether refusals may be asked about, as far as the inbox says: its flag `elicitation`. To be read for every call,
    /// beside `HANDRAISE_ELICITATION` and the config file: off in any place wins, and what is not asked for that reason is
    /// recorded `disabled`. While there is no connection the inbox's last word stands; without an inbox, and until it has
    /// said something, nothing is off.
    ///
    /// Reads one value, waits for no lock, and may be called on any thread. A change arrives within a second.
    pub fn elicitation(&self) -> bool {
        self.0.shared.elicitation.load(Ordering::Relaxed)
    }

    /// How long ago an operator was last there who could answer: a page, `handraise inbox watch` or the picker, signed in
    /// with a token that may (mcp.md, section 7, "usable only while"). [`Duration::ZERO`] while somebody is; `None` where
    /// nobody was since the inbox started and this holder has not seen anybody before either, where the inbox is of a version
    /// that does not say, and while there is no connection to it, since nobody could answer then.
    ///
    /// Reads one number, waits for no lock, and may be called on any thread. A page whose machine vanishes counts for 15 s
    /// more at most, a connection that dies without a word for [`Timing::dead_after`].
    pub fn operator_last_there(&self) -> Option<Duration> {
        self.0.shared.operators.ago(self.0.shared.clock.boot_millis())
    }

    /// How often the connection to the inbox was lost so far: what differs between two looks was a time in which nobody could
    /// answer, and after which the inbox may know less.
    ///
    /// Reads one number, waits for no lock, and may be called on any thread.
    pub fn times_cut_off(&self) -> u64 {
        self.0.shared.losses.load(Ordering::Relaxed)
    }

    /// Opens an ask and announces it. Two equal asks are two asks (D4, AC-12f).
    ///
    /// `deliver` is called at most once, with what the asking side is to be sent, on whatever thread adjudicates and
    /// while the holder is locked: it must not block, and it must neither call the holder nor own a clone of it. It returns whether the delivery was
    /// handed to a live connection; `false` ends the ask as withdrawn. It is dropped uncalled when the ask ends by
    /// [`EndCause::CallCancelled`] or [`EndCause::AgentDisconnected`]. It may be called before `open` has returned.
    ///
    /// # Errors
    /// When a limit of the inbox is reached, or there is no inbox. Nothing was announced, `deliver` is dropped
    /// uncalled, and the asking side is to be declined.
    pub fn open(
        &self,
        ask: NewAsk,
        deliver: impl FnOnce(Delivery) -> bool + Send + 'static,
    ) -> Result<AskId, Refused> {
        self.open_for(ask, Demands::default(), deliver)
    }

    /// The same, with demands on whoever accepts it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_for(
        &self,
        ask: NewAsk,
        demands: Demands,
        deliver: impl FnOnce(Delivery) -> bool + Send + 'static,
    ) -> Result<AskId, Refused> {
        let who = demands.who.unwrap_or(self.0.who);
        if self.0.is_detached {
            self.0.shared.change(|state, _| state.engine.count(Refused::NoInbox));
            return Err(Refused::NoInbox);
        }
        // A minted id is a valid id; should it ever not be, nobody is asked.
        let Ok(id) = AskId::new(ids::mint()) else { return Err(Refused::KnownId) };
        let ask = ask.into_engine(id.clone(), who).inspect_err(|refused| {
            self.0.shared.change(|state, _| {
                state.engine.count(*refused);
                state.declined(refused.code());
            });
        })?;
        self.0.shared.change(|state, now| {
            state.expect_delivery(id.clone(), Box::new(deliver), demands.human);
            let (engine, courier) = state.adjudicator();
            let opened = engine.open(now, ask, courier);
            if let Err(refused) = opened {
                state.forget_delivery(&id);
                state.declined(refused.code());
                // Whoever asked says so where it is declined.
                tracing::debug!(reason = refused.code(), "an ask was refused: {refused}");
                return Err(refused);
            }
            Ok(id)
        })
    }

    /// Ends one ask, unless it has ended (acp.md, "Elicitation life").
    pub fn withdraw(&self, ask: &AskId, cause: EndCause) {
        self.0.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            engine.end(now, ask, cause, courier);
        });
    }

    /// Ends every open ask of a session.
    pub fn end_session(&self, session_id: &str, cause: EndCause) {
        self.0.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            engine.end_session(now, session_id, cause, courier);
        });
    }

    /// Marks an open ask as parked: its call has been answered, an answer is kept for `ttl`, its new deadline. Says
    /// whether the ask was open and not parked.
    ///
    /// # Errors
    /// When too many asks of its session are parked.
    pub fn park(&self, ask: &AskId, ttl: Duration) -> Result<bool, Refused> {
        self.0.shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            engine.park(now, ask, ttl, courier)
        })
    }

    /// How an ask ended and who answered it; `None` while it is open. Known from the moment of its delivery on, for
    /// as long as the asks that ended last are remembered.
    pub fn settled(&self, ask: &AskId) -> Option<Settled> {
        self.0.shared.look(|state| {
            let ended = state.engine.ended(ask)?.clone();
            let answered = ended.submission.as_ref().and_then(|_| state.answerers.get(ask).cloned());
            Some(Settled { ended, answered, refused: state.inbox_refusals.get(ask).cloned() })
        })
    }

    /// Counts a request that was declined before it became an ask; `reason` is one of
    /// [`DECLINE_REASONS`](handraise_api::frame::DECLINE_REASONS). What [`open`](Self::open) refuses is counted there.
    /// The inbox is told of all of them.
    pub fn declined(&self, reason: &'static str) {
        if !self.0.is_detached {
            self.0.shared.change(|state, _| state.declined(reason));
        }
    }

    /// Tells the inbox which rail was tried for an ask and how that ended (mcp.md, section 9): one record for each, and
    /// never arguments or answers in it. The inbox keeps it under this holder's token and instance, and believes that it
    /// was a human only where `ask` names an ask of this holder that a person has answered there (S15).
    ///
    /// Never waits: a record is sent after everything else, and kept until the inbox has acknowledged it. Where 4,096 wait
    /// already, and where the inbox takes none, it is dropped and counted ([`records_dropped`](Self::records_dropped)).
    /// Names beyond 128 bytes are cut. Without an inbox it does nothing.
    pub fn record(&self, record: Record) {
        if !self.0.is_detached {
            let shared = &self.0.shared;
            shared.records.push(record, shared.clock.boot_millis());
            shared.outgoing.notify_one();
        }
    }

    /// How many records were dropped.
    pub fn records_dropped(&self) -> u64 {
        self.0.shared.records.dropped()
    }

    /// How many asks are open.
    pub fn open_asks(&self) -> usize {
        self.0.shared.look(|state| state.engine.open_asks())
    }

    /// How often asks were refused, by reason.
    pub fn refusals(&self) -> BTreeMap<Refused, u64> {
        self.0.shared.look(|state| state.engine.refusals().clone())
    }

    /// Tells the inbox where a session stands; the latest word is repeated after every reconnect.
    pub fn session_updated(&self, session: SessionUpdated) {
        if !self.0.is_detached {
            self.0.shared.change(|state, _| state.session_updated(session));
        }
    }

    /// Appends to a session's transcript. Kept until the inbox has acknowledged it, at most 16 MiB a session: then
    /// the oldest entries give way to a notice.
    pub fn session_message(&self, message: NewMessage) {
        if self.0.is_detached {
            return;
        }
        let at = self.0.shared.clock.wall();
        if !self.0.shared.change(|state, _| state.transcripts.push(message, at)) {
            tracing::warn!(
                "too many sessions have transcripts that the inbox does not know; an entry was dropped"
            );
        }
    }

    /// What the inbox wants done, from now on. The latest receiver gets everything; without one, commands are
    /// answered `NOT_FOUND`.
    pub fn commands(&self) -> mpsc::Receiver<Command> {
        let (sender, receiver) = mpsc::channel(COMMANDS);
        self.0.shared.change(|state, _| state.commands = Some(sender));
        receiver
    }

    /// Waits until the inbox has acknowledged everything that there is to tell it. An inbox that is away is dialled
    /// every second meanwhile, so that one that comes back is not missed.
    pub async fn told(&self) {
        let shared = &self.0.shared;
        let told = wait_until(shared, Shared::is_told);
        let hurry = async {
            loop {
                shared.hurry.notify_one();
                tokio::time::sleep(TRY_AGAIN).await;
            }
        };
        tokio::select! {
            biased;
            () = told => {}
            () = hurry => {}
        }
    }

    /// Ends every open ask as [`EndCause::Shutdown`], waits until the inbox has acknowledged everything, at most
    /// [`SHUTDOWN_GRACE`](Self::SHUTDOWN_GRACE), and closes the stream (F7). Later opens are refused.
    pub async fn shutdown(self) {
        self.shut_down(std::future::ready(())).await;
    }

    /// Like [`shutdown`](Self::shutdown), and waits longer for the receipt of an answer: up to
    /// [`RECEIPT_GRACE`](Self::RECEIPT_GRACE) in all, or until `hurried` completes. Without an answer of that kind it
    /// waits no longer.
    pub async fn shutdown_with_receipt(self, hurried: impl Future<Output = ()>) {
        self.shut_down(hurried).await;
    }

    async fn shut_down(self, hurried: impl Future<Output = ()>) {
        let shared = &self.0.shared;
        shared.change(|state, now| {
            let (engine, courier) = state.adjudicator();
            engine.shut_down(now, courier);
        });
        if self.0.is_detached {
            return;
        }
        if tokio::time::timeout(Self::SHUTDOWN_GRACE, self.told()).await.is_err()
            && !self.gives_receipt(hurried).await
        {
            tracing::warn!("the inbox did not acknowledge everything before the holder went down");
        }
        shared.change(|state, _| state.is_closing = true);
        shared.outgoing.notify_one();
        shared.hurry.notify_one();
        // Closing in good order is a courtesy; the tasks end with the last handle at the latest.
        let _ = tokio::time::timeout(
            self.0.close,
            wait_until(shared, |shared| shared.look(|state| state.is_closed)),
        )
        .await;
    }
}

impl Holder {
    /// Waits for an inbox that went away between an answer and our receipt for it. Returns whether it was told.
    async fn gives_receipt(&self, hurried: impl Future<Output = ()>) -> bool {
        let mut hurried = std::pin::pin!(hurried);
        let is_hurried = hurried.as_mut().now_or_never().is_some();
        if is_hurried || !self.0.shared.look(|state| state.engine.owes_a_receipt()) {
            return false;
        }
        let left = Self::RECEIPT_GRACE.saturating_sub(Self::SHUTDOWN_GRACE);
        tracing::warn!(
            "the inbox has not heard that an answer counts; waiting up to {} s more for it",
            left.as_secs()
        );
        tokio::select! {
            biased;
            told = tokio::time::timeout(left, self.told()) => told.is_ok(),
            () = hurried => false,
        }
    }
}

/// Waits for a condition that an acknowledgement, or the end of the stream, may bring about.
async fn wait_until(shared: &Shared, condition: impl Fn(&Shared) -> bool) {
    loop {
        let changed = shared.settled.notified();
        if condition(shared) {
            return;
        }
        changed.await;
    }
}
