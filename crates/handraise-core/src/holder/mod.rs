//! The life cycle of the asks that one holder keeps.
//!
//! **Only the holder adjudicates an answer** (D5, AC-61): what is decided here is what happened, everybody else
//! reports it.

mod settlement;

pub use settlement::{Delivery, EndCause, Ended, Reason};
