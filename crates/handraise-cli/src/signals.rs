//! SIGINT and SIGTERM as a future: the orderly end.

use tokio::signal::unix::{SignalKind, signal};

/// Completes with the first SIGINT or SIGTERM. Both are taken over at once; a second one ends the process the hard
/// way, for whoever does not want to wait.
///
/// # Errors
/// When the signals cannot be taken over.
pub(crate) fn shutdown() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        };
        tracing::info!(signal = name, "ending in order; the same signal again ends at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(130);
        });
    })
}
