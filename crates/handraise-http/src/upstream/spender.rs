//! The thread that asks the store of spent nonces: what it is told is on disk before the envelope hears of it.

use std::{
    io,
    sync::mpsc::{Sender, channel},
    thread,
};

use handraise_mcp::{confirm::Spent, envelope::Spend};
use handraise_spent::{Store, Was};
use handraise_transport::{clock::SystemClock, limited::Limited};
use tokio::sync::mpsc;

use super::stdio::now;

/// What the store says, by the ticket of the question.
pub(super) type Said = mpsc::UnboundedReceiver<(u64, Spent)>;

/// Answers each question of the envelope, in the order in which they came. Without a store nothing is known.
pub(super) fn start(store: Option<Store>) -> io::Result<(Sender<Spend>, Said)> {
    let (questions, asked) = channel::<Spend>();
    let (says, said) = mpsc::unbounded_channel();
    let Some(mut store) = store else { return Ok((questions, said)) };
    let answer = move || {
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
            if says.send((ticket, was)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("spender".to_owned()).spawn(answer)?;
    Ok((questions, said))
}
