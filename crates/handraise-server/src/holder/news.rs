//! What changes of a welcome while its connection lasts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use handraise_api::frame::{Flags, Frame, FrameKind, Presence, action};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::{sync::watch, time::Instant};

use crate::{
    flags::RuntimeFlags,
    surfaces::{self, Surfaces},
};

/// How far apart news are. What changes faster is told once, as it stands then, and still within the second in which a
/// surface ends with its token (S34).
const APART: Duration = Duration::from_millis(250);

/// News for one holder.
#[derive(Debug)]
pub(super) struct News {
    surfaces: surfaces::Watch,
    runtime: Arc<RuntimeFlags>,
    set: watch::Receiver<BTreeMap<String, bool>>,
    /// The flags that were said last.
    flags: Flags,
    not_before: Instant,
}

impl News {
    /// Begins with what the welcome says.
    pub(super) fn after_welcome(
        surfaces: &Arc<Surfaces>,
        runtime: &Arc<RuntimeFlags>,
    ) -> (Self, Flags, Presence) {
        let (mut surfaces, set) = (surfaces.watch(), runtime.watch());
        let (flags, operators) = (runtime.for_holders(), surfaces.look());
        (
            Self { surfaces, runtime: Arc::clone(runtime), set, flags, not_before: Instant::now() },
            flags,
            operators,
        )
    }

    /// Waits for the next event to write. May be dropped while it waits: nothing is lost.
    pub(super) async fn next(&mut self) -> String {
        loop {
            tokio::time::sleep_until(self.not_before).await;
            let text = tokio::select! {
                () = self.surfaces.changed() => event(action::OPERATORS_PRESENCE, &self.surfaces.look()),
                // Without its sender nothing changes any more; it lives as long as the inbox.
                Ok(()) = self.set.changed() => {
                    let before = std::mem::replace(&mut self.flags, self.runtime.for_holders());
                    if before == self.flags { None } else { event(action::FLAGS_CHANGED, &self.flags) }
                }
            };
            if let Some(text) = text {
                self.not_before = Instant::now() + APART;
                return text;
            }
        }
    }
}

fn event(action: &str, payload: &impl Serialize) -> Option<String> {
    let payload = to_raw_value(payload).ok();
    let frame = Frame { id: None, kind: FrameKind::Event, action: action.to_owned(), payload, error: None };
    serde_json::to_string(&frame).ok()
}

#[cfg(test)]
mod tests {
    use handraise_api::access::Scope;
    use handraise_transport::clock::SystemClock;

    use super::*;
    use crate::settings::FlagSettings;

    #[tokio::test(start_paused = true)]
    async fn s37_a_page_that_comes_and_goes_without_end_is_told_four_times_a_second_and_truly_in_the_end() {
        let surfaces = Arc::new(Surfaces::new(SystemClock::shared()));
        let flags = Arc::new(RuntimeFlags::new(FlagSettings::default(), BTreeMap::new()));
        let (mut news, ..) = News::after_welcome(&surfaces, &flags);
        let flood = tokio::spawn(async move {
            for n in 0..500 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let page = surfaces.arrive(Scope::Operator);
                flags.note("profiles.adaptive", Some(n % 2 == 0));
                tokio::time::sleep(Duration::from_millis(2)).await;
                drop(page);
            }
            let page = surfaces.arrive(Scope::Operator);
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(page);
        });
        let mut told = Vec::new();
        while let Ok(text) = tokio::time::timeout(Duration::from_secs(1), news.next()).await {
            told.push(text);
        }
        assert!((8..=11).contains(&told.len()), "{told:?}");
        let last = |action: &str| told.iter().rfind(|text| text.contains(action)).map(String::as_str);
        assert_eq!(
            last(action::OPERATORS_PRESENCE),
            Some(r#"{"type":"event","action":"operators.presence","payload":{"live":true}}"#)
        );
        assert!(last(action::FLAGS_CHANGED).unwrap().ends_with(r#""adaptive_profiles":false}}"#));
        flood.abort();
    }
}
