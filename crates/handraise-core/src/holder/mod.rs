//! The life cycle of the asks that one holder keeps.
