//! The state that both directions of the connection to an agent share: who is alive, and how much is under way.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use handraise_transport::clock::SharedClock;
use tokio::sync::{Notify, Semaphore};

/// How many messages of the agent may wait for their handling (acp.md).
pub(crate) const CREDIT: usize = 256;
/// How many bytes may wait to be written to the agent before nothing more is read from it.
const BACKLOG: usize = 64 * 1024 * 1024;

/// Shared by reader, writer, dispatcher and driver.
#[derive(Debug)]
pub(crate) struct Link {
    clock: SharedClock,
    alive: AtomicBool,
    credit: Semaphore,
    backlog: AtomicUsize,
    drained: Notify,
    last_sign: AtomicU64,
}

impl Link {
    pub(crate) fn new(clock: SharedClock) -> Arc<Self> {
        let now = clock.boot_millis();
        Arc::new(Self {
            clock,
            alive: AtomicBool::new(true),
            credit: Semaphore::new(CREDIT),
            backlog: AtomicUsize::new(0),
            drained: Notify::new(),
            last_sign: AtomicU64::new(now),
        })
    }

    pub(crate) fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Whether an answer could still reach the agent.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub(crate) fn died(&self) {
        self.alive.store(false, Ordering::Release);
    }

    /// Notes that something happened: a frame from the agent, a prompt to it, the end of an ask.
    pub(crate) fn sign_of_life(&self) {
        self.last_sign.store(self.clock.boot_millis(), Ordering::Relaxed);
    }

    /// When something last happened, in milliseconds of the boot clock.
    pub(crate) fn last_sign(&self) -> u64 {
        self.last_sign.load(Ordering::Relaxed)
    }

    /// Takes the right to hand out one message; given back by [`handled`](Self::handled).
    pub(crate) async fn hand_out(&self) {
        // The semaphore is never closed, so that this cannot fail.
        if let Ok(permit) = self.credit.acquire().await {
            permit.forget();
        }
    }

    pub(crate) fn handled(&self) {
        self.credit.add_permits(1);
    }

    pub(crate) fn queued(&self, bytes: usize) {
        self.backlog.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn written(&self, bytes: usize) {
        self.backlog.fetch_sub(bytes, Ordering::AcqRel);
        self.drained.notify_waiters();
    }

    /// Waits until not too much is queued for the agent.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            let mut drained = std::pin::pin!(drained);
            drained.as_mut().enable();
            if self.backlog.load(Ordering::Acquire) <= BACKLOG {
                return;
            }
            drained.await;
        }
    }
}
