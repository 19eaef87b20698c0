//! Why a gateway cannot begin.

use std::io;

use handraise_transport::program::Missing;

/// Why a gateway cannot begin. Once it runs, what goes wrong is told to the client, or in the log.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The program cannot be started.
    #[error("cannot start the MCP server: {0}")]
    Missing(#[from] Missing),
    /// The supervisor could not be started.
    #[error("cannot start the MCP server {program:?}")]
    Spawn {
        /// What was named.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Signals, pipes or threads cannot be had.
    #[error("cannot prepare the gateway")]
    Prepare(#[source] io::Error),
    /// No random bytes.
    #[error("cannot prepare the gateway")]
    Random(#[from] handraise_transport::ids::RandomError),
}
