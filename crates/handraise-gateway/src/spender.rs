//! The thread that asks the store of spent nonces: what it is told is on disk before the envelope hears of it, and nobody
//! else waits for the disk.

use std::{
    io,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use handraise_mcp::{confirm::Spent, envelope::Spend};
use handraise_spent::{Store, Was};
use handraise_transport::{clock::SystemClock, limited::Limited};

use crate::{run::now, wake::Waker};

/// Where the envelope's questions go, and answers come from.
pub(crate) struct Spender {
    questions: Sender<Spend>,
    answers: Receiver<(u64, Spent)>,
}

impl Spender {
    /// Starts the thread. It wakes us with every answer.
    pub(crate) fn start(store: Store, waker: Waker) -> io::Result<Self> {
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let work = move || answer(store, &asked, &answered, &waker);
        thread::Builder::new().name("spender".to_owned()).spawn(work)?;
        Ok(Self { questions, answers })
    }

    /// Asks. Without the thread nothing is said, and nothing runs: the envelope waits for so long only.
    pub(crate) fn ask(&self, spend: Spend) {
        let _ = self.questions.send(spend);
    }

    /// The next answer, with its ticket.
    pub(crate) fn answer(&self) -> Option<(u64, Spent)> {
        self.answers.try_recv().ok()
    }
}

/// Answers each question, in the order in which they came.
fn answer(mut store: Store, asked: &Receiver<Spend>, answered: &Sender<(u64, Spent)>, waker: &Waker) {
    let mut complaints = Limited::new(SystemClock::shared());
    for Spend { ticket, nonce, expires_ms, claims } in asked {
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
        if answered.send((ticket, was)).is_err() {
            return;
        }
        waker.wake();
    }
}
