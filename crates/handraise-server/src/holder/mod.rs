//! One connection of a holder, from its hello to its loss (acp.md, "Holder stream"; S9).

mod announcing;
mod news;
mod rate;
mod records;
mod refused;
mod snapshot;
mod talk;

use std::{sync::Arc, time::Duration};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::{SinkExt as _, StreamExt as _, stream::SplitStream};
use handraise_api::{
    error::{ErrorBody, ErrorCode},
    frame::{Frame, FrameKind, Hello, PROTOCOL, Welcome, action},
};
use handraise_store::StoreError;
use handraise_transport::ids;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;
use tokio::sync::mpsc;

use self::{news::News, talk::Talk};
use crate::{
    access::{Grant, hash, hex},
    hub::{Connection, Outgoing, Slot, refusal},
    inbox::App,
    metrics::Refused,
};

/// How long a holder has to say hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);
/// How long a holder may take to read one frame.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// Longest self-given name that is stored, in bytes (S39).
const LONGEST_NAME: usize = 128;

/// Why a connection is ended by the inbox.
#[derive(Debug)]
enum End {
    /// The other side closed it, or it broke.
    Gone,
    /// It said something that ends the conversation.
    Refused(ErrorBody),
    /// It may not speak any more.
    Closed,
    /// The database failed: nothing can be acknowledged.
    Store(StoreError),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Serves one connection until it ends.
pub(crate) async fn serve(app: App, grant: Arc<Grant>, socket: WebSocket) {
    let (mut sink, mut stream) = socket.split();
    let hello = tokio::select! {
        () = app.shutdown.cancelled() => return,
        hello = tokio::time::timeout(HELLO_PATIENCE, next_frame(&mut stream)) => hello,
    };
    let Ok(Ok(frame)) = hello else { return };
    let (connection, queue, slot, news) = match greet(&app, &grant, &frame).await {
        Ok(greeted) => greeted,
        Err(end) => {
            let error = match end {
                End::Refused(error) => error,
                End::Store(error) => {
                    tracing::error!(%error, "a holder could not be greeted");
                    refusal(ErrorCode::Internal, crate::failure::of_store(&error))
                }
                End::Gone | End::Closed => return,
            };
            let id = frame.id.clone();
            let action = action::WELCOME.to_owned();
            let frame = Frame { id, kind: FrameKind::Response, action, payload: None, error: Some(error) };
            if let Ok(text) = serde_json::to_string(&frame) {
                let _ = tokio::time::timeout(WRITE_PATIENCE, sink.send(Message::text(text))).await;
            }
            return;
        }
    };
    tracing::info!(
        holder.instance = connection.instance,
        holder.kind = ?connection.kind,
        holder.token = grant.token.name,
        holder.epoch = connection.epoch,
        "a holder is connected"
    );
    let silence = app.settings.timing.holder_silence;
    let writer = tokio::spawn(write(sink, queue, Arc::clone(&connection), news, silence / 3));
    let end = Talk::new(&app, &connection, &slot).listen(&mut stream, silence).await;
    match &end {
        End::Store(error) => tracing::error!(%error, "a holder's frame could not be taken up"),
        End::Refused(error) => tracing::warn!(code = ?error.code, %error, "a holder is disconnected"),
        End::Gone | End::Closed => {}
    }
    // The writer first: then it is certain which requests were begun.
    connection.closed.cancel();
    let _ = writer.await;
    let order = slot.order.lock().await;
    let lost = app.hub.disconnect(&connection);
    if lost {
        let now = app.now();
        if let Err(error) = app.store.lose_instance(now, &connection.instance, connection.epoch).await {
            tracing::error!(%error, "the loss of a holder could not be noted");
        }
    }
    drop(order);
    connection.fail_waiting();
    if lost {
        tracing::info!(holder.instance = connection.instance, "a holder is lost");
        if !app.shutdown.is_cancelled() {
            app.tell_connection(&connection.instance).await;
        }
    }
}

/// Reads the next frame. Pings and the like are not frames.
async fn next_frame(stream: &mut SplitStream<WebSocket>) -> Result<Frame, End> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => return read(&text),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_))) => {
                return Err(End::Refused(refusal(ErrorCode::BadRequest, "frames are JSON text")));
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
        }
    }
}

fn read(text: &str) -> Result<Frame, End> {
    serde_json::from_str(text).map_err(|error| {
        // Only the place is told: the text may hold a question.
        let message = format!("that is no frame: line {}, column {}", error.line(), error.column());
        End::Refused(refusal(ErrorCode::BadRequest, message))
    })
}

fn payload<T: DeserializeOwned>(frame: &Frame) -> Result<T, ErrorBody> {
    let text = frame.payload.as_ref().map_or("null", |payload| payload.get());
    serde_json::from_str(text).map_err(|error| {
        let action: String = frame.action.chars().take(64).collect();
        let message = format!("the payload of `{action}` cannot be read at column {}", error.column());
        refusal(ErrorCode::BadRequest, message)
    })
}

