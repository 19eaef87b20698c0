//! What all parts of a running inbox share.

use std::{collections::BTreeSet, sync::Arc};

use handraise_api::{ask::Ask, session::Session};
use handraise_core::Moment;
use handraise_store::{Now, Store};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access, agents::Agents, events::Events, flags::RuntimeFlags, hub::Hub, metrics::Metrics,
    open::OpenAsks, settings::Settings, surfaces::Surfaces,
};

/// The shared state of handlers and tasks.
pub(crate) type App = Arc<Inbox>;

#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) hub: Hub,
    pub(crate) open: OpenAsks,
    pub(crate) events: Events,
    pub(crate) surfaces: Arc<Surfaces>,
    pub(crate) flags: Arc<RuntimeFlags>,
    pub(crate) agents: Agents,
    pub(crate) metrics: Metrics,
    /// Sessions of which operators are to be told how they stand.
    pub(crate) changed_sessions: watch::Sender<BTreeSet<String>>,
    /// Mixed into fingerprints of answers that hold secrets; never leaves the process.
    pub(crate) pepper: [u8; 32],
    /// Cancelled when the inbox goes down.
    pub(crate) shutdown: CancellationToken,
    /// Work that must be finished, or given up in order, before the database closes.
    pub(crate) tasks: TaskTracker,
}

impl Inbox {
    /// What time it is, on both clocks.
    pub(crate) fn now(&self) -> Now {
        let clock = &self.settings.clock;
        Now { wall: clock.wall(), boot: Moment::from_millis(clock.boot_millis()) }
    }

    /// An ask of the store as operators see it.
    pub(crate) fn shown(&self, ask: Ask, instance: &str) -> Ask {
        let holder_connected = self.hub.is_connected(instance);
        Ask { holder_connected, ..ask }
    }

    /// A session of the store as operators see it.
    pub(crate) fn shown_session(&self, session: Session, instance: Option<&str>) -> Session {
        let holder_connected = instance.is_some_and(|instance| self.hub.is_connected(instance));
        Session { holder_connected, ..session }
    }
}
