//! Where a request came in.

use std::net::{IpAddr, SocketAddr};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Through TCP.
    Tcp(SocketAddr),
    /// Through the socket file in the data directory: only our own user gets there.
    Socket,
}

/// Which of our own addresses a TCP connection came in on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Landed(pub(crate) SocketAddr);

impl Peer {
    /// Whose attempts to sign in are counted together; `None`: everybody on the socket.
    pub(crate) const fn address(self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Socket => None,
        }
    }
}
