//! Why an inbox could not run.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why an inbox could not start or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// S10.
    #[error(
        "{0} is reachable from other machines, and without TLS every token would be readable on the way; \
         listen on 127.0.0.1, or put a TLS proxy in front and say so with --insecure-behind-proxy"
    )]
    BeyondLoopback(SocketAddr),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; is another program listening there?")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The socket file could not be made.
    #[error("cannot listen on the socket {}: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another inbox has the data directory.
    #[error(
        "another handraise up uses {}; stop it, or give this one its own --data-dir", data_dir.display()
    )]
    InUse {
        /// The directory.
        data_dir: PathBuf,
    },
    /// A file of the data directory could not be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system gave no random bytes, or the database took no token.
    #[error("the tokens of inbox.json could not be made; the log says more")]
    NoToken,
    /// The database could not be used.
    #[error(transparent)]
    Store(#[from] handraise_store::StoreError),
    /// The operating system gave no random bytes.
    #[error(transparent)]
    Random(#[from] handraise_transport::ids::RandomError),
    /// What was asked for is not possible.
    #[error("{0}")]
    Refused(String),
}
