//! The side that listens.
