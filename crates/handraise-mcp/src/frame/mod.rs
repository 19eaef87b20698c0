//! One JSON-RPC frame, read where it stands: nothing is copied, nothing is written anew.
//!
//! The two directions are read differently on purpose. [`ClientFrame`] reads every byte strictly (S3), because what is
//! let through here runs. [`ServerFrame`] looks at the head of a response and leaves the rest to the client.

mod client;
mod few;
mod id;
mod input_required;
mod member;
mod names;
pub mod overlong;
pub(crate) mod reply;
mod scan;
mod server;
pub(crate) mod splice;
mod streams;

pub use client::{ClientFrame, Malformed, Problem};
pub use few::Few;
pub use id::{ById, Id, RequestId};
pub use reply::error as error_response;
pub use server::{Looks, NoFrame, ServerFrame, each_of_batch, is_batch};
pub use streams::{Placed, Renumbered};

pub(crate) use client::Answered;
pub(crate) use input_required::INPUT_REQUIRED;
pub(crate) use member::{has_members, member_at, member_named, members_named};
pub(crate) use names::fold;
pub(crate) use scan::{Quoted, Scanner};
pub(crate) use server::Shape;
