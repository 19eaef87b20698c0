//! The inbox's HTTP contract and the holder stream's frames, as types.
//!
//! These are the only shapes that cross a process boundary of handraise itself: the JSON under `/api/v1`, the
//! live events, and the frames between a holder and the inbox. The OpenAPI document and the page's TypeScript
//! types are generated from them. Converting to and from [`handraise_core`] happens here and nowhere else.

pub mod access;
pub mod ask;
pub mod audit;
pub mod error;
pub mod event;
pub mod frame;
pub mod record;
pub mod session;
pub mod words;

pub use jiff::Timestamp;
