//! Why an inbox could not be reached.

use std::{io, time::Duration};

use handraise_transport::ids;

use crate::InboxAddress;

/// Why the inbox could not be reached. Every message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there, or the network fails.
    #[error("cannot reach the inbox at {inbox}: {source}; is `handraise up` running there?")]
    Unreachable {
        /// Where it should be.
        inbox: InboxAddress,
        /// What the system says.
        source: io::Error,
    },
    /// Whoever listens does not answer in time.
    #[error("the inbox at {inbox} did not answer within {} s; is something else listening there?", after.as_secs())]
    Silent {
        /// Where it should be.
        inbox: InboxAddress,
        /// How long it was waited for.
        after: Duration,
    },
    /// Whoever listens does not know our token, so it did not get it (S43).
    #[error(
        "what listens at {inbox} does not prove that it is the inbox of this holder token, so it was not sent; use a token of the inbox that runs there, of scope holder (an operator's is none), dial that inbox itself and not a relay, or free the port"
    )]
    NotProven {
        /// Where it should be.
        inbox: InboxAddress,
    },
    /// The inbox does not take the token.
    #[error(
        "the inbox at {inbox} does not take this token ({status}); make one with `handraise token create --scope holder`"
    )]
    Unauthorized {
        /// Where it is.
        inbox: InboxAddress,
        /// 401 or 403.
        status: u16,
    },
    /// The inbox answers, but not with a holder stream.
    #[error(
        "the inbox at {inbox} answered {status} instead of opening the holder stream; is it handraise, and the same version as this?"
    )]
    Status {
        /// Where it is.
        inbox: InboxAddress,
        /// The HTTP status.
        status: u16,
    },
    /// The certificates of the system are missing, or the name is none.
    #[error("cannot speak TLS with {inbox}: {reason}")]
    Tls {
        /// Where it is.
        inbox: InboxAddress,
        /// What is wrong.
        reason: String,
    },
    /// The inbox turned the greeting down, or answered with something else.
    #[error("the inbox at {inbox} turned this holder down: {reason}")]
    Rejected {
        /// Where it is.
        inbox: InboxAddress,
        /// What it said.
        reason: String,
    },
    /// This machine has no randomness.
    #[error(transparent)]
    Random(#[from] ids::RandomError),
}
