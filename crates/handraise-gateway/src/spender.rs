//! The thread that asks the store of spent nonces: what it is told is on disk before the envelope hears of it.

use std::sync::{Arc, mpsc::Receiver};

use handraise_mcp::{confirm::Spent, envelope::Spend};
use handraise_spent::{Store, Was};

use crate::shared::{Shared, now};

/// Answers each question of the envelope, in the order in which they came.
pub(crate) fn run(shared: &Arc<Shared>, mut store: Store, questions: &Receiver<Spend>) {
    for Spend { ticket, nonce, expires_ms, claims } in questions {
        let now_ms = now().wall_ms;
        let was = if claims { store.claim(nonce, expires_ms, now_ms) } else { store.look(nonce, now_ms) };
        let was = match was {
            Was::Unspent => Spent::No,
            Was::Spent => Spent::Yes,
            Was::Unknown => {
                tracing::error!(
                    "the store of spent confirmations does not answer; what waits for it does not run"
                );
                Spent::Unknown
            }
        };
        let mut out = Vec::new();
        let mut state = shared.lock();
        state.envelope.spent(ticket, was, now(), &mut out);
        shared.carry_out(state, &mut out);
    }
}
