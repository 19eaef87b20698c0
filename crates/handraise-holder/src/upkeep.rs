//! The two tasks behind a handle: one keeps the stream up, one the deadlines.

use std::{sync::Arc, time::Duration};

use handraise_core::Moment;
use handraise_transport::ids;

use crate::{
    Timing,
    dial::{Dialer, Socket},
    state::Shared,
    stream,
};

/// Declines what is due. Without deadlines there is no timer.
pub(crate) async fn keep_time(shared: Arc<Shared>) {
    loop {
        match shared.look(|state| state.engine.next_deadline().map(Moment::as_millis)) {
            None => shared.timer.notified().await,
            Some(deadline) => {
                tokio::select! {
                    () = shared.clock.sleep_until(deadline) => shared.change(|state, now| {
                        let (engine, courier) = state.adjudicator();
                        engine.advance(now, courier);
                    }),
                    () = shared.timer.notified() => {}
                }
            }
        }
    }
}

/// Runs the connection, and dials the next one when it is lost.
pub(crate) async fn keep_connected(shared: Arc<Shared>, mut dialer: Dialer, first: Socket, timing: Timing) {
    let mut socket = Some(first);
    let mut wait = timing.backoff_min;
    let mut was_told = false;
    loop {
        if let Some(socket) = socket.take() {
            let finished = stream::run(&shared, socket, timing).await;
            shared.disconnected();
            let Some(lost) = finished.lost else { break };
            tracing::warn!("the holder stream was lost: {lost}; open asks wait, reconnecting");
            if finished.worked {
                wait = timing.backoff_min;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(wait)) => {}
            () = shared.hurry.notified() => {}
        }
        if shared.look(|state| state.is_closing) {
            break;
        }
        match dialer.dial().await {
            Ok((next, welcome)) => {
                tracing::info!(instance = %welcome.instance, epoch = welcome.epoch, "the holder stream is up again");
                shared.connected(&welcome);
                socket = Some(next);
                was_told = false;
            }
            // Once is enough for a log; the handle's user sees what it can do without an inbox.
            Err(error) if was_told => tracing::debug!("{error}"),
            Err(error) => {
                tracing::warn!("{error}; trying again for as long as it takes");
                was_told = true;
            }
        }
        wait = (wait * 2).min(timing.backoff_max);
    }
    shared.change(|state, _| state.is_closed = true);
    shared.settled.notify_waiters();
}

/// Half of `wait` and a random part of the other half, so that a thousand holders do not come back at once.
fn jittered(wait: Duration) -> Duration {
    let random = ids::random().map_or(u8::MAX, |bytes| bytes.first().copied().unwrap_or(u8::MAX));
    wait / 2 + wait.mul_f64(f64::from(random) / (2.0 * f64::from(u8::MAX)))
}
