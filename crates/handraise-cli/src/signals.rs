//! Signals as a future: the orderly end.

use handraise_transport::signals::SAME;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::Instant,
};

/// Completes with the first SIGINT or SIGTERM. Both are taken over at once; one that comes later than half a second after
/// the first ends the process the hard way, for whoever does not want to wait.
///
/// # Errors
/// When the signals cannot be taken over.
pub(crate) fn shutdown() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    first(std::future::pending())
}

/// The same, also when the terminal goes away: for what has no other use for SIGHUP.
///
/// # Errors
/// When the signals cannot be taken over.
pub(crate) fn shutdown_or_hangup() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    first(hangup()?)
}

fn first(
    hangup: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
            () = hangup => "SIGHUP",
        };
        tracing::info!(signal = name, "ending in order; another signal after half a second ends at once");
        tokio::spawn(async move {
            let (sender, signals) = mpsc::channel(1);
            let watching = async move {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                    }
                    if sender.send(()).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = watching => {}
                () = another(signals) => std::process::exit(130),
            }
        });
    })
}

/// Completes when the terminal goes away; never where SIGHUP is ignored, as under `nohup`, or where that cannot be
/// seen.
///
/// # Errors
/// When the signal cannot be taken over.
fn hangup() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
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

/// Completes with the first signal that is not the same as the one of now.
async fn another(mut signals: mpsc::Receiver<()>) {
    let same_until = Instant::now() + SAME;
    while signals.recv().await.is_some() {
        if Instant::now() >= same_until {
            return;
        }
    }
    std::future::pending::<()>().await;
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
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signals_of_half_a_second_are_one() {
        let (sender, signals) = mpsc::channel(1);
        let start = Instant::now();
        let sending = async {
            for at in [0, 1, 499, 500] {
                tokio::time::sleep_until(start + Duration::from_millis(at)).await;
                sender.send(()).await.unwrap();
            }
        };
        tokio::join!(sending, another(signals));
        assert_eq!(start.elapsed(), SAME);
    }

    #[test]
    fn an_ignored_signal_is_seen_in_the_status_of_the_process() {
        let hangup = SignalKind::hangup();
        assert_eq!(is_ignored("Name:\tx\nSigIgn:\t0000000000001001\n", hangup), Some(true));
        assert_eq!(is_ignored("SigIgn:\t0000000000001000\n", hangup), Some(false));
        assert_eq!(is_ignored("", hangup), None);
        assert_eq!(is_ignored("SigIgn:\tx\n", hangup), None);
    }
}
