//! Tests of the store in a real folder, with real processes.

mod files;
mod race;
