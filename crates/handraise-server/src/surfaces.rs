//! Who could answer now: the surfaces of operators (mcp.md, section 7).
//!
//! A surface is an event stream whose token may answer. The page, `handraise inbox watch` and the picker hold one open for
//! as long as they show asks; a viewer's counts for nothing. It is gone with its stream, and so within a second of its
//! token (S34). A reader that vanishes without a word is noticed with the stream's next sign of life, 15 s later at most.

use std::sync::Arc;

use handraise_api::{access::Scope, frame::Presence};
use handraise_transport::clock::SharedClock;
use tokio::sync::watch;

/// The surfaces that are live, and when the last of them left.
#[derive(Debug)]
pub(crate) struct Surfaces {
    clock: SharedClock,
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    live: usize,
    /// Of the boot clock; `None`: none was there in this run.
    left: Option<u64>,
}

impl Surfaces {
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self { clock, seen: watch::Sender::default() }
    }

    /// A stream begins; it is a surface when its scope may answer. It is one until what this returns is dropped.
    pub(crate) fn arrive(self: &Arc<Self>, scope: Scope) -> Option<Surface> {
        match scope {
            Scope::Operator | Scope::Admin => {}
            Scope::Viewer | Scope::Holder => return None,
        }
        self.seen.send_if_modified(|seen| {
            seen.live += 1;
            seen.live == 1
        });
        Some(Surface(Arc::clone(self)))
    }

    /// Whoever wants to know of every change from now on.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        Watch { seen: self.seen.subscribe(), surfaces: Arc::clone(self) }
    }

    fn presence(&self, seen: Seen) -> Presence {
        let live = seen.live > 0;
        let ago = || seen.left.map(|left| self.clock.boot_millis().saturating_sub(left));
        Presence { live, ago_ms: if live { None } else { ago() } }
    }
}

/// A live surface.
#[derive(Debug)]
pub(crate) struct Surface(Arc<Surfaces>);

impl Drop for Surface {
    fn drop(&mut self) {
        let now = self.0.clock.boot_millis();
        self.0.seen.send_if_modified(|seen| {
            seen.live -= 1;
            seen.left = Some(now);
            seen.live == 0
        });
    }
}

/// Hears when the first surface comes and when the last one leaves; of several changes meanwhile, once.
#[derive(Debug)]
pub(crate) struct Watch {
    seen: watch::Receiver<Seen>,
    surfaces: Arc<Surfaces>,
}

impl Watch {
    /// How it stands; what came until now is no news any more.
    pub(crate) fn look(&mut self) -> Presence {
        let seen = *self.seen.borrow_and_update();
        self.surfaces.presence(seen)
    }

    /// Waits for a change. May be dropped while it waits.
    pub(crate) async fn changed(&mut self) {
        if self.seen.changed().await.is_err() {
            // The sender lives as long as this watch.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use handraise_transport::clock::ManualClock;

    use super::*;

    #[test]
    fn only_who_may_answer_is_a_surface_and_the_last_to_leave_is_remembered() {
        let clock = ManualClock::new();
        let surfaces = Arc::new(Surfaces::new(Arc::new(clock.clone())));
        let mut watch = surfaces.watch();
        let none = Presence { live: false, ago_ms: None };
        assert_eq!(watch.look(), none);
        assert!(surfaces.arrive(Scope::Viewer).is_none() && surfaces.arrive(Scope::Holder).is_none());
        assert_eq!(watch.changed().now_or_never(), None);

        let first = surfaces.arrive(Scope::Operator);
        assert_eq!(watch.changed().now_or_never(), Some(()));
        let here = Presence { live: true, ago_ms: None };
        assert_eq!(watch.look(), here);
        let second = surfaces.arrive(Scope::Admin);
        drop(first);
        assert_eq!(watch.changed().now_or_never(), None, "somebody is still there");
        clock.advance(Duration::from_secs(60));
        drop(second);
        assert_eq!(watch.changed().now_or_never(), Some(()));
        assert_eq!(watch.look(), Presence { live: false, ago_ms: Some(0) });
        clock.advance(Duration::from_secs(90));
        assert_eq!(surfaces.watch().look(), Presence { live: false, ago_ms: Some(90_000) });
    }
}
