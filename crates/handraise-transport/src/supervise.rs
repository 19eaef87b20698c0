//! The supervisor: a small process between us and a child, which leaves nothing behind (S35).
//!
//! It is our own binary under a hidden subcommand, `handraise supervise --parent PID -- CMD…`. It starts CMD in a
//! process group of its own with its own stdin, stdout and stderr, and then waits for the first of:
//!
//! - the parent ends, seen through a pidfd that is checked against `getppid`, so that a recycled process id is
//!   never watched;
//! - a SIGTERM, SIGINT or SIGHUP arrives: the parent wants an orderly end;
//! - CMD ends by itself.
//!
//! It then sends SIGTERM (and SIGCONT, for what was stopped) to what is left, waits [`GRACE`] (or [`LEFTOVER_GRACE`] when CMD ended by itself), and kills until nothing is left.
//! Processes that left CMD's group or session are found too: the supervisor is a child subreaper, so every orphan
//! below it becomes its own child, listed in `/proc/self/task/*/children`.
//!
//! `PR_SET_PDEATHSIG` would reach one process only, and fires when the *thread* that started it ends.
//!
//! Off Linux there is neither a pidfd nor a subreaper: [`spawn`](crate::spawn) starts commands without a supervisor
//! there, and a process that leaves its group survives.

use std::{
    ffi::{OsStr, OsString},
    io::Write as _,
    process::ExitCode,
    time::Duration,
};

/// How long the command may take to end after SIGTERM before it is killed.
pub const GRACE: Duration = Duration::from_millis(1000);
/// How long processes that outlive the command may take to end after SIGTERM before they are killed.
pub const LEFTOVER_GRACE: Duration = Duration::from_millis(250);

/// Exit status when the command is not there.
pub const NOT_FOUND: u8 = 127;
/// Exit status when the command cannot be started.
pub const NOT_STARTED: u8 = 126;
/// Exit status when the supervisor itself cannot do its work.
pub const FAILED: u8 = 125;

/// What the supervisor is to run.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    parent: i32,
    command: OsString,
    args: Vec<OsString>,
}

/// Runs the hidden subcommand; `args` are those after its name.
///
/// Exits with the command's status, 128 plus the signal that ended it, or one of [`NOT_FOUND`], [`NOT_STARTED`],
/// [`FAILED`] with a line on stderr.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match parse(args).and_then(|order| supervise(&order)) {
        Ok(status) => ExitCode::from(status),
        Err((status, message)) => {
            // Nobody is left to tell when stderr is gone.
            let _ = writeln!(std::io::stderr(), "handraise supervise: {message}");
            ExitCode::from(status)
        }
    }
}

type Failure = (u8, String);

fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Order, Failure> {
    let usage = || (FAILED, "usage: handraise supervise --parent PID -- CMD [ARG]…".to_owned());
    let mut args = args.into_iter();
    let mut word = || args.next().ok_or_else(usage);
    if word()? != OsStr::new("--parent") {
        return Err(usage());
    }
    let parent = word()?.to_str().and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0);
    let parent = parent.ok_or_else(usage)?;
    if word()? != OsStr::new("--") {
        return Err(usage());
    }
    let command = word()?;
    Ok(Order { parent, command, args: args.collect() })
}

#[cfg(target_os = "linux")]
use self::linux::supervise;

