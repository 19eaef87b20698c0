//! Why a gateway cannot begin.

use std::io;

/// Why a gateway cannot begin. Once it runs, what goes wrong is told to the client, or in the log.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// There is no such program.
    #[error("cannot start the MCP server: no program is called {program:?}; {remedy}")]
    NotFound {
        /// What was named.
        program: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It is there and is no program.
    #[error(
        "cannot start the MCP server: {program:?} is no program that can be executed; check its permissions"
    )]
    NotExecutable {
        /// What was named.
        program: String,
    },
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
