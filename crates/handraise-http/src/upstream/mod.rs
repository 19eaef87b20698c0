//! The side that dials.
