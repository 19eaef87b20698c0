//! What only another program can tell.

#[cfg(test)]
mod canonical_against_node;
#[cfg(test)]
mod corpus;
