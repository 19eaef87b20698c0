//! Asks, sessions and tokens at rest.
