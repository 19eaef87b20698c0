//! The same child processes as [`spawn`](mod@crate::spawn) starts, for programs without a runtime.

use std::{
    io,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus},
};

use rustix::process::Pid;

use crate::{
    clock::{Clock as _, SystemClock},
    spawn::{self, LOOK_AGAIN, SWEEP, Spawn, Supervisor},
};

/// A running command and the supervisor above it.
///
/// Dropping it asks the supervisor for an orderly end, but does not wait for it.
#[derive(Debug)]
pub struct Supervised {
    child: Child,
    /// `None` once it was waited for: the number may then be somebody else's.
    pid: Option<Pid>,
    /// Closing it tells most programs to end.
    pub stdin: Option<ChildStdin>,
    /// What the command says.
    pub stdout: Option<ChildStdout>,
    /// What the command complains about, and the supervisor too.
    pub stderr: Option<ChildStderr>,
}

/// Starts a command as [`spawn::spawn`] does.
///
/// # Errors
/// When the supervisor cannot be started, or `cwd` is no directory that can be entered.
pub fn spawn(order: &Spawn, supervisor: &Supervisor) -> io::Result<Supervised> {
    let mut command = spawn::command(order, supervisor);
    let (mut child, pid) = spawn::start(|| command.spawn(), |child| Some(child.id()))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    Ok(Supervised { child, pid, stdin, stdout, stderr })
}

impl Supervised {
    /// How it ended, if it has. Ends also what a supervisor that was killed has left behind, which may take two
    /// seconds. Worth a look after every SIGCHLD.
    ///
    /// # Errors
    /// When the operating system does not tell how it ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        if let Some(pid) = self.pid.take() {
            // A supervisor that exits has nothing left below it; one that was killed may have.
            if status.code().is_none() {
                sweep();
            }
            spawn::forget(pid);
        }
        Ok(Some(status))
    }

    /// Asks for an orderly end without waiting. The supervisor needs at most
    /// [`GRACE`](crate::supervise::GRACE) and a moment, as long as processes die when killed.
    pub fn terminate(&self) {
        if let Some(pid) = self.pid {
            spawn::ask_to_end(pid);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.terminate();
        if let Some(pid) = self.pid {
            spawn::abandon(pid);
        }
    }
}

fn sweep() {
    let until = SystemClock.boot_millis() + u64::try_from(SWEEP.as_millis()).unwrap_or(0);
    while spawn::kill_strays() {
        if SystemClock.boot_millis() >= until {
            spawn::warn_of_leftovers();
            return;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
