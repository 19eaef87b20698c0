//! Builds, checks and runs the project.

fn main() {}
