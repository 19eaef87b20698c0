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
//! - An inbox that is not there is looked for again: at once with the next question that it might serve, at most once a second,
//!   and by the thread, with pauses that grow to [`LONGEST_PAUSE`]. That question itself does not wait for the look.
//! - What is taken back can no longer be answered: the holder's lock orders both. An answer that came first is not used, and
//!   [`Asker::withdraw`] has the record say that it was given.
//! - What a client takes back ends as withdrawn: nothing was sent to anybody.
//! - Where the thread ends, also by a panic of whoever is told, there is no inbox any more.

mod asked;
mod asker;
mod look;

pub use asker::{Asker, Find};
pub use look::LONGEST_PAUSE;
