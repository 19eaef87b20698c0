//! The life cycle of the asks that one holder keeps.
//!
//! **Only the holder adjudicates an answer** (D5, AC-61): what is decided here is what happened, everybody else
//! reports it. The [`Engine`] is a value: every call takes the time, changes the engine, and hands what the asking
//! side is to be sent to a [`Courier`]. It keeps no clock, mints no id and knows no frame, so that "at most one
//! answer", "every ask ends" and "every end is reported" can be tested exhaustively.
//!
//! - An ask is *open* from [`Engine::open`] until its one [`Delivery`], then *ended* for good: an id never reopens.
//! - Towards the inbox the engine is a queue of [`Notice`]s: a snapshot in parts after every connect, then openings
//!   and endings in the order in which they happened. A settlement is repeated with every snapshot until its
//!   [`Receipt`] came back (F7).
//! - Time is a [`Moment`](crate::Moment) of a clock that never steps; one that runs backwards is ignored.

mod ask;
mod engine;
mod ledger;
mod limits;
mod link;
mod settlement;

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use ask::{NewAsk, Route, Verdict};
pub use engine::{Courier, Engine};
pub use limits::{Limits, Refused};
pub use link::{Announced, Notice, Receipt, SnapshotPart};
pub use settlement::{Delivery, EndCause, Ended, Reason};
