//! `GET /events`: live events by streaming fetch (inbox.md, API; S34, S37).

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, header},
    response::Response,
};
use handraise_api::{
    error::ErrorResponse,
    event::{SNAPSHOT, Snapshot},
};
use handraise_store::{Filter, StoreError};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::said::Refusals;
use super::{asks, sessions};
use crate::{
    access::Grant,
    events::{Crowded, Entered, START_AGAIN, coalesce, write},
    extract::Viewer,
    failure::Failure,
    inbox::App,
    metrics::Refused,
    settings::Caps,
    surfaces::Surface,
};

/// Asks in a snapshot.
const FIRST_PAGE: u32 = 50;
/// Frames within [`WINDOW`]; what comes faster is put together.
const FRAMES: usize = 4;
const WINDOW: Duration = Duration::from_secs(1);
/// A comment goes out when nothing else has for this long, so that both sides know that the other is there. A stream
/// whose reader has closed it ends by then.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a client may take to read a frame.
const PATIENCE: Duration = Duration::from_secs(30);
/// Events in one frame.
const MOST_EVENTS: usize = 1_000;

/// Live events as Server-Sent Events: `snapshot`, `ask.opened`, `ask.updated`, `ask.settled`, `session.updated`,
/// `session.message`, `session.clarification_requested`. `Last-Event-ID` resumes, or a fresh snapshot comes.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    tag = "events",
    params(("last-event-id" = Option<String>, Header, description = "The id of the last event that arrived")),
    responses(
        (status = 200, description = "the events", content_type = "text/event-stream", body = String),
        Refusals,
        (status = 429, description = "too many streams", body = ErrorResponse),
    ),
    security(("bearer" = [])),
)]
pub(crate) async fn stream(
    State(app): State<App>,
    Viewer(caller): Viewer,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let Caps { event_streams: most, token_event_streams: share, .. } = app.settings.caps;
    let entered = match app.events.enter(&app.access.origin(&caller.grant), most, share) {
        Ok(entered) => entered,
        Err(Crowded::All) => {
            app.metrics.refused(Refused::EventStreams);
            let message = format!("{most} event streams are open already; close a page");
            return Err(Failure::full(message, Some(KEEP_ALIVE)));
        }
        Err(Crowded::Token) => {
            app.metrics.refused(Refused::TokenEventStreams);
            let message = format!(
                "{share} event streams of this token and its pages are open already; close one, or use another token"
            );
            return Err(Failure::full(message, Some(KEEP_ALIVE)));
        }
    };
    let cursor =
        headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.trim().parse().ok());
    let (sender, frames) = mpsc::channel(1);
    let tasks = app.tasks.clone();
    let surface = app.surfaces.arrive(caller.grant.token.scope);
    tasks.spawn(feed(app, caller.grant, cursor, sender, (entered, surface)));
    let body = futures_util::stream::unfold(frames, async |mut frames: mpsc::Receiver<Bytes>| {
        frames.recv().await.map(|frame| (Ok::<_, Infallible>(frame), frames))
    });
    Response::builder()
        .header(header::CONTENT_TYPE, "text/event-stream")
        .header("x-accel-buffering", "no")
        .body(Body::from_stream(body))
        .map_err(|error| Failure::internal("the stream could not begin", &error))
}

/// Feeds one stream until it ends: by its reader, with its token, or with the inbox.
async fn feed(
    app: App,
    grant: Arc<Grant>,
    cursor: Option<u64>,
    sender: mpsc::Sender<Bytes>,
    _place: (Entered, Option<Surface>),
) {
    let ended = async {
        tokio::select! {
            () = grant.ended.cancelled() => {}
            () = app.shutdown.cancelled() => {}
            () = sender.closed() => {}
        }
    };
    tokio::select! {
        () = ended => {}
        () = write_events(&app, cursor, &sender) => {}
    }
}

async fn write_events(app: &App, mut cursor: Option<u64>, sender: &mpsc::Sender<Bytes>) {
    let mut latest = app.events.latest();
    let mut sent: VecDeque<Instant> = VecDeque::with_capacity(FRAMES);
    loop {
        latest.mark_unchanged();
        let kept = cursor.and_then(|cursor| app.events.after(cursor, MOST_EVENTS));
        let mut frame = String::new();
        match kept {
            Some(events) if events.is_empty() => {
                tokio::select! {
                    changed = latest.changed() => match changed {
                        Ok(()) => {
                            // Wait for the turn before looking: what comes meanwhile goes into the same frame.
                            pace(&mut sent).await;
                            continue;
                        }
                        Err(_) => return,
                    },
                    () = tokio::time::sleep(KEEP_ALIVE) => frame.push_str(":\n\n"),
                }
            }
            Some(events) if events.iter().any(|event| event.name == START_AGAIN) => {
                cursor = None;
                continue;
            }
            Some(events) => {
                cursor = events.last().map(|last| last.id);
                for event in coalesce(events) {
                    write(&mut frame, event.id, event.name, &event.data);
                }
            }
            None => {
                // What happens while the snapshot is read comes again after it: each event says everything of its
                // subject, so nothing is missed and the end is the same.
                let position = app.events.last_id();
                match snapshot(app).await {
                    Ok(text) => write(&mut frame, position, SNAPSHOT, &text),
                    Err(error) => {
                        tracing::error!(%error, "a snapshot could not be read");
                        return;
                    }
                }
                cursor = Some(position);
            }
        }
        pace(&mut sent).await;
        sent.push_back(Instant::now());
        match tokio::time::timeout(PATIENCE, sender.send(frame.into())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// Waits until one more frame fits into the window.
async fn pace(sent: &mut VecDeque<Instant>) {
    if sent.len() >= FRAMES
        && let Some(oldest) = sent.pop_front()
    {
        sleep_until(oldest + WINDOW).await;
    }
}

async fn snapshot(app: &App) -> Result<String, StoreError> {
    let page = app.store.open_asks(&Filter::default(), None, FIRST_PAGE).await?;
    let handraise_api::ask::AskList { asks, next_cursor } = asks::shown(app, page);
    let open = app.store.count_open().await?;
    let snapshot = Snapshot { asks, open, next_cursor, sessions: sessions::all(app).await? };
    Ok(serde_json::to_string(&snapshot).unwrap_or_else(|error| {
        tracing::error!(%error, "a snapshot could not be written");
        "{}".into()
    }))
}
