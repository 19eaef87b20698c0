//! The connected holders: who is there, and in which epoch.

mod connection;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use handraise_api::error::{ErrorBody, ErrorCode};

pub(crate) use self::connection::{Connection, Lost, Outgoing, Reply};

/// An instance that has been here in this run.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Orders everything that an instance says, and the change of its connection (S9).
    pub(crate) order: tokio::sync::Mutex<()>,
    current: Mutex<Option<Arc<Connection>>>,
}

impl Slot {
    /// Puts a connection in place. The one before is closed; its frames do not count any more (S9).
    pub(crate) fn connect(&self, connection: Arc<Connection>) {
        let before = lock(&self.current).replace(connection);
        if let Some(before) = before {
            before.closed.cancel();
        }
    }

    /// Whether frames of this connection still count.
    pub(crate) fn is_current(&self, connection: &Connection) -> bool {
        lock(&self.current).as_ref().is_some_and(|current| current.epoch == connection.epoch)
    }
}

/// The connected holders.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

impl Hub {
    /// The place of an instance, made when it is new.
    pub(crate) fn slot(&self, instance: &str) -> Arc<Slot> {
        Arc::clone(lock(&self.slots).entry(instance.to_owned()).or_default())
    }

    /// Takes a connection out, unless a later one is in place. Returns whether the instance is lost now.
    pub(crate) fn disconnect(&self, connection: &Connection) -> bool {
        let mut slots = lock(&self.slots);
        let lost = slots.get(&connection.instance).is_some_and(|slot| {
            let mut current = lock(&slot.current);
            let lost = current.as_ref().is_some_and(|current| current.epoch == connection.epoch);
            if lost {
                *current = None;
            }
            lost
        });
        // A slot that only the map and the ending connection hold has nothing to order any more.
        if lost && slots.get(&connection.instance).is_some_and(|slot| Arc::strong_count(slot) <= 2) {
            slots.remove(&connection.instance);
        }
        lost
    }

    /// The connection of an instance, if it is there.
    pub(crate) fn connection(&self, instance: &str) -> Option<Arc<Connection>> {
        // Nothing is kept of the slot meanwhile: one that somebody holds is not taken out of the map.
        let current = lock(&self.slots).get(instance).and_then(|slot| lock(&slot.current).clone());
        current.filter(|connection| !connection.closed.is_cancelled())
    }

    pub(crate) fn is_connected(&self, instance: &str) -> bool {
        self.connection(instance).is_some()
    }

    /// How many holders are connected.
    pub(crate) fn count(&self) -> usize {
        lock(&self.slots).values().filter(|slot| lock(&slot.current).is_some()).count()
    }
}

/// An error for a holder.
pub(crate) fn refusal(code: ErrorCode, message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(code, message)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
