//! Streams of events: reading what a server sends however it is cut, and writing what every reader reads.

mod read;
mod write;

pub use read::{Event, Item, Reader};
pub use write::{comment, event, retry};

#[cfg(test)]
mod tests;
