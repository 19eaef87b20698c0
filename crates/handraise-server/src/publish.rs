//! What operators are told when something changed. Always after it was committed.

use std::{collections::BTreeSet, time::Duration};

use handraise_api::{ask::Ask, event, session::Message, words::AskState};
use handraise_store::{Appended, Notice, NoticeKind};

use crate::{
    events::request_for,
    inbox::{App, Inbox},
};

/// Asks of one holder beyond which its coming or going is told by a snapshot.
const EVENTS_WORTH: usize = 100;
/// What comes within this time is read together. Streams get four frames a second at most, and reading beside an answer
/// holds it up.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long sent notifications may stay before they are taken out: a write for each would hold answers up.
const KEPT: Duration = Duration::from_millis(250);

impl Inbox {
    pub(crate) fn tell_opened(&self, ask: &Ask, message: Option<&Message>) {
        self.metrics.opened(ask.content.source.into());
        let subject = subject(ask);
        let request = request_for(&subject);
        self.events.publish_twice(
            (event::ASK_OPENED, subject),
            (event::CLARIFICATION_REQUESTED, request),
            ask,
        );
        if let Some(message) = message {
            self.tell_message(message);
        }
        self.tell_session(ask.content.session_id.as_deref());
    }

    pub(crate) fn tell_updated(&self, ask: &Ask) {
        self.events.publish(event::ASK_UPDATED, Some(subject(ask)), ask);
    }

    pub(crate) fn tell_settled(&self, ask: &Ask) {
        self.open.forget(&ask.id);
        if let Some(how) = &ask.settlement {
            self.metrics.settled(how.outcome.into());
            tracing::info!(
                ask.id = ask.id,
                ask.outcome = how.outcome.as_str(),
                ask.provenance = how.provenance.as_str(),
                // The reason of somebody's skip is their words; any other is a code.
                ask.reason = how.reason.as_deref().filter(|_| how.submission_id.is_none()),
                "an ask ended"
            );
        }
        self.events.publish(event::ASK_SETTLED, Some(subject(ask)), ask);
        self.tell_session(ask.content.session_id.as_deref());
    }

    pub(crate) fn tell_message(&self, message: &Message) {
        self.events.publish(event::SESSION_MESSAGE, None, message);
    }

    /// Lets operators know how a session stands now: soon, and once for all that happens to it until then.
    pub(crate) fn tell_session(&self, id: Option<&str>) {
        if let Some(id) = id {
            self.changed_sessions.send_if_modified(|changed| changed.insert(id.to_owned()));
        }
    }

    /// Tells that an instance came or went: its asks can, or cannot, be answered now.
    pub(crate) async fn tell_connection(&self, instance: &str) {
        let asks = match self.store.unsettled_of(instance).await {
            Ok(asks) => asks,
            Err(error) => {
                tracing::error!(%error, holder.instance = instance, "the asks of a holder could not be read");
                return self.events.start_again();
            }
        };
        if asks.len() > EVENTS_WORTH {
            return self.events.start_again();
        }
        for (id, _) in asks {
            if let Ok(Some((ask, instance))) = self.store.ask(&id).await {
                self.tell_updated(&self.shown(ask, &instance));
            }
        }
        for session in self.store.sessions_of(instance).await.unwrap_or_default() {
            let session = self.shown_session(session, Some(instance));
            let subject = format!("session/{}", session.id);
            self.events.publish(event::SESSION_UPDATED, Some(subject), &session);
        }
    }

    /// Takes a transcript entry up and tells of it.
    pub(crate) async fn append(
        &self,
        instance: &str,
        entry: &Message,
    ) -> Result<Appended, handraise_store::StoreError> {
        let appended =
            self.store.append_message(self.now(), instance, entry, &self.settings.bounds()).await?;
        if let Appended::New(message) = &appended {
            self.tell_message(message);
        }
        Ok(appended)
    }
}

fn subject(ask: &Ask) -> String {
    format!("ask/{}", ask.id)
}

/// Tells of sessions that changed, until the inbox goes down.
pub(crate) async fn tell_sessions(app: App) {
    let mut changed = app.changed_sessions.subscribe();
    loop {
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            changed = changed.changed() => if changed.is_err() { return },
        }
        tokio::time::sleep(TOGETHER).await;
        let mut ids = BTreeSet::new();
        app.changed_sessions.send_if_modified(|changed| {
            ids = std::mem::take(changed);
            false
        });
        for id in ids {
            match app.store.session(&id).await {
                Ok(Some((session, instance))) => {
                    let session = app.shown_session(session, instance.as_deref());
                    app.events.publish(event::SESSION_UPDATED, Some(format!("session/{id}")), &session);
                }
                Ok(None) => {}
                Err(error) => tracing::error!(%error, session.id = id, "a session could not be read"),
            }
        }
    }
}

/// Sends the notifications that an earlier run left in the outbox, up to number `left`, and takes out what this run has
/// sent, until the inbox goes down. A notification that was committed is sent at least once, whatever happened in between
/// (F9): one of this run is sent with the opening of its ask ([`Inbox::tell_opened`]), right after it was committed, and
/// is taken out [`KEPT`] later at the earliest. Returns whether the earlier run's are sent.
pub(crate) async fn drain_outbox(app: App, left: i64) -> bool {
    let mut latest = app.events.latest();
    let mut sent = left;
    tokio::select! {
        () = app.shutdown.cancelled() => return false,
        () = send_left(&app, left) => {}
    }
    loop {
        latest.mark_unchanged();
        match app.store.sent(sent).await {
            Ok(last) => sent = last,
            Err(error) => tracing::error!(%error, "the outbox could not be emptied"),
        }
        let next = async {
            // Whatever fills the outbox publishes an event after it was committed.
            if sent == 0 {
                let _ = latest.changed().await;
            }
            tokio::time::sleep(KEPT).await;
        };
        tokio::select! {
            () = app.shutdown.cancelled() => return true,
            () = next => {}
        }
    }
}

/// Sends what an earlier run left.
async fn send_left(app: &Inbox, left: i64) {
    const AT_ONCE: u32 = 256;
    let mut sent = 0;
    while sent < left {
        match app.store.notices(sent, AT_ONCE).await {
            Ok(notices) => {
                for notice in notices.iter().filter(|notice| notice.id <= left) {
                    match notice.kind {
                        NoticeKind::Requested => request_clarification(app, notice),
                        // No channel outside the page is configured: `ask.settled` has said it.
                        NoticeKind::Withdrawn => {}
                    }
                }
                sent = notices.last().map_or(left, |notice| notice.id);
            }
            Err(error) => {
                tracing::error!(%error, "the outbox could not be read");
                tokio::time::sleep(KEPT).await;
            }
        }
    }
}

fn request_clarification(app: &Inbox, notice: &Notice) {
    // It may have ended since.
    if let Some((ask, instance)) = notice.ask.as_ref().filter(|(ask, _)| ask.state != AskState::Settled) {
        let ask = app.shown(Ask::clone(ask), instance);
        app.events.publish(event::CLARIFICATION_REQUESTED, Some(request_for(&subject(&ask))), &ask);
    }
}
