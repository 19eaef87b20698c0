//! Asks, forms and the holder's engine, without I/O.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no socket, no async. Time comes in
//! as a [`Moment`], ids come in from whoever mints them, and what should happen next comes out as a value. That
//! is what lets every rule of the product be tested exhaustively and in microseconds.
//!
//! - [`ask`]: what is asked and how it ended, in the product's vocabulary ([`words`]).
//! - [`form`]: `requestedSchema` → ordered questions; answers → content.
//! - [`holder`]: the life cycle of the asks that one holder keeps.

pub mod ask;
pub mod form;
pub mod holder;
pub mod time;
pub mod words;

pub use ask::{Answer, AskId, Choice, Constraints, Question, Submission, SubmissionId};
pub use time::Moment;
pub use words::{
    Companion, Declared, Era, Kind, Mode, OnDeadline, Outcome, Provenance, Rail, Source, WireAction,
};
