//! The stdio gateway: a client's stdin and stdout on one side, an MCP server's on the other.
//!
//! Frames travel as the bytes that came. What they mean is the business of
//! [`handraise_mcp::envelope`]; no rule of the protocol lives here. This crate reads lines, carries out what the
//! envelope says in the order in which it says it, keeps time, and starts and ends the server.
//!
//! # One loop
//!
//! One thread and no runtime: it waits for whoever is ready, reads once, decides, and writes what the other side takes. It
//! then looks whether that side has answered at once, where such looks find something: see [`turns`].
//! It never waits for one side alone. What a side does not take waits in its [`outlet`]; while it does, nothing more is
//! read that would go there, so that memory is bounded and frames go on uncopied, from the buffer that they were read
//! into. A frame passes one thread, and no lock.
//!
//! Three things have a thread of their own, because somebody has to wait for them: the server's stderr once it says
//! something, for our log; the store of spent nonces where calls are guarded, for a disk; and the inbox, where there may be
//! one, for its operators.

mod anew;
mod client;
mod closing;
mod ending;
mod error;
mod flow;
mod outlet;
mod run;
mod server;
mod start;
mod stderr;
mod turns;
mod waiter;
mod wake;
mod watch;

use std::{ffi::OsString, fmt::Write as _, os::unix::ffi::OsStrExt as _, path::PathBuf, sync::Arc};

use handraise_asker::Find;
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
    /// The envelope's settings, and what all envelopes share.
    pub process: Arc<Process>,
    /// The longest frame, in bytes.
    pub max_frame: usize,
    /// Reads the settings anew; called on SIGHUP.
    pub reload: Box<dyn Fn() + Send>,
    /// Takes the records.
    pub recorder: Box<dyn Recorder + Send>,
    /// Keeps what has confirmed a call, where calls are guarded.
    pub spent: Option<Store>,
    /// Says where the inbox is, unless nobody there is to be asked.
    pub inbox: Option<Find>,
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
