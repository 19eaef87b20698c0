//! What a connected holder says, frame by frame.

use std::{sync::Arc, time::Duration};

use axum::extract::ws::{Message, WebSocket};
use futures_util::{FutureExt as _, StreamExt as _, stream::SplitStream};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{
        AskSettled, AsksDeclined, Frame, FrameKind, RefusedAsk, SessionMessage, SessionUpdated,
        SnapshotTaken, action,
    },
    session::SessionState,
};
use handraise_core::AskId;
use handraise_store::{Appended, Claim, Full, Settled};

use super::{
    End, cut, payload,
    rate::Rate,
    read,
    records::{RECORDS_AT_ONCE, RECORDS_PER_SECOND},
    refused::Said,
    short,
    snapshot::Snapshot,
};
use crate::{
    agents, answering,
    hub::{Connection, Reply, Slot, refusal},
    inbox::App,
    metrics::Refused,
};

/// Longest path of a working directory that is stored, in bytes (S39).
const LONGEST_PATH: usize = 4_096;
/// Most frames that are taken together: an ask that opens waits for all that open with it, and what comes later waits for
/// all of them.
const MOST_TOGETHER: usize = 8;
/// So many bytes of frames are not added to.
const MOST_BYTES_TOGETHER: usize = 64 * 1024;

/// The conversation with one holder.
pub(super) struct Talk<'a> {
    pub(super) app: &'a App,
    pub(super) connection: &'a Arc<Connection>,
    slot: &'a Slot,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) rate: Rate,
    pub(super) records: Rate,
}

impl<'a> Talk<'a> {
    pub(super) fn new(app: &'a App, connection: &'a Arc<Connection>, slot: &'a Slot) -> Self {
        let limits = app.settings.limits;
        let now = app.now().boot.as_millis();
        let rate = Rate::new(limits.open_asks, limits.asks_per_second, now);
        let records = Rate::new(RECORDS_AT_ONCE, RECORDS_PER_SECOND, now);
        Self { app, connection, slot, snapshot: None, rate, records }
    }

    pub(super) async fn listen(&mut self, stream: &mut SplitStream<WebSocket>, silence: Duration) -> End {
        loop {
            let frames = tokio::select! {
                () = self.connection.closed.cancelled() => return End::Closed,
                () = self.connection.grant.ended.cancelled() => return End::Closed,
                first = tokio::time::timeout(silence, stream.next()) => ready(stream, first.ok().flatten()),
            };
            let (frames, end) = frames;
            if let Some(end) = self.take_all(frames).await.err().or(end) {
                if matches!(end, End::Refused(_)) {
                    self.app.metrics.refused(Refused::HolderFrames);
                }
                return end;
            }
        }
    }

    /// Takes frames that have come one after the other.
    async fn take_all(&mut self, frames: Vec<Frame>) -> Result<(), End> {
        for turn in turns(frames) {
            match turn {
                Turn::Response(Frame { id, payload, error, .. }) => {
                    let id = id.as_deref().unwrap_or_default();
                    if !self.connection.answered(id, Reply { payload, error }) {
                        self.audit(Refused::StrayResponses, None).await;
                    }
                }
                Turn::Opened(frames) => self.take(&frames).await?,
                Turn::Other(frame) => self.take(&[frame]).await?,
            }
        }
        Ok(())
    }

    /// Takes one frame, or several that open asks.
    async fn take(&mut self, frames: &[Frame]) -> Result<(), End> {
        // Everything that an instance says is taken up one after the other, and only while it is the one (S9).
        let slot = self.slot;
        let order = slot.order.lock().await;
        if !slot.is_current(self.connection) {
            self.audit(Refused::StaleEpoch, None).await;
            return Err(End::Closed);
        }
        let outcomes = match frames {
            [frame] if frame.action != action::ASK_OPENED => vec![self.taken(frame).await],
            opened => self.opened(opened).await.into_iter().map(|said| said.map(all_taken)).collect(),
        };
        drop(order);
        for (frame, outcome) in frames.iter().zip(outcomes) {
            let answer = match outcome {
                Ok(refused) => Ok(refused),
                Err(Said::Error(error)) => Err((error, None)),
                Err(Said::Ended(error, ended)) => Err((error, Some(ended))),
                Err(Said::Fatal(error)) => return Err(error.into()),
            };
            if frame.kind == FrameKind::Request {
                let id = frame.id.as_deref().unwrap_or_default();
                match answer {
                    Ok(refused) => {
                        let taken = SnapshotTaken { success: true, refused };
                        self.connection.respond(id, &frame.action, Some(&taken), None);
                    }
                    Err((error, ended)) => {
                        self.connection.respond(id, &frame.action, ended.as_ref(), Some(error));
                    }
                }
            }
        }
        Ok(())
    }

