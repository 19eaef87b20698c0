//! Whether whoever asked is still there.

use std::io;

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use tokio::sync::{oneshot, watch};

use crate::signals;

/// Whether anybody still wants the answer.
pub(crate) struct Abandoned {
    by_signal: watch::Receiver<bool>,
    by_reader: watch::Receiver<bool>,
}

impl Abandoned {
    /// Watches for a signal, and for the end of whoever reads our stdout.
    ///
    /// # Errors
    /// When the signals cannot be taken over.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let by_signal = once(signals::shutdown_or_hangup()?);
        Ok(Self { by_signal, by_reader: once(reader_gone()) })
    }

    /// Completes once nobody wants the answer any more.
    pub(crate) async fn happens(&self) {
        tokio::select! {
            () = happened(&self.by_signal) => {}
            () = happened(&self.by_reader) => {}
        }
    }

    /// Completes with the first signal; a reader may go once it has read.
    pub(crate) async fn interrupted(&self) {
        happened(&self.by_signal).await;
    }
}

/// Remembers that something has happened.
fn once(event: impl Future<Output = ()> + Send + 'static) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        event.await;
        sender.send_replace(true);
        // Nobody takes the end of this task for a loss.
        std::future::pending::<()>().await;
    });
    receiver
}

async fn happened(event: &watch::Receiver<bool>) {
    // Without its watcher nothing can happen any more.
    if event.clone().wait_for(|happened| *happened).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Completes when the other end of stdout is closed. A file never goes away.
async fn reader_gone() {
    let (sender, gone) = oneshot::channel();
    // A thread of its own, because it may wait for as long as the program runs.
    std::thread::spawn(move || {
        let stdout = io::stdout();
        loop {
            // Errors and hang-ups are reported without being asked for.
            let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
            match poll(&mut watched, None) {
                Ok(_)
                    if watched.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)) =>
                {
                    break;
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        // The program may have ended meanwhile.
        let _ = sender.send(());
    });
    match gone.await {
        Ok(()) => tracing::info!("whoever reads stdout has gone; the question is taken back"),
        Err(_) => std::future::pending().await,
    }
}
