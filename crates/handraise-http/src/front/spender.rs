//! The thread that asks the store of spent nonces (S5): what it is told is on disk before an envelope hears of it.

use std::{
    io,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use handraise_mcp::{confirm::Spent, envelope::Spend};
use handraise_spent::{Store, Was};
use handraise_transport::{clock::SystemClock, limited::Limited};
use tokio::runtime::Handle;

use super::{
    link::{Link, now},
    lock,
};

/// The way to the thread. Without a store nothing is said, and nothing runs: envelopes wait for so long only.
#[derive(Debug, Default)]
pub(crate) struct Spender(Option<Mutex<Sender<Question>>>);

/// What is asked, and for whom.
type Question = (Arc<Link>, Spend);

impl Spender {
    /// Starts the thread, where there is a store.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start(store: Option<Store>) -> io::Result<Self> {
        let Some(store) = store else { return Ok(Self(None)) };
        let (sender, questions) = channel();
        let runtime = Handle::current();
        thread::Builder::new().name("spender".to_owned()).spawn(move || {
            // What follows from an answer may start a task.
            let _inside = runtime.enter();
            run(store, &questions);
        })?;
        Ok(Self(Some(Mutex::new(sender))))
    }

    /// Asks for a link.
    pub(crate) fn ask(&self, link: &Arc<Link>, spend: Spend) {
        if let Some(sender) = &self.0 {
            // The thread ends with us.
            let _ = lock(sender).send((Arc::clone(link), spend));
        }
    }
}

/// Answers each question, in the order in which they came.
fn run(mut store: Store, questions: &Receiver<Question>) {
    let mut complaints = Limited::new(SystemClock::shared());
    for (link, Spend { ticket, nonce, expires_ms, claims }) in questions {
        let now_ms = now().wall_ms;
        let was = if claims { store.claim(nonce, expires_ms, now_ms) } else { store.look(nonce, now_ms) };
        let was = match was {
            Was::Unspent => Spent::No,
            Was::Spent => Spent::Yes,
            Was::Unknown => {
                if let Some(left_out) = complaints.admit() {
                    tracing::error!(
                        left_out,
                        "the store of spent confirmations does not answer; what waits for it does not run"
                    );
                }
                Spent::Unknown
            }
        };
        link.spent(ticket, was);
    }
}