fn short(text: &str) -> &str {
    cut(text, LONGEST_NAME)
}

fn cut(text: &str, longest: usize) -> &str {
    text.get(..text.floor_char_boundary(longest)).unwrap_or_default()
}

/// Finds out who dials, puts the connection in place and sends the welcome; what changes of it from then on is news.
async fn greet(
    app: &App,
    grant: &Arc<Grant>,
    frame: &Frame,
) -> Result<(Arc<Connection>, mpsc::Receiver<Outgoing>, Arc<Slot>, News), End> {
    if frame.action != action::HELLO || frame.kind != FrameKind::Request {
        return Err(End::Refused(refusal(ErrorCode::BadRequest, "the first frame is holder.hello")));
    }
    let hello: Hello = payload(frame).map_err(End::Refused)?;
    if hello.protocol != PROTOCOL {
        let message = format!("this inbox speaks protocol {PROTOCOL}, not {}", hello.protocol);
        return Err(End::Refused(refusal(ErrorCode::BadRequest, message)));
    }
    let said = handraise_store::Hello {
        token: &grant.token.id,
        kind: hello.kind,
        version: short(&hello.version),
        host: short(&hello.host),
    };
    let known = match &hello.instance {
        Some(instance) => app.store.instance(instance).await?,
        None => None,
    };
    let mut fresh_secret = None;
    let instance = if let Some(known) = known {
        let proof = hex(&hash(hello.resume_secret.as_deref().unwrap_or_default()));
        let proven = bool::from(proof.as_bytes().ct_eq(known.resume_hash.as_bytes()));
        if !proven || known.token != grant.token.id {
            app.audit(Refused::NotOwner, grant, Some(&known.id), None).await;
            let message = "this instance belongs to another holder, or its secret is wrong";
            return Err(End::Refused(refusal(ErrorCode::NotOwner, message)));
        }
        known.id
    } else {
        let secret = ids::secret().map_err(|error| {
            tracing::error!(%error, "no resume secret could be made");
            End::Refused(refusal(ErrorCode::Internal, "no secret could be made"))
        })?;
        let instance = ids::mint();
        let bounds = app.settings.bounds();
        if !app.store.add_instance(&instance, &hex(&hash(&secret)), said, &bounds).await? {
            app.metrics.refused(Refused::TokenInstances);
            let message = format!(
                "{} holders of this token are kept, the most there may be; they are forgotten a week after they left",
                bounds.token_instances
            );
            return Err(End::Refused(refusal(ErrorCode::LimitExceeded, message)));
        }
        fresh_secret = Some(secret);
        instance
    };
    let slot = app.hub.slot(&instance);
    let order = slot.order.lock().await;
    let epoch = if fresh_secret.is_some() {
        1
    } else {
        app.store.resume_instance(app.now(), &instance, said).await?.ok_or(End::Closed)?
    };
    let closed = app.shutdown.child_token();
    let (connection, queue) = Connection::new(instance.clone(), epoch, hello.kind, Arc::clone(grant), closed);
    let (news, flags, operators) = News::after_welcome(&app.surfaces, &app.flags);
    let welcome = Welcome {
        protocol: PROTOCOL,
        instance,
        resume_secret: fresh_secret,
        epoch,
        flags,
        limits: app.settings.limits,
        operators: Some(operators),
    };
    // Queued before the connection is in place, so that nothing comes before it.
    connection.respond(frame.id.as_deref().unwrap_or_default(), action::WELCOME, Some(&welcome), None);
    slot.connect(Arc::clone(&connection));
    drop(order);
    Ok((connection, queue, slot, news))
}

/// Writes frames and news until the connection is closed, and pings a holder that says nothing.
async fn write(
    mut sink: futures_util::stream::SplitSink<WebSocket, Message>,
    mut queue: mpsc::Receiver<Outgoing>,
    connection: Arc<Connection>,
    mut news: News,
    ping_every: Duration,
) {
    let mut ping = tokio::time::interval(ping_every.max(Duration::from_millis(10)));
    ping.reset();
    loop {
        let message = tokio::select! {
            biased;
            () = connection.closed.cancelled() => break,
            outgoing = queue.recv() => match outgoing {
                Some(outgoing) => {
                    connection.begin(&outgoing);
                    Message::text(outgoing.text)
                }
                None => break,
            },
            text = news.next() => Message::text(text),
            _ = ping.tick() => Message::Ping(axum::body::Bytes::new()),
        };
        let sent = tokio::select! {
            sent = tokio::time::timeout(WRITE_PATIENCE, sink.send(message)) => sent,
            // A socket that takes nothing must not hold up what waits for this connection's end.
            () = connection.closed.cancelled() => break,
        };
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => break,
        }
    }
    connection.closed.cancel();
    let goodbye = Message::Close(Some(CloseFrame { code: close_code::AWAY, reason: "".into() }));
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.send(goodbye)).await;
}
