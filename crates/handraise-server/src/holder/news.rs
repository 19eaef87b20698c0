//! What changes of a welcome while its connection lasts.

use std::time::Duration;

use handraise_api::frame::{Frame, FrameKind, Presence, action};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::time::Instant;

use crate::{inbox::App, surfaces};

/// How far apart news are. What changes faster is told once, as it stands then, and still within the second in which a
/// surface ends with its token (S34).
const APART: Duration = Duration::from_millis(250);

/// News for one holder.
#[derive(Debug)]
pub(super) struct News {
    surfaces: surfaces::Watch,
    not_before: Instant,
}

impl News {
    /// Begins with what the welcome says.
    pub(super) fn after_welcome(app: &App) -> (Self, Presence) {
        Self::of(app.surfaces.watch())
    }

    fn of(mut surfaces: surfaces::Watch) -> (Self, Presence) {
        let operators = surfaces.look();
        (Self { surfaces, not_before: Instant::now() }, operators)
    }

    /// Waits for the next event to write. May be dropped while it waits: nothing is lost.
    pub(super) async fn next(&mut self) -> String {
        loop {
            tokio::time::sleep_until(self.not_before).await;
            self.surfaces.changed().await;
            self.not_before = Instant::now() + APART;
            if let Some(text) = event(action::OPERATORS_PRESENCE, &self.surfaces.look()) {
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
    use std::sync::Arc;

    use handraise_api::access::Scope;
    use handraise_transport::clock::SystemClock;

    use super::*;
    use crate::surfaces::Surfaces;

    #[tokio::test(start_paused = true)]
    async fn s37_a_page_that_comes_and_goes_without_end_is_told_four_times_a_second_and_truly_in_the_end() {
        let surfaces = Arc::new(Surfaces::new(SystemClock::shared()));
        let (mut news, _) = News::of(surfaces.watch());
        let flood = tokio::spawn(async move {
            for _ in 0..500 {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let page = surfaces.arrive(Scope::Operator);
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
        assert!((8..=10).contains(&told.len()), "{told:?}");
        assert_eq!(
            told.last().unwrap(),
            r#"{"type":"event","action":"operators.presence","payload":{"live":true}}"#
        );
        flood.abort();
    }
}
