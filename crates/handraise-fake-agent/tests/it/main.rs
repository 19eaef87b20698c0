//! The agent over a pair of pipes, as a client sees it.

#[cfg(test)]
mod scripts;
