//! What a connected holder says, frame by frame.

use std::{collections::HashSet, sync::Arc, time::Duration};

use axum::extract::ws::{Message, WebSocket};
use futures_util::{StreamExt as _, stream::SplitStream};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{
        AnnouncedAsk, AskOpened, AskSettled, AsksDeclined, Ended, Frame, FrameKind, HolderSettlement,
        SessionMessage, SessionUpdated, SnapshotPart, Success, action,
    },
    session::SessionState,
    words::Who,
};
use handraise_core::{
    AskId,
    form::{MAX_CHOICES, MAX_PROPERTIES},
};
use handraise_store::{Announced, Announcement, Appended, Claim, Full, Settled, StoreError};

use super::{End, cut, payload, rate::Rate, read, short};
use crate::{
    agents, answering,
    hub::{Connection, Reply, Slot, refusal},
    inbox::App,
    metrics::Refused,
};

/// Longest id that is quoted back.
const LONGEST_ID: usize = 64;
/// Longest path of a working directory that is stored, in bytes (S39).
const LONGEST_PATH: usize = 4_096;
/// Largest content of one ask, in bytes of JSON: what a form's schema and message may have (form.md), written out. A
/// page has to show it whole, and the first page of asks goes to every stream (S37).
const LARGEST_ASK: usize = 2 * 1024 * 1024;
/// Most ids that one snapshot may name. A holder has far fewer asks, and settlements that it still tells of (S37).
const MOST_NAMED: usize = 100_000;

/// A snapshot under way: what it has named so far.
struct Snapshot {
    next: u32,
    named: HashSet<String>,
}

impl Snapshot {
    /// Notes that asks are named. What is no id names none of ours.
    fn name<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) -> Result<(), ErrorBody> {
        for id in ids {
            if AskId::new(id).is_err() || self.named.contains(id) {
                continue;
            }
            if self.named.len() >= MOST_NAMED {
                let message = format!("a snapshot names at most {MOST_NAMED} asks");
                return Err(refusal(ErrorCode::LimitExceeded, message));
            }
            self.named.insert(id.to_owned());
        }
        Ok(())
    }
}

/// The conversation with one holder.
pub(super) struct Talk<'a> {
    app: &'a App,
    connection: &'a Arc<Connection>,
    slot: &'a Slot,
    snapshot: Option<Snapshot>,
    rate: Rate,
}

impl<'a> Talk<'a> {
    pub(super) fn new(app: &'a App, connection: &'a Arc<Connection>, slot: &'a Slot) -> Self {
        let limits = app.settings.limits;
        let rate = Rate::new(limits.open_asks, limits.asks_per_second, app.now().boot.as_millis());
        Self { app, connection, slot, snapshot: None, rate }
    }

    pub(super) async fn listen(&mut self, stream: &mut SplitStream<WebSocket>, silence: Duration) -> End {
        loop {
            let frame = tokio::select! {
                () = self.connection.closed.cancelled() => return End::Closed,
                () = self.connection.grant.ended.cancelled() => return End::Closed,
                message = tokio::time::timeout(silence, stream.next()) => match message {
                    Ok(Some(Ok(Message::Text(text)))) => read(&text),
                    Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                    Ok(Some(Ok(Message::Binary(_)))) => {
                        Err(End::Refused(refusal(ErrorCode::BadRequest, "frames are JSON text")))
                    }
                    Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => Err(End::Gone),
                },
            };
            let taken = match frame {
                Ok(frame) => self.take(frame).await,
                Err(end) => Err(end),
            };
            if let Err(end) = taken {
                if matches!(end, End::Refused(_)) {
                    self.app.metrics.refused(Refused::HolderFrames);
                }
                return end;
            }
        }
    }

    async fn take(&mut self, frame: Frame) -> Result<(), End> {
        if frame.kind == FrameKind::Response {
            let Frame { id, payload, error, .. } = frame;
            if !self.connection.answered(id.as_deref().unwrap_or_default(), Reply { payload, error }) {
                self.audit(Refused::StrayResponses, None).await;
            }
            return Ok(());
        }
        // Everything that an instance says is taken up one after the other, and only while it is the one (S9).
        let slot = self.slot;
        let order = slot.order.lock().await;
        if !slot.is_current(self.connection) {
            self.audit(Refused::StaleEpoch, None).await;
            return Err(End::Closed);
        }
        let outcome = match frame.action.as_str() {
            action::SNAPSHOT => self.snapshot(&frame).await,
            action::ASK_OPENED => self.opened(&frame).await,
            action::ASK_SETTLED => self.settled(&frame).await,
            action::SESSION_UPDATED => self.session_updated(&frame).await,
            action::SESSION_MESSAGE => self.session_message(&frame).await,
            action::ASKS_DECLINED => self.declined(&frame).map_err(Said::from),
            unknown => {
                let unknown: String = unknown.chars().take(64).collect();
                let message = format!("this inbox knows no action `{unknown}`");
                Err(Said::Error(refusal(ErrorCode::UnknownAction, message)))
            }
        };
        drop(order);
        let error = match outcome {
            Ok(()) => None,
            Err(Said::Error(error)) => Some((error, None)),
            Err(Said::Ended(error, ended)) => Some((error, Some(ended))),
            Err(Said::Fatal(error)) => return Err(error.into()),
        };
        if frame.kind == FrameKind::Request {
            let id = frame.id.as_deref().unwrap_or_default();
            match error {
                None => {
                    self.connection.respond(id, &frame.action, Some(&Success { success: true }), None);
                }
                Some((error, ended)) => {
                    self.connection.respond(id, &frame.action, ended.as_ref(), Some(error));
                }
            }
        }
        Ok(())
    }

