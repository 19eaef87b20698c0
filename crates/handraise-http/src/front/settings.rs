//! What the listening side needs to know, and why it cannot begin.

use std::{ffi::OsString, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use handraise_asker::Find;
use handraise_mcp::{envelope::Process, record::Recorder};
use handraise_spent::Store;
use handraise_transport::spawn::Supervisor;

use super::callers::Caller;
use crate::upstream::Server;

/// Reads the settings anew.
pub type Reload = Box<dyn Fn() + Send>;

/// What the listening side needs to know.
pub struct FrontSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The certificate chain and the key, both PEM.
    pub tls: Option<TlsFiles>,
    /// A proxy in front speaks TLS.
    pub insecure_behind_proxy: bool,
    /// Names by which clients may call us, beside loopback names; without port.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may call us, beside our own.
    pub allowed_origins: Vec<String>,
    /// Who may call. Nobody named: everybody on loopback is one principal.
    pub callers: Vec<Caller>,
    /// The server at a URL, in place of a program.
    pub upstream: Option<Arc<Server>>,
    /// The server's program and its arguments.
    pub command: Vec<OsString>,
    /// All of the server's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// How to start the supervisor.
    pub supervisor: Supervisor,
    /// The envelope's settings, and what all envelopes share.
    pub process: Arc<Process>,
    /// The longest frame, in bytes.
    pub max_frame: usize,
    /// Bounds.
    pub caps: Caps,
    /// Called on SIGHUP.
    pub reload: Reload,
    /// Takes the records.
    pub recorder: Box<dyn Recorder + Send>,
    /// Where is kept what has confirmed a guarded call (S5).
    pub spent: Option<Store>,
    /// Says where the inbox is, unless nobody there is to be asked.
    pub inbox: Option<Find>,
}

/// A certificate and its key.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// Bounds of the listening side (S37).
#[derive(Debug, Clone, Copy)]
pub struct Caps {
    /// Legacy sessions.
    pub sessions: usize,
    /// How long a session lives that nobody uses.
    pub idle: Duration,
    /// Server processes.
    pub children: usize,
    /// Bytes of bodies, queues and answers.
    pub bytes_in_flight: usize,
    /// Events that a session keeps for clients that come back.
    pub replay_events: usize,
    /// Bytes of these.
    pub replay_bytes: usize,
    /// Subscriptions of one principal.
    pub subscriptions: usize,
    /// Connections.
    pub connections: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            sessions: 256,
            idle: Duration::from_secs(30 * 60),
            children: 64,
            bytes_in_flight: 256 << 20,
            replay_events: 1000,
            replay_bytes: 8 << 20,
            subscriptions: 64,
            connections: 4096,
        }
    }
}

/// Why the listening side cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    /// The address is beyond loopback, and nobody has said who may call.
    #[error(
        "{0} is not loopback: add a [[caller]] with a name and a token_hash to the config file, so that only those who \
         have a token can call"
    )]
    NoCallers(SocketAddr),
    /// The address is beyond loopback, and the connection is not encrypted.
    #[error(
        "{0} is not loopback: give --tls-cert and --tls-key, or --insecure-behind-proxy when a proxy in front speaks TLS"
    )]
    Insecure(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; name another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificate or the key cannot be used.
    #[error("cannot use {path} for TLS: {problem}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Signals cannot be had.
    #[error("cannot prepare the gateway")]
    Prepare(#[source] io::Error),
}
