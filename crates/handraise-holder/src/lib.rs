//! The holder: an engine on one end of the holder stream.
//!
//! A [`Holder`] keeps the asks of one process: it announces them to the inbox, adjudicates what comes back,
//! delivers at most one answer each, and reports how every ask ended until the inbox has acknowledged it.

mod address;
mod ask;
mod command;
mod dial;
mod holder;
mod presence;
mod records;
mod requests;
mod settled;
mod state;
mod stream;
mod transcript;
mod upkeep;
mod wire;

pub use address::{AddressError, InboxAddress, Token};
pub use ask::{Demands, NewAsk};
pub use command::{Command, NewMessage, Reply};
pub use dial::ConnectError;
pub use handraise_core::{
    AskId,
    holder::{Delivery, EndCause, Ended, Refused},
};
pub use holder::{Holder, HolderSettings, Timing};
pub use settled::{Answered, InboxRefusal, Settled};
