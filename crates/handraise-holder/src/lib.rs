//! The holder: an engine on one end of the holder stream.
//!
//! A [`Holder`] keeps the asks of one process: it announces them to the inbox, adjudicates what comes back,
//! delivers at most one answer each, and reports how every ask ended until the inbox has acknowledged it.

mod address;
mod ask;
mod command;
mod holder;

pub use address::{AddressError, InboxAddress, Token};
pub use ask::{NewAsk, Refused};
pub use command::{Command, NewMessage, Reply};
pub use handraise_core::{
    AskId,
    holder::{Delivery, EndCause},
};
pub use holder::{ConnectError, Holder, HolderSettings};
