//! How the questions of gateways reach the inbox, and what becomes of them comes back.
//!
//! An [`Asker`] asks for envelopes, which know of no connection: it opens each [`InboxAsk`] with its
//! [`Holder`](handraise_holder::Holder), which alone decides which answer counts, and tells how it ended, once, for whom it
//! was asked.
//!
//! # What it costs
//!
//! Without an inbox nothing: no thread, no runtime. Where one may be, a thread looks for it, without a runtime until it is
//! there; asking, taking back and looking whether somebody is there never wait for that thread or for a connection.
//!
//! # Decided here
//!
//! - An inbox that is not there is looked for again: at once with the next question that it might serve, and by the thread,
//!   with pauses that grow to [`LONGEST_PAUSE`].
//! - What is taken back can no longer be answered: an answer that comes at the same moment is refused, or never used.

mod asked;
mod asker;
mod look;

pub use asker::{Asker, Find};
pub use look::LONGEST_PAUSE;
