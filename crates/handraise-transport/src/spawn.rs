//! Child processes: started under the supervisor, with a cleaned environment (S7, S35).

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::{
    net::unix::pipe,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
};

use crate::descendants::{children, is_running};
pub use crate::environment::clean_environment;

/// How long a sweep after a dead supervisor may take.
pub(crate) const SWEEP: Duration = Duration::from_secs(2);
/// How often the sweep looks.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How to start the supervisor.
#[derive(Debug, Clone)]
pub struct Supervisor {
    program: PathBuf,
    args: Vec<OsString>,
}

impl Supervisor {
    /// This binary's own hidden subcommand `supervise`.
    pub fn this_binary() -> Self {
        // The link follows the running file even after an upgrade has replaced it on disk.
        Self { program: PathBuf::from("/proc/self/exe"), args: vec!["supervise".into()] }
    }

    /// Another binary that calls [`supervise::run`](crate::supervise::run) with what follows `args`.
    pub fn other(program: impl Into<PathBuf>, args: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: program.into(), args: args.into_iter().collect() }
    }
}

/// A command to be started.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// The program, looked up in the `PATH` of `environment`'s owner.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs; our own working directory otherwise.
    pub cwd: Option<PathBuf>,
    /// All of its environment. See [`clean_environment`].
    pub environment: Vec<(OsString, OsString)>,
}

/// A running command and the supervisor above it.
///
/// Dropping it asks the supervisor for an orderly end, but does not wait for it; see [`stop`](Supervised::stop).
/// The supervisor itself is never killed: it would take nobody with it.
#[derive(Debug)]
pub struct Supervised {
    child: Child,
    pid: Option<Pid>,
    /// Closing it tells most programs to end.
    pub stdin: Option<ChildStdin>,
    /// What the command says.
    pub stdout: Option<ChildStdout>,
    /// What the command complains about, and the supervisor too.
    pub stderr: Option<ChildStderr>,
}

/// Our direct children. `started` are supervisors that nobody has seen the end of; of these, `unwatched` are those that
/// nobody waits for. `spared` were here without being ours to end.
struct Registry {
    subreaper: bool,
    started: BTreeSet<i32>,
    unwatched: BTreeSet<i32>,
    spared: BTreeSet<i32>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    subreaper: false,
    started: BTreeSet::new(),
    unwatched: BTreeSet::new(),
    spared: BTreeSet::new(),
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process adopt the orphans below it, so that they can be ended when a supervisor dies first (S35).
///
/// To be called once at start by a program that starts children through [`spawn`] alone. When a supervisor has
/// died, every child that neither [`spawn`] started nor [`spare_children`] saw is killed.
///
/// # Errors
/// When the kernel refuses.
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    registry().subreaper = true;
    Ok(())
}

/// Exempts the present children from the sweep after a supervisor's death: for a browser that was just opened.
pub fn spare_children() {
    registry().spare();
}

impl Registry {
    fn spare(&mut self) {
        let present: BTreeSet<i32> =
            children().into_iter().map(|child| child.as_raw_nonzero().get()).collect();
        self.unwatched.retain(|pid| present.contains(pid) || !self.started.remove(pid));
        // The kernel hands orphans on before it shows their supervisor as dead, so this is asked after they were listed:
        // while a dead supervisor has not been swept after, what is here and unknown may be what it left behind.
        if self.started.iter().all(|pid| present.contains(pid) && is_running(*pid)) {
            self.spared = &present - &self.started;
        } else {
            self.spared.retain(|pid| present.contains(pid));
        }
    }

    fn strays(&self) -> Vec<Pid> {
        let known = |pid: &Pid| {
            let pid = pid.as_raw_nonzero().get();
            self.started.contains(&pid) || self.spared.contains(&pid)
        };
        children().into_iter().filter(|pid| !known(pid)).collect()
    }
}

/// Starts a command under a supervisor, with pipes on stdin, stdout and stderr.
///
/// A command that does not exist is not an error here: the supervisor says so on stderr and exits with
/// [`NOT_FOUND`](crate::supervise::NOT_FOUND).
///
/// # Errors
/// When the supervisor cannot be started, or `cwd` is no directory that can be entered.
pub fn spawn(spawn: &Spawn, supervisor: &Supervisor) -> io::Result<Supervised> {
    let mut command = tokio::process::Command::from(command(spawn, supervisor));
    let (mut child, pid) = start(|| command.spawn(), Child::id)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    Ok(Supervised { child, pid, stdin, stdout, stderr })
}

