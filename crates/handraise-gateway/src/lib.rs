//! The stdio gateway: a client's stdin and stdout on one side, an MCP server's on the other.
//!
//! Frames travel as the bytes that came. What they mean is the business of
//! [`handraise_mcp::envelope`]; no rule of the protocol lives here. This crate reads lines, carries out what the
//! envelope says in the order in which it says it, keeps time, and starts and ends the server.
//!
//! # Threads
//!
//! Plain blocking threads and no runtime: a call passes two of them, and nothing is started before it is needed.
//!
//! - `client`: reads our stdin and writes to the server;
//! - `server`: reads the server's stdout and writes to our stdout;
//! - `log`: reads the server's stderr;
//! - `spender`: asks the store of spent nonces, where calls are guarded, so that no other thread waits for a disk;
//! - the main thread keeps time, takes signals, waits for the server's end, and decides when all is over;
//! - a courier per direction, started with the first frame that a thread sends against its own direction.
//!
//! A thread never waits for the other direction: what it has to send there is queued, see `outlet.rs`. A server that
//! reads nothing while its own answer is not read can therefore not stand still together with us.

mod client;
mod ending;
mod error;
mod outlet;
mod overlong;
mod run;
mod server;
mod shared;
mod spender;
mod start;
mod stderr;
mod wake;

use std::{ffi::OsString, fmt::Write as _, os::unix::ffi::OsStrExt as _, path::PathBuf, sync::Arc};

use handraise_mcp::{envelope::Process, record::Recorder};
use handraise_spent::Store;
use handraise_transport::spawn::Supervisor;

use sha2::{Digest as _, Sha256};

pub use error::GatewayError;
pub use run::run;

/// What a gateway needs to know.
pub struct GatewaySettings {
    /// The server's program and its arguments.
    pub command: Vec<OsString>,
    /// All of the server's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folders in which the program is looked for, as in `PATH`.
    pub search_path: Vec<PathBuf>,
    /// How to start the supervisor.
    pub supervisor: Supervisor,
    /// The envelope's settings, and the switch that [`reload`](Self::reload) moves.
    pub process: Arc<Process>,
    /// The longest frame, in bytes.
    pub max_frame: usize,
    /// Reads anew whether handraise asks its own questions; called on SIGHUP. An error is for people.
    pub reload: Box<dyn Fn() -> Result<bool, String>>,
    /// Takes the records.
    pub recorder: Box<dyn Recorder + Send>,
    /// Keeps what has confirmed a call, where calls are guarded.
    pub spent: Option<Store>,
}

/// What states say that they are about (S22): a server's command, wherever and whenever it runs. A digest, because
/// clients see states, and command lines hold keys.
pub fn identity(command: &[OsString]) -> String {
    let mut digest = Sha256::new();
    for word in command {
        digest.update((word.len() as u64).to_be_bytes());
        digest.update(word.as_bytes());
    }
    digest.finalize().iter().fold("stdio:".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s22_a_command_is_one_upstream_and_another_command_is_another() {
        let identity = |words: &[&str]| identity(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(identity(&["npx", "a"]), identity(&["npx", "a"]));
        assert_ne!(identity(&["npx", "a"]), identity(&["npxa"]));
        assert_ne!(identity(&["npx", "a"]), identity(&["npx", "a", ""]));
        assert!(!identity(&["server", "--key=hunter2"]).contains("hunter2"));
    }
}
