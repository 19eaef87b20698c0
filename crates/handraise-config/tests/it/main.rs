//! What only the public interface tells.

#[cfg(test)]
mod corpus;
