//! Why an inbox could not run.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

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
    #[error("cannot listen on {address}: {source}; {}", elsewhere(source))]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The socket file could not be made.
    #[error("cannot listen on the socket {}: {}", path.display(), unsocketed(path, source))]
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

/// What to do about an address.
fn elsewhere(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "is another program listening there? Stop it, or name another address with --listen"
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not take that port, as ports below 1024 often are; name another with --listen"
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no such address; name another with --listen",
        _ => "name another address with --listen",
    }
}

/// The longest path of a socket, in bytes: Linux's `sun_path` without its end.
const SOCKET_PATH: usize = 107;

/// What is wrong with a socket.
fn unsocketed(path: &Path, source: &io::Error) -> String {
    let length = path.as_os_str().len();
    if source.kind() == io::ErrorKind::InvalidInput && length > SOCKET_PATH {
        return format!(
            "its path has {length} bytes, and that of a socket takes {SOCKET_PATH}; give a shorter --data-dir"
        );
    }
    source.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_address_decides_what_to_do() {
        let said = |kind: io::ErrorKind| {
            ServeError::Listen { address: ([127, 0, 0, 1], 80).into(), source: kind.into() }.to_string()
        };
        assert!(said(io::ErrorKind::AddrInUse).contains("is another program"));
        let denied = said(io::ErrorKind::PermissionDenied);
        assert!(denied.contains("below 1024") && !denied.contains("another program"), "{denied}");
        assert!(said(io::ErrorKind::AddrNotAvailable).contains("no such address"));
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_told_with_its_length() {
        let path = PathBuf::from(format!("/{}", "d".repeat(120)));
        let source = std::os::unix::net::UnixListener::bind(&path).unwrap_err();
        let said = ServeError::Socket { path, source }.to_string();
        assert!(said.contains("its path has 121 bytes") && said.contains("--data-dir"), "{said}");
    }
}