    /// What a frame that opens no ask comes to.
    async fn taken(&mut self, frame: &Frame) -> Result<Vec<RefusedAsk>, Said> {
        match frame.action.as_str() {
            action::SNAPSHOT => self.snapshot(frame).await,
            action::ASK_SETTLED => self.settled(frame).await.map(all_taken),
            action::SESSION_UPDATED => self.session_updated(frame).await.map(all_taken),
            action::SESSION_MESSAGE => self.session_message(frame).await.map(all_taken),
            action::RECORDS_APPEND => self.append_records(frame).await.map(all_taken),
            action::ASKS_DECLINED => self.declined(frame).map(all_taken).map_err(Said::from),
            unknown => {
                let unknown: String = unknown.chars().take(64).collect();
                let message = format!("this inbox knows no action `{unknown}`");
                Err(Said::Error(refusal(ErrorCode::UnknownAction, message)))
            }
        }
    }

    async fn settled(&mut self, frame: &Frame) -> Result<(), Said> {
        let ended: AskSettled = payload(frame)?;
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.name([ended.pending_id.as_str()])?;
        }
        self.note_settled(&ended).await
    }

    pub(super) async fn note_settled(&self, ended: &AskSettled) -> Result<(), Said> {
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

/// The frames that are there already, from this message on, and why there will be no others after them.
fn ready(
    stream: &mut SplitStream<WebSocket>,
    first: Option<Result<Message, axum::Error>>,
) -> (Vec<Frame>, Option<End>) {
    let (mut frames, mut bytes) = (Vec::new(), 0);
    let mut next = Some(first);
    while let Some(message) = next {
        match message {
            Some(Ok(Message::Text(text))) => match read(&text) {
                Ok(frame) => {
                    bytes += text.len();
                    frames.push(frame);
                }
                Err(end) => return (frames, Some(end)),
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_))) => {
                let end = End::Refused(refusal(ErrorCode::BadRequest, "frames are JSON text"));
                return (frames, Some(end));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return (frames, Some(End::Gone)),
        }
        if frames.is_empty() || frames.len() >= MOST_TOGETHER || bytes >= MOST_BYTES_TOGETHER {
            break;
        }
        next = stream.next().now_or_never();
    }
    (frames, None)
}

/// What is done at once.
#[derive(Debug)]
enum Turn {
    /// A response is handed to whoever waits for it.
    Response(Frame),
    /// Asks are opened together.
    Opened(Vec<Frame>),
    /// A frame of another kind is taken alone.
    Other(Frame),
}

/// The frames in the order in which they are taken: as they came, except that a response passes those that open asks. What
/// a response answers was asked before, of an ask or a session that is there, and somebody waits for it. It passes nothing
/// else: how an ask ended is known in the order in which the holder said it.
fn turns(frames: Vec<Frame>) -> Vec<Turn> {
    let (mut turns, mut opened) = (Vec::new(), Vec::new());
    for frame in frames {
        if frame.kind == FrameKind::Response {
            turns.push(Turn::Response(frame));
        } else if frame.action == action::ASK_OPENED {
            opened.push(frame);
        } else {
            if !opened.is_empty() {
                turns.push(Turn::Opened(std::mem::take(&mut opened)));
            }
            turns.push(Turn::Other(frame));
        }
    }
    if !opened.is_empty() {
        turns.push(Turn::Opened(opened));
    }
    turns
}

/// Of what is no snapshot nothing is refused beside the whole.
fn all_taken((): ()) -> Vec<RefusedAsk> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames by their first letters: openings, responses, how asks ended, and a snapshot.
    #[track_caller]
    fn check(came: &[&str], taken: &[&[&str]]) {
        let frame = |id: &&str| {
            let (kind, action) = match id.as_bytes()[0] {
                b'o' => (FrameKind::Request, action::ASK_OPENED),
                b'e' => (FrameKind::Event, action::ASK_OPENED),
                b'r' => (FrameKind::Response, action::RESPOND),
                b'q' => (FrameKind::Response, action::ASK_OPENED),
                b's' => (FrameKind::Request, action::ASK_SETTLED),
                _ => (FrameKind::Request, action::SNAPSHOT),
            };
            Frame { id: Some((*id).to_owned()), kind, action: action.to_owned(), payload: None, error: None }
        };
        let turns = turns(came.iter().map(frame).collect());
        let ids = turns.into_iter().map(|turn| match turn {
            Turn::Response(frame) | Turn::Other(frame) => vec![frame.id.unwrap()],
            Turn::Opened(frames) => frames.into_iter().map(|frame| frame.id.unwrap()).collect(),
        });
        assert_eq!(ids.collect::<Vec<_>>(), taken, "{came:?}");
    }

    #[test]
    fn a_response_passes_asks_that_open_and_nothing_else() {
        check(&[], &[]);
        check(&["o1", "r1", "e2", "q2", "o3"], &[&["r1"], &["q2"], &["o1", "e2", "o3"]]);
        check(&["s1", "r1"], &[&["s1"], &["r1"]]);
        check(&["o1", "s1", "r1", "o2", "r2"], &[&["o1"], &["s1"], &["r1"], &["r2"], &["o2"]]);
        check(&["o1", "x", "o2", "s1", "s2"], &[&["o1"], &["x"], &["o2"], &["s1"], &["s2"]]);
    }
}
