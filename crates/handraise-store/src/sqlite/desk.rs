//! Where the connection lies while nobody uses it, and where those wait who want something written.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    error::Failure,
    statement::{Outcome, Statement},
};

/// Most that are written together: the first of them waits for the last.
const MOST_TOGETHER: usize = 64;
/// How many may wait; whoever comes then waits for a place.
pub(super) const MOST_WAITING: usize = 1_024;

/// What a caller wants written.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) statement: Statement,
    pub(super) done: oneshot::Sender<Result<Outcome, Failure>>,
    pub(super) place: Place,
}

impl Wanted {
    /// Tells the caller, who may have given up, and makes room for another.
    pub(super) fn tell(self, outcome: Result<Outcome, Failure>) {
        let Self { done, place, .. } = self;
        let _ = done.send(outcome);
        drop(place);
    }
}

/// A place among those who wait; free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// The places for those who wait.
#[derive(Debug)]
pub(super) struct Places(Arc<Semaphore>);

impl Places {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_WAITING)))
    }

    /// `None`: nobody may wait any more.
    pub(super) async fn take(&self) -> Option<Place> {
        Some(Place { _permit: Arc::clone(&self.0).acquire_owned().await.ok()? })
    }

    /// So many places at once, of [`MOST_WAITING`] at most: more would be waited for in vain.
    pub(super) async fn take_many(&self, count: usize) -> Option<Vec<Place>> {
        let count = u32::try_from(count).ok()?;
        let mut all = Arc::clone(&self.0).acquire_many_owned(count).await.ok()?;
        let place = |_| all.split(1).map(|permit| Place { _permit: permit });
        (0..count).map(place).collect()
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// Nothing can be written any more.
#[derive(Debug)]
pub(super) struct Closed;

/// The connection `C`, lent as `L` to whoever wants it for several calls.
///
/// It lies here only while nobody waits: whoever comes then takes it, and whoever has it lays it back only when nobody
/// has come meanwhile. So nobody waits for a connection that lies idle.
#[derive(Debug)]
pub(super) struct Desk<C, L>(Mutex<Lying<C, L>>);

#[derive(Debug)]
struct Lying<C, L> {
    connection: Option<C>,
    /// Those whom somebody waits for.
    ahead: VecDeque<Wanted>,
    /// Everybody else, in their order.
    others: VecDeque<Other<L>>,
    /// Whether those ahead had the last turn: then it is the others'.
    were_ahead: bool,
    is_closed: bool,
}

#[derive(Debug)]
enum Other<L> {
    Wanted(Wanted),
    Lend(oneshot::Sender<L>),
}

/// What is to be done next.
pub(super) enum Next<C, L> {
    /// The connection lies on the desk again.
    Nothing,
    /// To write these.
    Group(C, Vec<Wanted>),
    /// To give it to whoever asked for it.
    Lend(C, oneshot::Sender<L>),
}

impl<C, L> Desk<C, L> {
    pub(super) fn new(connection: C) -> Self {
        Self(Mutex::new(Lying {
            connection: Some(connection),
            ahead: VecDeque::new(),
            others: VecDeque::new(),
            were_ahead: false,
            is_closed: false,
        }))
    }

    /// Lets something wait to be written. Whoever gets the connection has to see to it.
    pub(super) fn want(&self, wanted: Wanted) -> Result<Option<C>, Closed> {
        let mut lying = self.open()?;
        if wanted.statement.is_ahead {
            lying.ahead.push_back(wanted);
        } else {
            lying.others.push_back(Other::Wanted(wanted));
        }
        Ok(lying.connection.take())
    }

    /// Takes the connection, or lets somebody wait for it.
    pub(super) fn ask_for(&self, lend: oneshot::Sender<L>) -> Result<Option<C>, Closed> {
        let mut lying = self.open()?;
        let connection = lying.connection.take();
        if connection.is_none() {
            lying.others.push_back(Other::Lend(lend));
        }
        Ok(connection)
    }

    /// What waits next. Without anything the connection is laid back.
    pub(super) fn next(&self, connection: C) -> Next<C, L> {
        let mut lying = self.lying();
        let is_turn_of_others = lying.were_ahead && !lying.others.is_empty();
        if !lying.ahead.is_empty() && !is_turn_of_others {
            lying.were_ahead = true;
            let count = lying.ahead.len().min(MOST_TOGETHER);
            return Next::Group(connection, lying.ahead.drain(..count).collect());
        }
        lying.were_ahead = false;
        let mut group = Vec::new();
        while group.len() < MOST_TOGETHER {
            match lying.others.pop_front() {
                Some(Other::Wanted(wanted)) => group.push(wanted),
                Some(Other::Lend(lend)) if group.is_empty() => return Next::Lend(connection, lend),
                Some(lend @ Other::Lend(_)) => {
                    lying.others.push_front(lend);
                    break;
                }
                None => break,
            }
        }
        if group.is_empty() {
            lying.connection = Some(connection);
            Next::Nothing
        } else {
            Next::Group(connection, group)
        }
    }

    /// Lets a group that could not be written wait again, before all others.
    pub(super) fn put_off(&self, group: Vec<Wanted>) {
        let mut lying = self.lying();
        lying.were_ahead = false;
        for wanted in group.into_iter().rev() {
            lying.ahead.push_front(wanted);
        }
    }

    /// Lays the connection back, unless somebody has come meanwhile: then it is returned.
    pub(super) fn lay_back(&self, connection: C) -> Option<C> {
        let mut lying = self.lying();
        if lying.ahead.is_empty() && lying.others.is_empty() {
            lying.connection = Some(connection);
            // Whoever comes next begins anew.
            lying.were_ahead = false;
            None
        } else {
            Some(connection)
        }
    }

    /// Nobody may come any more, and whoever waits gets nothing.
    pub(super) fn close(&self) {
        let mut lying = self.lying();
        lying.is_closed = true;
        let waiting = (std::mem::take(&mut lying.ahead), std::mem::take(&mut lying.others));
        drop(lying);
        // That wakes them.
        drop(waiting);
    }

    /// Whether somebody has the connection.
    #[cfg(test)]
    pub(super) fn is_taken(&self) -> bool {
        self.lying().connection.is_none()
    }

    fn open(&self) -> Result<MutexGuard<'_, Lying<C, L>>, Closed> {
        let lying = self.lying();
        if lying.is_closed { Err(Closed) } else { Ok(lying) }
    }

    fn lying(&self) -> MutexGuard<'_, Lying<C, L>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