#[cfg(not(target_os = "linux"))]
fn supervise(_: &Order) -> Result<u8, Failure> {
    Err((FAILED, "works on Linux only".to_owned()))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs::File,
        io::{ErrorKind, Read as _},
        os::{
            fd::{AsFd as _, OwnedFd},
            unix::{net::UnixStream, process::CommandExt as _},
        },
        process::Command,
        time::Duration,
    };

    use rustix::{
        event::{PollFd, PollFlags, Timespec, poll},
        io::Errno,
        process::{
            Pid, PidfdFlags, Signal, WaitOptions, getppid, kill_process, kill_process_group, pidfd_open,
            set_child_subreaper, wait,
        },
    };
    use signal_hook::{
        consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM},
        low_level::pipe,
    };

    use super::{FAILED, Failure, GRACE, LEFTOVER_GRACE, NOT_FOUND, NOT_STARTED, Order};
    use crate::{
        clock::{Clock as _, SystemClock},
        descendants::children,
    };

    /// How often the sweep looks again when no signal wakes it.
    const LOOK_AGAIN: Duration = Duration::from_millis(20);

    pub(super) fn supervise(order: &Order) -> Result<u8, Failure> {
        let failed = |what: &'static str| move |error| (FAILED, format!("{what} failed: {error}"));
        let mut signals = Signals::register().map_err(failed("listening for signals"))?;
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| failed("becoming a subreaper")(errno.into()))?;
        let Some(parent) = watch_parent(order.parent) else {
            return Err((FAILED, format!("the parent, process {}, has already ended", order.parent)));
        };
        let mut family = Family { main: start(order)?, status: None };
        let grace = loop {
            let parent_ended = signals.wait(Some(&parent), None);
            family.reap();
            if parent_ended || signals.end {
                break GRACE;
            }
            if family.status.is_some() {
                break LEFTOVER_GRACE;
            }
        };
        family.end(&mut signals, grace);
        Ok(family.status.unwrap_or(FAILED))
    }

    /// A pidfd of the parent, unless that has ended: then the pid may already be somebody else's.
    fn watch_parent(pid: i32) -> Option<OwnedFd> {
        let parent = Pid::from_raw(pid)?;
        let watched = pidfd_open(parent, PidfdFlags::empty()).ok()?;
        (getppid() == Some(parent)).then_some(watched)
    }

    fn start(order: &Order) -> Result<Pid, Failure> {
        let child =
            Command::new(&order.command).args(&order.args).process_group(0).spawn().map_err(|error| {
                let has_path = order.command.as_encoded_bytes().contains(&b'/');
                let (status, question) = match error.kind() {
                    ErrorKind::NotFound if has_path => (NOT_FOUND, "; is that its path?"),
                    ErrorKind::NotFound => (NOT_FOUND, "; is it installed, and on PATH?"),
                    ErrorKind::PermissionDenied => (NOT_STARTED, "; may this user execute it?"),
                    _ => (NOT_STARTED, ""),
                };
                (status, format!("cannot start {}: {error}{question}", order.command.display()))
            })?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| (FAILED, "the command has no process id".to_owned()))?;
        // Our copies of the pipes would keep them open after the command closed its own.
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
        }
        Ok(pid)
    }

    /// The signals of this process, as bytes in two sockets.
    struct Signals {
        end_pipe: UnixStream,
        child_pipe: UnixStream,
        /// Whether one that asks for the end has come.
        end: bool,
    }

    impl Signals {
        fn register() -> std::io::Result<Self> {
            let (end_pipe, end_writer) = UnixStream::pair()?;
            let (child_pipe, child_writer) = UnixStream::pair()?;
            end_pipe.set_nonblocking(true)?;
            child_pipe.set_nonblocking(true)?;
            for signal in [SIGTERM, SIGINT, SIGHUP] {
                pipe::register(signal, end_writer.try_clone()?)?;
            }
            pipe::register(SIGCHLD, child_writer)?;
            Ok(Self { end_pipe, child_pipe, end: false })
        }

        /// Waits for a signal, for the parent's end (then true), or for `timeout`.
        fn wait(&mut self, parent: Option<&OwnedFd>, timeout: Option<Duration>) -> bool {
            let mut watched = vec![
                PollFd::new(&self.child_pipe, PollFlags::IN),
                PollFd::new(&self.end_pipe, PollFlags::IN),
            ];
            watched.extend(parent.map(|parent| PollFd::from_borrowed_fd(parent.as_fd(), PollFlags::IN)));
            let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
            // An interrupted or failed poll is looked at like a wake-up: the caller checks everything anyway.
            let _ = poll(&mut watched, timeout.as_ref());
            let parent_ended = watched.get(2).is_some_and(|parent| !parent.revents().is_empty());
            drain(&mut self.child_pipe);
            self.end |= drain(&mut self.end_pipe);
            parent_ended
        }
    }

    /// Empties a signal pipe; whether there was anything in it.
    fn drain(pipe: &mut UnixStream) -> bool {
        let mut bytes = [0; 64];
        let mut any = false;
        while pipe.read(&mut bytes).is_ok_and(|count| count > 0) {
            any = true;
        }
        any
    }

    /// The command and whatever descends from it.
    struct Family {
        main: Pid,
        status: Option<u8>,
    }

    impl Family {
        /// Takes the ended children out of the process table; false once there is no child at all.
        fn reap(&mut self) -> bool {
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some((pid, status))) => {
                        if pid == self.main {
                            let code = status
                                .exit_status()
                                .unwrap_or_else(|| 128 + status.terminating_signal().unwrap_or_default());
                            self.status = Some(u8::try_from(code).unwrap_or(FAILED));
                        }
                    }
                    Ok(None) => return true,
                    Err(Errno::INTR) => {}
                    Err(_) => return false,
                }
            }
        }

        /// SIGTERM, `grace`, then SIGKILL until no child is left.
        fn end(&mut self, signals: &mut Signals, grace: Duration) {
            self.signal(Signal::TERM);
            // Who was stopped does not hear it before.
            self.signal(Signal::CONT);
            let deadline = SystemClock.boot_millis() + u64::try_from(grace.as_millis()).unwrap_or(0);
            while self.reap() {
                let left = deadline.saturating_sub(SystemClock.boot_millis());
                if left == 0 {
                    break;
                }
                signals.wait(None, Some(Duration::from_millis(left)));
            }
            while self.reap() {
                self.signal(Signal::KILL);
                signals.wait(None, Some(LOOK_AGAIN));
            }
        }

        /// Signals the command's group and every child of ours. Children are ours to reap, so that none of these
        /// ids can have become somebody else's; the group's id is the command's, and is used only while the
        /// command is not reaped.
        fn signal(&self, signal: Signal) {
            if self.status.is_none() {
                let _ = kill_process_group(self.main, signal);
            }
            for child in children() {
                let _ = kill_process(child, signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: Option<(i32, &str, &[&str])>) {
        let order = parse(args.iter().map(OsString::from)).ok();
        let expected = expected.map(|(parent, command, args)| Order {
            parent,
            command: command.into(),
            args: args.iter().map(OsString::from).collect(),
        });
        assert_eq!(order, expected);
    }

    #[test]
    fn the_order_is_a_parent_and_a_command() {
        check(&["--parent", "17", "--", "sh", "-c", "true"], Some((17, "sh", &["-c", "true"])));
        check(&["--parent", "17", "--", "--", "--parent"], Some((17, "--", &["--parent"])));
        check(&["--parent", "0", "--", "sh"], None);
        check(&["--parent", "-4", "--", "sh"], None);
        check(&["--parent", "17", "--"], None);
        check(&["--parent", "17", "sh"], None);
        check(&["sh"], None);
        check(&[], None);
    }
}
