//! Keeps time for all links: one task, and no timer of a request's own.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use handraise_core::Moment;
use tokio::sync::Notify;

use super::{Front, alarm::Alarm, link::Link};
use crate::now::now;

/// How often everything is looked at.
const TICK: Duration = Duration::from_secs(1);

/// Which links want to hear the time, and when.
#[derive(Debug, Default)]
pub(crate) struct Clockwork {
    alarms: Mutex<BTreeMap<(Moment, u64), Weak<Link>>>,
    sooner: Notify,
}

impl Clockwork {
    /// Wakes a link at that time, unless it has nothing to do then any more.
    pub(crate) fn set(&self, at: Moment, number: u64, link: &Arc<Link>) {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = alarms.first_key_value().is_none_or(|((first, _), _)| at < *first);
        alarms.insert((at, number), Arc::downgrade(link));
        drop(alarms);
        if is_first {
            self.sooner.notify_one();
        }
    }

    /// Takes a link that is to be woken now, or says how long there is none.
    fn next(&self) -> Result<Weak<Link>, Duration> {
        let mut alarms = self.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(first) = alarms.first_entry() else { return Err(TICK) };
        let (at, now) = (first.key().0, now().boot);
        if at <= now { Ok(first.remove()) } else { Err(now.until(at)) }
    }
}

/// Keeps time until the end.
///
/// # Errors
/// When there is no timer to be had.
pub(crate) fn start(front: &Arc<Front>) -> io::Result<()> {
    let alarm = Alarm::new()?;
    front.tasks.spawn(run(Arc::clone(front), alarm));
    Ok(())
}

async fn run(front: Arc<Front>, mut alarm: Alarm) {
    let mut ticked = now().boot;
    loop {
        let wait = match front.clockwork.next() {
            Ok(link) => {
                if let Some(link) = link.upgrade() {
                    link.wake();
                }
                continue;
            }
            Err(wait) => wait,
        };
        if ticked.until(now().boot) >= TICK {
            ticked = now().boot;
            front.tick();
            continue;
        }
        let until_tick = TICK.saturating_sub(ticked.until(now().boot)).max(Duration::from_millis(1));
        tokio::select! {
            () = alarm.after(wait.min(until_tick)) => {}
            () = front.clockwork.sooner.notified() => {}
            () = front.shutdown.cancelled() => return,
        }
    }
}
