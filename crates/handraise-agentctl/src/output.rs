//! What `handraise agent` writes to stdout: the agent's text, or one event a line.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use handraise_api::{
    event,
    session::{Message, MessageKind, Session},
};
use handraise_transport::escape;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle};

/// How many pieces may wait to be written before the agent is no longer read.
const QUEUE: usize = 256;
/// How long a reader of stdout that has stopped reading is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Nothing: the prompts come from the inbox, and so do its readers.
    Nothing,
    /// The agent's words, with control characters made visible (S42).
    Text,
    /// `{"event", "data"}` a line, as on `GET /events`.
    Json,
}

/// Writes in a thread of its own, so that a slow reader holds up the agent and nothing else.
pub(crate) struct Output {
    format: Format,
    in_line: Arc<AtomicBool>,
    queue: Option<mpsc::Sender<String>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// A handle for writing; clones write to the same place.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    format: Format,
    /// Whether the last line written has no end yet: a message of its own starts on a new one.
    in_line: Arc<AtomicBool>,
    queue: Option<mpsc::Sender<String>>,
}

impl Output {
    pub(crate) fn new(format: Format, mut to: impl Write + Send + 'static) -> Self {
        if format == Format::Nothing {
            return Self { format, in_line: Arc::default(), queue: None, thread: None };
        }
        let (queue, mut queued) = mpsc::channel::<String>(QUEUE);
        let thread = tokio::task::spawn_blocking(move || {
            while let Some(piece) = queued.blocking_recv() {
                to.write_all(piece.as_bytes())?;
                to.flush()?;
            }
            Ok(())
        });
        Self { format, in_line: Arc::default(), queue: Some(queue), thread: Some(thread) }
    }

    pub(crate) fn printer(&self) -> Printer {
        Printer { format: self.format, in_line: Arc::clone(&self.in_line), queue: self.queue.clone() }
    }

    /// Waits until everything is written. Every printer must be gone by then.
    pub(crate) async fn finish(mut self) -> io::Result<()> {
        self.queue = None;
        match self.thread.take() {
            Some(thread) => match tokio::time::timeout(PATIENCE, thread).await {
                Ok(Ok(written)) => written,
                Ok(Err(error)) => Err(io::Error::other(error)),
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it")),
            },
            None => Ok(()),
        }
    }
}

impl Printer {
    pub(crate) async fn message(&self, message: &Message) {
        match self.format {
            Format::Text if message.kind == MessageKind::AgentText => {
                let gap = if !message.continues && self.in_line.load(Ordering::Relaxed) { "\n" } else { "" };
                let text = format!("{gap}{}", escape::text(&message.text));
                if let Some(last) = text.chars().last() {
                    self.in_line.store(last != '\n', Ordering::Relaxed);
                }
                self.print(text).await;
            }
            Format::Nothing | Format::Text => {}
            Format::Json => self.event(event::SESSION_MESSAGE, json!(message)).await,
        }
    }

    pub(crate) async fn session(&self, session: &Session) {
        if self.format == Format::Json {
            self.event(event::SESSION_UPDATED, json!(session)).await;
        }
    }

    /// The last line.
    pub(crate) async fn end(&self, stop_reason: Option<&str>, error: Option<String>) {
        if self.in_line.load(Ordering::Relaxed) {
            self.print("\n".to_owned()).await;
        }
        if self.format == Format::Json {
            let mut data = json!({"stopReason": stop_reason});
            if let Some(error) = error {
                data["error"] = Value::String(error);
            }
            self.event("end", data).await;
        }
    }

    async fn event(&self, event: &str, data: Value) {
        let mut line = escape::json(&json!({"event": event, "data": data}).to_string());
        line.push('\n');
        self.print(line).await;
    }

    async fn print(&self, piece: String) {
        if let Some(queue) = &self.queue {
            // The thread ends early when writing failed, which `finish` reports.
            let _ = queue.send(piece).await;
        }
    }
}