/// Starts a command as [`spawn`] does, with nothing on stdin, and stdout and stderr in one pipe, so that both are read
/// in the order in which they were written.
///
/// # Errors
/// As for [`spawn`].
pub fn spawn_joined(spawn: &Spawn, supervisor: &Supervisor) -> io::Result<(Supervised, pipe::Receiver)> {
    let (reader, writer) = io::pipe()?;
    let output = pipe::Receiver::from_owned_fd(reader.into())?;
    let mut command = command(spawn, supervisor);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut command = tokio::process::Command::from(command);
    let (child, pid) = start(|| command.spawn(), Child::id)?;
    Ok((Supervised { child, pid, stdin: None, stdout: None, stderr: None }, output))
}

/// The supervisor's command line, with pipes, in a process group of its own.
pub(crate) fn command(spawn: &Spawn, supervisor: &Supervisor) -> Command {
    let mut command = command_line(spawn, supervisor);
    if let Some(cwd) = &spawn.cwd {
        command.current_dir(cwd);
    }
    command
        .env_clear()
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Starts a supervisor and notes it as ours.
pub(crate) fn start<C>(
    spawn: impl FnOnce() -> io::Result<C>,
    id: impl FnOnce(&C) -> Option<u32>,
) -> io::Result<(C, Option<Pid>)> {
    // Nobody may sweep between the start of a child and its registration.
    let mut registry = registry();
    // Whatever is here already is not below this supervisor.
    if registry.subreaper {
        registry.spare();
    }
    let child = spawn()?;
    let pid = id(&child).and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        registry.started.insert(pid.as_raw_nonzero().get());
    }
    Ok((child, pid))
}

/// SIGTERM, and SIGCONT, because one that was stopped does not hear it.
pub(crate) fn ask_to_end(pid: Pid) {
    let _ = kill_process(pid, Signal::TERM);
    let _ = kill_process(pid, Signal::CONT);
}

/// Takes a supervisor that was waited for, and swept after, off the list.
pub(crate) fn forget(pid: Pid) {
    registry().started.remove(&pid.as_raw_nonzero().get());
}

/// Notes that nobody will wait for a supervisor; it leaves the list once it is gone.
pub(crate) fn abandon(pid: Pid) {
    registry().unwatched.insert(pid.as_raw_nonzero().get());
}

#[cfg(target_os = "linux")]
fn command_line(spawn: &Spawn, supervisor: &Supervisor) -> Command {
    let mut command = Command::new(&supervisor.program);
    command.arg0("handraise").args(&supervisor.args).arg("--parent").arg(std::process::id().to_string());
    command.arg("--").arg(&spawn.program).args(&spawn.args);
    command
}

#[cfg(not(target_os = "linux"))]
fn command_line(spawn: &Spawn, _: &Supervisor) -> Command {
    let mut command = Command::new(&spawn.program);
    command.args(&spawn.args);
    command
}

impl Supervised {
    /// The supervisor's process id; `None` once it was waited for.
    pub fn supervisor_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the end, and ends what a supervisor that died early has left behind. Cancel-safe.
    ///
    /// # Errors
    /// When the operating system does not tell how it ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // A supervisor that exits has nothing left below it; one that was killed may have.
        if status.code().is_none() {
            sweep().await;
        }
        if let Some(pid) = self.pid.take() {
            forget(pid);
        }
        Ok(status)
    }

    /// Asks for an orderly end and waits for it. The supervisor needs at most
    /// [`GRACE`](crate::supervise::GRACE) and a moment, as long as processes die when killed.
    ///
    /// # Errors
    /// When the operating system does not tell how it ended.
    pub async fn stop(&mut self) -> io::Result<ExitStatus> {
        self.terminate();
        self.wait().await
    }

    /// Asks for an orderly end without waiting.
    pub fn terminate(&self) {
        // `id` is `None` once the process was reaped: its pid may then be somebody else's.
        if let (Some(_), Some(pid)) = (self.child.id(), self.pid) {
            ask_to_end(pid);
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.terminate();
        if let Some(pid) = self.pid {
            abandon(pid);
        }
    }
}

/// Kills the orphans that fell to us from a supervisor which was killed, until none is left.
async fn sweep() {
    let sweep = async {
        while kill_strays() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    if tokio::time::timeout(SWEEP, sweep).await.is_err() {
        warn_of_leftovers();
    }
}

/// Kills the orphans that are there now; false when there is none, or they are not ours to end.
pub(crate) fn kill_strays() -> bool {
    let registry = registry();
    let strays = if registry.subreaper { registry.strays() } else { Vec::new() };
    drop(registry);
    for stray in &strays {
        let _ = kill_process(*stray, Signal::KILL);
        let _ = waitpid(Some(*stray), WaitOptions::NOHANG);
    }
    !strays.is_empty()
}

pub(crate) fn warn_of_leftovers() {
    tracing::warn!("processes of a killed supervisor do not end after SIGKILL");
}
