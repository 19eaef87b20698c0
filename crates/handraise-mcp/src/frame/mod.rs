//! One JSON-RPC frame, read where it stands: nothing is copied, nothing is written anew.
//!
//! The two directions are read differently on purpose. [`ClientFrame`] reads every byte strictly (S3), because what is
//! let through here runs. [`ServerFrame`] looks at the head of a response and leaves the rest to the client.

mod client;
mod id;
mod names;
pub(crate) mod reply;
mod scan;
mod server;
pub(crate) mod splice;

pub use client::{ClientFrame, Malformed, Problem};
pub use id::{Id, RequestId};
pub use server::{NoFrame, ServerFrame};

pub(crate) use id::ById;
pub(crate) use server::Shape;
