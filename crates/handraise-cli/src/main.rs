//! The handraise command.

fn main() {}