    /// One part of the open asks and unacknowledged settlements. Only the last part withdraws what none has named.
    async fn snapshot(&mut self, frame: &Frame) -> Result<(), Said> {
        let part: SnapshotPart = payload(frame)?;
        if part.seq == 0 {
            self.snapshot = Some(Snapshot { next: 0, named: HashSet::new() });
        }
        let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| snapshot.next == part.seq) else {
            let message = format!("part {} of the snapshot does not follow the one before", part.seq);
            return Err(refusal(ErrorCode::BadRequest, message).into());
        };
        snapshot.next += 1;
        snapshot.name(part.asks.iter().map(|ask| ask.id.as_str()))?;
        snapshot.name(part.settlements.iter().map(|ended| ended.pending_id.as_str()))?;
        // The part as a whole is taken; what is refused of it is in the log and counted.
        for ended in &part.settlements {
            refused_of_part(&ended.pending_id, self.note_settled(ended).await)?;
        }
        for ask in part.asks {
            let id = ask.id.clone();
            refused_of_part(&id, self.announce(ask).await)?;
        }
        if part.last {
            self.reconcile().await?;
        }
        Ok(())
    }

    async fn reconcile(&mut self) -> Result<(), StoreError> {
        let Some(Snapshot { named, .. }) = self.snapshot.take() else { return Ok(()) };
        let mut gone = Vec::new();
        for (id, unresolved) in self.app.store.unsettled_of(&self.connection.instance).await? {
            if named.contains(&id) {
                continue;
            }
            if unresolved {
                // Its holder may still know what became of the submission.
                gone.push(id);
                continue;
            }
            let ending = answering::withdrawn(self.app, "not_in_snapshot");
            let owner = Some(self.connection.instance.as_str());
            if let Settled::Now(ask) = self.app.store.settle(&id, owner, &ending).await? {
                self.app.tell_settled(&self.app.shown(*ask, &self.connection.instance));
            }
        }
        if self.connection.epoch > 1 {
            self.app.tell_connection(&self.connection.instance).await;
        }
        let query = answering::ask_for_verdicts(Arc::clone(self.app), Arc::clone(self.connection), gone);
        self.app.tasks.spawn(query);
        Ok(())
    }

    async fn opened(&mut self, frame: &Frame) -> Result<(), Said> {
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

    async fn announce(&mut self, mut ask: AnnouncedAsk) -> Result<(), Said> {
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

    /// This holder, or all that come with its token, have as much in here as they may have (S37).
    fn full(&self, full: Full) -> Said {
        let bounds = self.app.settings.bounds();
        let (counter, setting, message) = match full {
            Full::OpenAsks => (
                Refused::HolderAsks,
                "open_asks",
                format!("this holder has {} asks open, the most it may", bounds.open_asks),
            ),
            Full::OpenBytes => (
                Refused::HolderAsks,
                "open_bytes",
                format!("this holder's open asks would have more than {} bytes", bounds.open_bytes),
            ),
            Full::SessionOpenAsks => (
                Refused::HolderAsks,
                "session_open_asks",
                format!("this session has {} asks open, the most it may", bounds.session_open_asks),
            ),
            Full::TokenOpenAsks => (
                Refused::TokenAsks,
                "token_open_asks",
                format!(
                    "holders with this token have {} asks open, the most they may",
                    bounds.token_open_asks
                ),
            ),
            Full::TokenAsks => (
                Refused::TokenAsks,
                "token_asks",
                format!("{} asks of this token are kept, the most there may be", bounds.token_asks),
            ),
            Full::TokenBytes => (
                Refused::TokenBytes,
                "token_bytes",
                format!(
                    "asks and transcripts of this token would have more than {} bytes",
                    bounds.token_bytes
                ),
            ),
            Full::TokenSessions => (
                Refused::TokenSessions,
                "token_sessions",
                format!("{} sessions of this token are kept, the most there may be", bounds.token_sessions),
            ),
            Full::TokenInstances => (
                Refused::TokenInstances,
                "token_instances",
                format!("{} holders of this token are kept, the most there may be", bounds.token_instances),
            ),
        };
        self.app.metrics.refused(counter);
        let message = format!("{message}; limits.{setting} of the inbox says so");
        refusal(ErrorCode::LimitExceeded, message).into()
    }

    async fn not_owner(&self, what: &str) -> Said {
        let what: String = what.chars().take(LONGEST_ID).collect();
        self.audit(Refused::NotOwner, Some(&what)).await;
        refusal(ErrorCode::NotOwner, format!("{what} belongs to another holder")).into()
    }

    /// Leaves a trace of what a holder may not say (S9).
    async fn audit(&self, what: Refused, about: Option<&str>) {
        let connection = self.connection;
        self.app.audit(what, &connection.grant, Some(&connection.instance), about).await;
    }

    async fn settled(&mut self, frame: &Frame) -> Result<(), Said> {
        let ended: AskSettled = payload(frame)?;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.name([ended.pending_id.as_str()])?;
        }
        self.note_settled(&ended).await
    }

    async fn note_settled(&self, ended: &AskSettled) -> Result<(), Said> {
        if let Some(winner) = &ended.submission_id {
            // Most often its response came a moment ago, and is being written.
            self.connection.settled_by(winner).await;
            if self.connection.has_ended(&ended.pending_id, winner) {
                return Ok(());
            }
        }
        match answering::settle_by_holder(self.app, &self.connection.instance, ended).await? {
            // An ask that the inbox never heard of ended before it could be announced: there is nothing to show.
            Settled::Now(_) | Settled::Already(_) | Settled::Unknown => Ok(()),
            Settled::NotOwner => Err(self.not_owner(&ended.pending_id).await),
        }
    }

    async fn session_updated(&self, frame: &Frame) -> Result<(), Said> {
        let mut said: SessionUpdated = payload(frame)?;
        if AskId::new(said.session_id.as_str()).is_err() {
            return Err(refusal(ErrorCode::BadRequest, "a session's id is no id").into());
        }
        said.agent = short(&said.agent).to_owned();
        said.title = said.title.as_deref().map(|title| short(title).to_owned());
        said.cwd = said.cwd.as_deref().map(|cwd| cut(cwd, LONGEST_PATH).to_owned());
        said.stop_reason = said.stop_reason.as_deref().map(|reason| short(reason).to_owned());
        let (app, connection) = (self.app, self.connection);
        let name = &connection.grant.token.name;
        let bounds = app.settings.bounds();
        match app.store.update_session(app.now(), &connection.instance, name, &said, &bounds).await? {
            Claim::Ours => {}
            Claim::NotOwner => return Err(self.not_owner(&said.session_id).await),
            Claim::Full => return Err(self.full(Full::TokenSessions)),
        }
        app.tell_session(Some(&said.session_id));
        // One that has ended takes no prompt; its own stays for whoever asks what became of it.
        if said.state != SessionState::Ended {
            agents::session_is_there(app, connection, &said.session_id);
        }
        Ok(())
    }

    fn declined(&self, frame: &Frame) -> Result<(), ErrorBody> {
        let AsksDeclined { counts } = payload(frame)?;
        for (reason, count) in counts {
            self.app.metrics.declined(&reason, count);
        }
        Ok(())
    }

    async fn session_message(&self, frame: &Frame) -> Result<(), Said> {
        let SessionMessage { message } = payload(frame)?;
        match self.app.append(&self.connection.instance, &message).await? {
            Appended::New(_) | Appended::Known => Ok(()),
            Appended::NotOwner => Err(self.not_owner(&message.session_id).await),
            Appended::Full => Err(self.full(Full::TokenBytes)),
        }
    }
}

