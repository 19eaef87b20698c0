//! The holder against a scripted inbox, over real sockets.

#![cfg(test)]

mod answers;
mod connection;
mod inbox;
mod sessions;
