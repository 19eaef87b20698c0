//! Taking up the asks that a holder announces.

use std::collections::HashSet;

use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{AnnouncedAsk, AskOpened, AskSettled, Ended, Frame, HolderSettlement},
    words::Who,
};
use handraise_core::{
    AskId,
    form::{MAX_CHOICES, MAX_PROPERTIES},
};
use handraise_store::{Announced, Announcement, StoreError};

use super::{payload, refused::Said, short, talk::Talk};
use crate::{hub::refusal, metrics::Refused};

/// Largest content of one ask, in bytes of JSON: what a form's schema and message may have (form.md), written out. A
/// page has to show it whole, and the first page of asks goes to every stream (S37).
const LARGEST_ASK: usize = 2 * 1024 * 1024;

/// An announced ask that may be stored.
struct Taken {
    ask: AnnouncedAsk,
    /// Its content as JSON text.
    content: String,
    /// Whether nothing was known of its id before.
    is_new: bool,
}

impl Talk<'_> {
    /// Asks that were opened one after the other: those that are new are written together. What comes of each.
    pub(super) async fn opened(&mut self, frames: &[Frame]) -> Vec<Result<(), Said>> {
        let mut said: Vec<Option<Result<(), Said>>> = Vec::with_capacity(frames.len());
        let mut together = Vec::new();
        let mut ids = HashSet::new();
        for frame in frames {
            match self.admitted(frame) {
                Ok(ask) => {
                    if !ids.insert(ask.id.clone()) {
                        // The one before it comes first.
                        self.announce_all(&mut said, std::mem::take(&mut together)).await;
                        ids = HashSet::from([ask.id.clone()]);
                    }
                    together.push(ask);
                    said.push(None);
                }
                Err(error) => said.push(Some(Err(error.into()))),
            }
        }
        self.announce_all(&mut said, together).await;
        // Each has been told something.
        said.into_iter().flatten().collect()
    }

    /// The ask of a frame, unless it comes too fast.
    fn admitted(&mut self, frame: &Frame) -> Result<AnnouncedAsk, ErrorBody> {
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
            return Err(refusal(ErrorCode::LimitExceeded, message));
        }
        Ok(ask)
    }

    /// Takes up asks, each under another id, and fills in what comes of each where nothing was said yet.
    async fn announce_all(&mut self, said: &mut [Option<Result<(), Said>>], asks: Vec<AnnouncedAsk>) {
        let mut outcomes = self.announce(asks).await.into_iter();
        for open in said.iter_mut().filter(|said| said.is_none()) {
            *open = outcomes.next();
        }
    }

    /// Takes up asks, each under another id. What comes of each, in their order.
    pub(super) async fn announce(&mut self, asks: Vec<AnnouncedAsk>) -> Vec<Result<(), Said>> {
        let mut checked = Vec::with_capacity(asks.len());
        for ask in asks {
            checked.push(self.checked(ask).await);
        }
        let taken: Vec<&Taken> = checked.iter().filter_map(|ask| ask.as_ref().ok()).collect();
        if taken.is_empty() {
            return checked.into_iter().map(|ask| ask.map(drop)).collect();
        }
        let (app, connection) = (self.app, self.connection);
        let mut news = Vec::with_capacity(taken.len());
        for Taken { ask, content, .. } in taken {
            news.push(Announcement {
                instance: &connection.instance,
                kind: connection.kind,
                holder_token: &connection.grant.token.name,
                holder_owner: connection.grant.token.owner.as_deref(),
                ask,
                content,
            });
        }
        let announced = match app.store.announce_all(app.now(), &news, &app.settings.bounds()).await {
            Ok(announced) => announced,
            Err(error) => vec![Err(error)],
        };
        let mut announced = announced.into_iter();
        let mut said = Vec::with_capacity(checked.len());
        for ask in checked {
            let Taken { ask, is_new, .. } = match ask {
                Ok(taken) => taken,
                Err(error) => {
                    said.push(Err(error));
                    continue;
                }
            };
            if let Some(announced) = announced.next() {
                said.push(self.concluded(&ask.id, is_new, announced).await);
            } else {
                // The database failed for all: the first was told, and the connection ends.
                if is_new {
                    app.open.forget(&ask.id);
                }
                said.push(Err(refusal(ErrorCode::Internal, "the database failed").into()));
            }
        }
        said
    }

    /// An ask that may be stored. What is to be known of it for answers is known from here on.
    async fn checked(&self, mut ask: AnnouncedAsk) -> Result<Taken, Said> {
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
        let owner = connection.grant.token.owner.as_deref();
        let is_new = app.open.note(&ask.id, &ask.content, &connection.instance, owner);
        Ok(Taken { ask, content, is_new })
    }

    /// What an announcement came to: who watches is told, and its holder.
    async fn concluded(
        &self,
        id: &str,
        is_new: bool,
        announced: Result<Announced, StoreError>,
    ) -> Result<(), Said> {
        let (app, connection) = (self.app, self.connection);
        let is_open = match &announced {
            Ok(Announced::Opened { .. } | Announced::Known(_)) => true,
            Ok(Announced::Settled(_) | Announced::ContentChanged(_) | Announced::Full(_)) => false,
            // What was noted before is right still.
            Ok(Announced::NotOwner) | Err(_) => !is_new,
        };
        if !is_open {
            app.open.forget(id);
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
                Err(Said::Ended(error, Box::new(Ended { ended })))
            }
            Announced::ContentChanged(ask) => {
                self.audit(Refused::ContentChanged, Some(&ask.id)).await;
                app.tell_settled(&app.shown(*ask, &connection.instance));
                let message = "this ask was open with other content; it is withdrawn";
                Err(refusal(ErrorCode::ContentChanged, message).into())
            }
            Announced::NotOwner => Err(self.not_owner(id).await),
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