fn refused_of_part(ask: &str, outcome: Result<(), Said>) -> Result<(), StoreError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Said::Fatal(error)) => Err(error),
        Err(Said::Error(error) | Said::Ended(error, _)) => {
            tracing::warn!(ask.id = short(ask), code = ?error.code, "an ask of a snapshot is refused");
            Ok(())
        }
    }
}

/// What a frame came to, when it was not simply taken up.
enum Said {
    Error(ErrorBody),
    Ended(ErrorBody, Ended),
    Fatal(StoreError),
}

impl From<ErrorBody> for Said {
    fn from(error: ErrorBody) -> Self {
        Self::Error(error)
    }
}

impl From<StoreError> for Said {
    fn from(error: StoreError) -> Self {
        Self::Fatal(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s37_a_snapshot_names_a_bounded_number_of_asks() {
        let mut snapshot = Snapshot { next: 0, named: HashSet::new() };
        snapshot.name(["x".repeat(65).as_str(), "a b"]).unwrap();
        assert!(snapshot.named.is_empty(), "what is no id is not kept");
        let ids: Vec<String> = (0..MOST_NAMED).map(|n| n.to_string()).collect();
        for _ in 0..2 {
            snapshot.name(ids.iter().map(String::as_str)).unwrap();
        }
        let refused = snapshot.name(["one-more"]).unwrap_err();
        assert_eq!((refused.code, snapshot.named.len()), (ErrorCode::LimitExceeded, MOST_NAMED));
    }
}
