//! What operators are told when something changed. Always after it was committed.

use handraise_api::{ask::Ask, event, session::Message};
use handraise_store::{Appended, NoticeKind};

use crate::inbox::{App, Inbox};

/// Asks of one holder beyond which its coming or going is told by a snapshot.
const EVENTS_WORTH: usize = 100;

impl Inbox {
    pub(crate) async fn tell_opened(&self, ask: &Ask, message: Option<&Message>) {
        self.metrics.opened(ask.content.source.into());
        self.events.publish(event::ASK_OPENED, Some(subject(ask)), ask);
        if let Some(message) = message {
            self.tell_message(message);
        }
        self.tell_session(ask.content.session_id.as_deref()).await;
    }

    pub(crate) fn tell_updated(&self, ask: &Ask) {
        self.events.publish(event::ASK_UPDATED, Some(subject(ask)), ask);
    }

    pub(crate) async fn tell_settled(&self, ask: &Ask) {
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
        self.tell_session(ask.content.session_id.as_deref()).await;
    }

    pub(crate) fn tell_message(&self, message: &Message) {
        self.events.publish(event::SESSION_MESSAGE, None, message);
    }

    /// Tells how a session stands now.
    pub(crate) async fn tell_session(&self, id: Option<&str>) {
        let Some(id) = id else { return };
        match self.store.session(id).await {
            Ok(Some((session, instance))) => {
                let session = self.shown_session(session, instance.as_deref());
                self.events.publish(event::SESSION_UPDATED, Some(format!("session/{id}")), &session);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, session.id = id, "a session could not be read"),
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
        let appended = self.store.append_message(self.now(), instance, entry).await?;
        if let Appended::New(message) = &appended {
            self.tell_message(message);
        }
        Ok(appended)
    }
}

fn subject(ask: &Ask) -> String {
    format!("ask/{}", ask.id)
}

/// Sends what is in the outbox, until the inbox goes down. A notification that was committed is sent at least once,
/// whatever happened in between (F9).
pub(crate) async fn drain_outbox(app: App) {
    const AT_ONCE: u32 = 256;
    let mut latest = app.events.latest();
    loop {
        match app.store.notices(AT_ONCE).await {
            Ok(notices) => {
                for notice in &notices {
                    match notice.kind {
                        NoticeKind::Requested => request_clarification(&app, &notice.ask).await,
                        // No channel outside the page is configured: `ask.settled` has said it.
                        NoticeKind::Withdrawn => {}
                    }
                }
                if let Some(last) = notices.last() {
                    if let Err(error) = app.store.sent(last.id).await {
                        tracing::error!(%error, "the outbox could not be emptied");
                    } else {
                        continue;
                    }
                }
            }
            Err(error) => tracing::error!(%error, "the outbox could not be read"),
        }
        // Whatever fills the outbox publishes an event after it was committed.
        tokio::select! {
            () = app.shutdown.cancelled() => return,
            changed = latest.changed() => if changed.is_err() { return },
        }
    }
}

async fn request_clarification(app: &Inbox, id: &str) {
    match app.store.ask(id).await {
        Ok(Some((ask, instance))) => {
            let ask = app.shown(ask, &instance);
            app.events.publish(event::CLARIFICATION_REQUESTED, None, &ask);
        }
        Ok(None) => {}
        Err(error) => tracing::error!(%error, ask.id = id, "an ask could not be read"),
    }
}
