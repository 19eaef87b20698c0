//! Starting the server.

use std::{fs::File, mem::take, os::fd::OwnedFd};

use handraise_transport::{
    blocking::{self, Supervised},
    program,
    spawn::Spawn,
};

use crate::{GatewayError, GatewaySettings};

/// How much the pipes to and from the server hold, in bytes. More would soon be more than the kernel grants one user
/// for all pipes, who would then get the smallest ones only.
const PIPE: usize = 256 * 1024;

/// A running server and its pipes.
pub(crate) struct Server {
    pub(crate) child: Supervised,
    pub(crate) stdin: File,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
}

/// Starts the server. Its command and its environment are taken out of the settings.
pub(crate) fn start(settings: &mut GatewaySettings) -> Result<Server, GatewayError> {
    program::find(&settings.command, &settings.search_path)?;
    let mut words = take(&mut settings.command).into_iter();
    let program = words.next().unwrap_or_default();
    let shown = program.to_string_lossy().into_owned();
    let environment = take(&mut settings.environment);
    let order = Spawn { program, args: words.collect(), cwd: None, environment };
    let failed = |source| GatewayError::Spawn { program: shown.clone(), source };
    let mut child = blocking::spawn(&order, &settings.supervisor).map_err(failed)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(failed(std::io::Error::other("it has no pipes")));
    };
    let (stdin, stdout) = (widened(stdin.into()), widened(stdout.into()));
    Ok(Server { child, stdin, stdout, stderr: File::from(OwnedFd::from(stderr)) })
}

/// A pipe that holds more, where the kernel grants it.
fn widened(pipe: OwnedFd) -> File {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE);
    pipe.into()
}
