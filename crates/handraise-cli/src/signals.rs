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

/// Completes when the terminal goes away; never where SIGHUP is ignored, as under `nohup`, or where that cannot be
/// seen.
///
/// # Errors
/// When the signal cannot be taken over.
pub(crate) fn hangup() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut taken = match is_ignored(&status, SignalKind::hangup()) {
        Some(false) => Some(signal(SignalKind::hangup())?),
        Some(true) | None => None,
    };
    Ok(async move {
        match &mut taken {
            Some(hangup) => {
                hangup.recv().await;
            }
            None => std::future::pending().await,
        }
    })
}

/// Whether a process with this `/proc` status ignores a signal.
fn is_ignored(status: &str, kind: SignalKind) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(kind.as_raw_value()).ok()?.checked_sub(1)?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_seen_in_the_status_of_the_process() {
        let hangup = SignalKind::hangup();
        assert_eq!(is_ignored("Name:\tx\nSigIgn:\t0000000000001001\n", hangup), Some(true));
        assert_eq!(is_ignored("SigIgn:\t0000000000001000\n", hangup), Some(false));
        assert_eq!(is_ignored("", hangup), None);
        assert_eq!(is_ignored("SigIgn:\tx\n", hangup), None);
    }
}
