//! The agent's stdio as frames: bounded lines in, noise out, credit for what is handed on.
//!
//! The frames go to the protocol crate through its `Channel`, one parse per line. Its `Lines` would answer -32700 to
//! every line of noise, and would queue without bound.

use std::{borrow::Cow, sync::Arc};

use agent_client_protocol::{Channel, RawJsonRpcMessage, TransportFrame};
use futures_util::StreamExt as _;
use handraise_transport::{
    escape,
    limited::Limited,
    lines::{Line, Lines, LinesError, MAX_PROTOCOL_LINE},
    surrogates,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::link::Link;

/// Why no more frames come.
#[derive(Debug)]
pub(crate) enum Closed {
    /// The agent closed its stdout.
    End,
    /// It sent a line beyond the limit.
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Reading failed.
    Failed(std::io::Error),
}

/// Both directions, as tasks.
pub(crate) struct Connection {
    /// For the protocol crate. When that drops it, the rest is written and the agent's stdin is closed.
    pub(crate) channel: Channel,
    /// Why the reading ended.
    pub(crate) closed: oneshot::Receiver<Closed>,
    /// Ends when everything is written.
    pub(crate) writer: JoinHandle<()>,
}

/// Starts reading and writing.
pub(crate) fn connect(
    from_agent: impl AsyncRead + Send + Unpin + 'static,
    to_agent: impl AsyncWrite + Send + Unpin + 'static,
    link: &Arc<Link>,
) -> Connection {
    let (ours, channel) = Channel::duplex();
    let (frames_out, frames_in) = ours.into_parts();
    let (closed_sender, closed) = oneshot::channel();
    let reader_link = Arc::clone(link);
    tokio::spawn(async move {
        let reason = read(from_agent, &frames_in, &reader_link).await;
        reader_link.died();
        // The driver may be gone; then nobody wants to know.
        let _ = closed_sender.send(reason);
    });
    let (queue, queued) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(to_agent, queued, Arc::clone(link)));
    tokio::spawn(queue_frames(frames_out, queue, Arc::clone(link)));
    Connection { channel, closed, writer }
}

type FrameSender = futures_channel::mpsc::UnboundedSender<TransportFrame>;
type FrameReceiver = futures_channel::mpsc::UnboundedReceiver<TransportFrame>;

async fn read(from_agent: impl AsyncRead + Unpin, frames: &FrameSender, link: &Link) -> Closed {
    let mut lines = Lines::new(from_agent, MAX_PROTOCOL_LINE);
    let mut noise = Limited::new(Arc::clone(link.clock()));
    loop {
        link.room().await;
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Closed::End,
            Err(LinesError::TooLong { limit }) => return Closed::TooLong { limit },
            Err(LinesError::Io(error)) => return Closed::Failed(error),
        };
        let Some(message) = parse(&line) else {
            if let Some(left_out) = noise.admit() {
                let text = line.lossy();
                tracing::warn!(
                    left_out,
                    bytes = text.len(),
                    "skipped a line of the agent that is no JSON-RPC message"
                );
                // Half a frame is noise too, and may hold a question.
                tracing::debug!(line = escape::shortened(&text, 200), "the skipped line");
            }
            continue;
        };
        link.sign_of_life();
        if !matches!(message, RawJsonRpcMessage::Response(_)) {
            link.hand_out().await;
        }
        if frames.unbounded_send(TransportFrame::Single(message)).is_err() {
            return Closed::End;
        }
    }
}

fn parse(line: &Line) -> Option<RawJsonRpcMessage> {
    let text = line.text().ok()?;
    // Most noise is no object; the protocol crate would copy the whole line to report it.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    message(text).or_else(|| match surrogates::mended(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(mended) => message(&mended),
    })
}

fn message(text: &str) -> Option<RawJsonRpcMessage> {
    match TransportFrame::parse_json(text) {
        TransportFrame::Single(message) => Some(message),
        _ => None,
    }
}

/// Moves the protocol crate's frames to our queue at once, so that what waits is counted.
async fn queue_frames(mut frames: FrameReceiver, queue: mpsc::UnboundedSender<String>, link: Arc<Link>) {
    while let Some(frame) = frames.next().await {
        match frame.to_json() {
            Ok(text) => {
                link.queued(text.len());
                if queue.send(text).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(code = ?error.code, "a message to the agent could not be written as JSON");
            }
        }
    }
}

async fn write(
    mut to_agent: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<String>,
    link: Arc<Link>,
) {
    while let Some(mut text) = queue.recv().await {
        let bytes = text.len();
        if link.is_alive() {
            text.push('\n');
            let written = async {
                to_agent.write_all(text.as_bytes()).await?;
                to_agent.flush().await
            };
            if written.await.is_err() {
                link.died();
            }
        }
        link.written(bytes);
    }
    let _ = to_agent.shutdown().await;
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use handraise_transport::clock::SystemClock;

    use super::*;
    use crate::link::CREDIT;

    #[tokio::test]
    async fn a_request_with_half_a_character_in_it_is_read() {
        let text =
            br#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"cut \ud83d"}}"#;
        let line = Lines::new(&text[..], 1024).next().await.unwrap().unwrap();
        let Some(RawJsonRpcMessage::Request(request)) = parse(&line) else { panic!("a request") };
        assert!(serde_json::to_string(&request).unwrap().contains("cut \u{fffd}"));
        let noise = Lines::new(&b"{\"\\ud83d"[..], 1024).next().await.unwrap().unwrap();
        assert!(parse(&noise).is_none());
    }

    #[tokio::test]
    async fn s37_no_more_is_read_than_is_being_handled() {
        let link = Link::new(SystemClock::shared());
        let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#.to_owned() + "\n";
        let flood = std::io::Cursor::new(line.repeat(3 * CREDIT).into_bytes());
        let Connection { channel, closed, .. } = connect(flood, tokio::io::sink(), &link);
        let (mut frames, _to_agent) = channel.into_parts();
        for _ in 0..CREDIT {
            frames.next().await.unwrap();
        }
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert!(frames.next().now_or_never().is_none(), "the {CREDIT} that are under way are all");
        link.handled();
        frames.next().await.unwrap();
        assert!(frames.next().now_or_never().is_none(), "one was handled, one came");
        for _ in 0..2 * CREDIT {
            link.handled();
        }
        for _ in 0..2 * CREDIT - 1 {
            frames.next().await.unwrap();
        }
        assert!(matches!(closed.await, Ok(Closed::End)));
    }
}
