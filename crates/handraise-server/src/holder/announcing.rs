//! Taking up the asks that a holder announces.

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{AnnouncedAsk, AskOpened, AskSettled, Ended, Frame, HolderSettlement},
    words::Who,
};
use handraise_core::{
    AskId,
    form::{MAX_CHOICES, MAX_PROPERTIES},
};
use handraise_store::{Announced, Announcement};

use super::{payload, refused::Said, short, talk::Talk};
use crate::{hub::refusal, metrics::Refused};

/// Largest content of one ask, in bytes of JSON: what a form's schema and message may have (form.md), written out. A
/// page has to show it whole, and the first page of asks goes to every stream (S37).
const LARGEST_ASK: usize = 2 * 1024 * 1024;

impl Talk<'_> {
    pub(super) async fn opened(&mut self, frame: &Frame) -> Result<(), Said> {
        let AskOpened { ask } = payload(frame)?;
        // An ask that opens while a snapshot is under way need not be in a later part of it.
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.name([ask.id.as_str()])?;
        }
        if !self.rate.take(self.app.now().boot.as_millis()) {
            self.app.metrics.refused(Refused::HolderRate);
            let most = self.app.settings.limits.asks_per_second;
            let message = format!(
                "asks come faster than {most} a second, the most that one holder may (limits.asks_per_second)"
            );
            return Err(refusal(ErrorCode::LimitExceeded, message).into());
        }
        self.announce(ask).await
    }

    pub(super) async fn announce(&mut self, mut ask: AnnouncedAsk) -> Result<(), Said> {
        let (app, connection) = (self.app, self.connection);
        if AskId::new(ask.id.as_str()).is_err() {
            return Err(refusal(ErrorCode::BadRequest, "an ask's id is no id").into());
        }
        if ask.content.session_id.as_ref().is_some_and(|id| AskId::new(id.as_str()).is_err()) {
            return Err(refusal(ErrorCode::BadRequest, "an ask's session_id is no id").into());
        }
        // What was read from JSON can be written as JSON.
        let content = serde_json::to_string(&ask.content).unwrap_or_default();
        self.check_size(&ask, content.len())?;
        if ask.content.who != Who::Operator && connection.grant.token.owner.is_none() {
            self.audit(Refused::Answerers, Some(&ask.id)).await;
            let message = "nobody could answer this: it says whose answer counts (`who`), and the holder's token has no \
                           owner; make one with `handraise token create --scope holder --owner NAME` and set \
                           HANDRAISE_TOKEN to it (docs/agents.md, \"Whose answers count\")";
            return Err(refusal(ErrorCode::BadRequest, message).into());
        }
        if let Some(client) = &mut ask.client {
            client.name = short(&client.name).to_owned();
            client.version = client.version.as_deref().map(|version| short(version).to_owned());
        }
        ask.server = ask.server.as_deref().map(|server| short(server).to_owned());
        let new = Announcement {
            instance: &connection.instance,
            kind: connection.kind,
            holder_token: &connection.grant.token.name,
            holder_owner: connection.grant.token.owner.as_deref(),
            ask: &ask,
            content: &content,
        };
        let is_new = app.open.note(&ask.id, &ask.content, &connection.instance, new.holder_owner);
        let announced = app.store.announce(app.now(), &new, &app.settings.bounds()).await;
        let is_open = match &announced {
            Ok(Announced::Opened { .. } | Announced::Known(_)) => true,
            Ok(Announced::Settled(_) | Announced::ContentChanged(_) | Announced::Full(_)) => false,
            // What was noted before is right still.
            Ok(Announced::NotOwner) | Err(_) => !is_new,
        };
        if !is_open {
            app.open.forget(&ask.id);
        }
        match announced? {
            Announced::Opened { ask, message } => {
                tracing::info!(ask.id = ask.id, ask.source = ask.content.source.as_str(), "an ask opened");
                app.tell_opened(&ask, message.as_deref());
                Ok(())
            }
            Announced::Known(changed) => {
                if let Some(ask) = changed {
                    app.tell_updated(&app.shown(*ask, &connection.instance));
                }
                Ok(())
            }
            Announced::Settled(ask) => {
                let ask = *ask;
                let ended = ask.settlement.map(|how| AskSettled {
                    pending_id: ask.id,
                    settlement: HolderSettlement {
                        outcome: how.outcome,
                        provenance: how.provenance,
                        rail: how.rail,
                        wire: how.wire,
                        reason: how.reason,
                        ago_ms: 0,
                    },
                    submission_id: how.submission_id,
                });
                let error = refusal(ErrorCode::NotFound, "this ask has ended; its id never opens again");
                Err(Said::Ended(error, Ended { ended }))
            }
            Announced::ContentChanged(ask) => {
                self.audit(Refused::ContentChanged, Some(&ask.id)).await;
                app.tell_settled(&app.shown(*ask, &connection.instance));
                let message = "this ask was open with other content; it is withdrawn";
                Err(refusal(ErrorCode::ContentChanged, message).into())
            }
            Announced::NotOwner => Err(self.not_owner(&ask.id).await),
            Announced::Full(full) => Err(self.full(full)),
        }
    }

    /// Whether the ask is as small as a form may be.
    fn check_size(&self, ask: &AnnouncedAsk, bytes: usize) -> Result<(), ErrorBody> {
        let questions = &ask.content.questions;
        let is_large = questions.len() > MAX_PROPERTIES
            || questions.iter().any(|question| question.choices.len() > MAX_CHOICES)
            || bytes > LARGEST_ASK;
        if !is_large {
            return Ok(());
        }
        self.app.metrics.refused(Refused::HolderAsks);
        let message = format!(
            "an ask has at most {LARGEST_ASK} bytes, {MAX_PROPERTIES} questions and {MAX_CHOICES} choices each"
        );
        Err(refusal(ErrorCode::LimitExceeded, message))
    }
}
