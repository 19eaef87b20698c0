//! Tests of the store in a real folder, with real processes.

#[cfg(test)]
mod files;
#[cfg(test)]
mod race;
