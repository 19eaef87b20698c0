//! Looking for an inbox.

use std::{os::unix::net::UnixStream, time::Duration};

use handraise_holder::{HolderSettings, InboxAddress};

/// The pause after the first look; each further one is twice as long.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause between two looks.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Whether an inbox may be there: whether anybody listens, where that can be told at once.
pub(crate) fn may_be_there(settings: &HolderSettings) -> bool {
    match &settings.inbox {
        InboxAddress::Socket(path) => UnixStream::connect(path).is_ok(),
        InboxAddress::Loopback { .. } | InboxAddress::Tls { .. } => true,
    }
}

/// The pause after one.
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(LONGEST_PAUSE)
}
