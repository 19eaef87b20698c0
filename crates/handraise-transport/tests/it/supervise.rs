//! Nothing is left, whoever dies first.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use handraise_transport::{
    spawn::{Spawn, Supervisor, spawn},
    supervise::{NOT_FOUND, NOT_STARTED},
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;

const FIXTURE: &str = env!("CARGO_BIN_EXE_handraise-transport-supervise");
/// S35: how long anything may outlive any of us.
const LIMIT: Duration = Duration::from_secs(2);
/// For what has no limit of its own.
const PATIENCE: Duration = Duration::from_secs(20);

/// A family that does its best to survive: a shell that ignores signals, a child of it, and a grandchild in a
/// session of its own whose parent has gone. Each writes its pid into `dir`.
fn stubborn(dir: &Path) -> String {
    format!(
        "cd '{dir}'; trap '' TERM INT HUP
        sh -c 'trap \"\" TERM INT HUP; echo $$ > child; while :; do sleep 1000; done' &
        setsid sh -c 'sh -c \"trap \\\"\\\" TERM INT HUP; echo \\$\\$ > orphan; while :; do sleep 1000; done\" & exit' &
        echo $$ > main
        while :; do sleep 1000; done",
        dir = dir.display()
    )
}

#[expect(clippy::disallowed_methods, reason = "bounds a wait for real processes")]
fn wait_until(limit: Duration, what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn read_pid(dir: &Path, name: &str) -> Option<i32> {
    fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok()
}

fn family(dir: &Path) -> Vec<i32> {
    wait_until(PATIENCE, "the family has started", || {
        ["main", "child", "orphan"].iter().all(|name| read_pid(dir, name).is_some())
    });
    ["main", "child", "orphan"].iter().filter_map(|name| read_pid(dir, name)).collect()
}

/// Whether the process is there and not merely waiting to be reaped.
fn is_alive(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn all_gone(pids: &[i32]) {
    wait_until(LIMIT, &format!("of {pids:?} nothing is left"), || !pids.iter().any(|pid| is_alive(*pid)));
}

/// The parent of the fixture, with its supervisor's pid. Killed when dropped.
struct Parent {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    supervisor: i32,
}

impl Parent {
    fn start(script: &str) -> Self {
        Self::start_with(&["parent", script])
    }

    fn start_with(args: &[&str]) -> Self {
        let mut command = Command::new(FIXTURE);
        let mut process = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = lines.next().unwrap().unwrap();
        let supervisor = said.strip_prefix("supervisor ").unwrap().parse().unwrap();
        Self { process, lines, supervisor }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn s35_nothing_is_left_when_the_parent_is_killed() {
    let dir = TempDir::new().unwrap();
    let parent = Parent::start(&stubborn(dir.path()));
    let mut pids = family(dir.path());
    pids.push(parent.supervisor);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    kill(parent.pid(), Signal::KILL);
    all_gone(&pids);
}

#[test]
fn s35_nothing_is_left_when_the_supervisor_is_killed() {
    let dir = TempDir::new().unwrap();
    let mut parent = Parent::start(&stubborn(dir.path()));
    let pids = family(dir.path());
    kill(parent.supervisor, Signal::KILL);
    all_gone(&pids);
    assert_eq!(parent.lines.next().unwrap().unwrap(), "waited");
    let left = fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.pid())).unwrap();
    assert_eq!(left.trim(), "", "not even a zombie is left");
}

#[test]
fn s35_nothing_is_left_when_another_command_starts_before_anybody_saw_the_supervisor_die() {
    let dir = TempDir::new().unwrap();
    let other = format!("echo $$ > '{}/other'; while :; do sleep 1000; done", dir.path().display());
    let mut parent = Parent::start_with(&["parent", &stubborn(dir.path()), &other]);
    let pids = family(dir.path());
    kill(parent.supervisor, Signal::KILL);
    wait_until(PATIENCE, "the supervisor is dead", || !is_alive(parent.supervisor));
    parent.process.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(parent.lines.next().unwrap().unwrap(), "waited");
    all_gone(&pids);
    // The other one is another's, and goes on.
    wait_until(PATIENCE, "the other command runs", || read_pid(dir.path(), "other").is_some());
    assert!(is_alive(read_pid(dir.path(), "other").unwrap()));
}

#[test]
fn s35_nothing_is_left_when_the_supervisor_is_told_to_end() {
    let dir = TempDir::new().unwrap();
    let mut parent = Parent::start(&stubborn(dir.path()));
    let pids = family(dir.path());
    kill(parent.supervisor, Signal::TERM);
    all_gone(&pids);
    assert_eq!(parent.lines.next().unwrap().unwrap(), "waited");
}

#[test]
fn s35_nothing_is_left_when_the_command_is_killed() {
    let dir = TempDir::new().unwrap();
    let mut parent = Parent::start(&stubborn(dir.path()));
    let pids = family(dir.path());
    kill(read_pid(dir.path(), "main").unwrap(), Signal::KILL);
    all_gone(&pids);
    assert_eq!(parent.lines.next().unwrap().unwrap(), "waited");
}

#[test]
fn s35_an_orderly_end_lets_the_command_finish() {
    let dir = TempDir::new().unwrap();
    let script = format!(
        "cd '{}'; trap 'echo done > ended; exit 0' TERM; echo $$ > main; while :; do sleep 0.01; done",
        dir.path().display()
    );
    let mut parent = Parent::start(&script);
    wait_until(PATIENCE, "the command has started", || read_pid(dir.path(), "main").is_some());
    kill(parent.supervisor, Signal::TERM);
    assert_eq!(parent.lines.next().unwrap().unwrap(), "waited");
    assert_eq!(fs::read_to_string(dir.path().join("ended")).unwrap(), "done\n");
}

fn order(program: &str, args: &[&str]) -> Spawn {
    Spawn {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: None,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("KEPT".into(), "yes".into())],
    }
}

fn supervisor() -> Supervisor {
    Supervisor::other(FIXTURE, ["supervise".into()])
}

/// Runs a command to its end: status code, stdout, stderr.
async fn run(order: &Spawn) -> (Option<i32>, String, String) {
    let mut child = spawn(order, &supervisor()).unwrap();
    drop(child.stdin.take());
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    let status = child.wait().await.unwrap();
    (status.code(), out, err)
}

#[tokio::test]
async fn the_commands_status_and_pipes_come_through() {
    let seen = run(&order("sh", &["-c", "echo out; echo err >&2; exit 7"])).await;
    assert_eq!(seen, (Some(7), "out\n".into(), "err\n".into()));
    let seen = run(&order("sh", &["-c", "kill -9 $$"])).await;
    assert_eq!(seen.0, Some(128 + 9));
}

#[tokio::test]
async fn s7_the_command_sees_the_given_environment_and_no_other() {
    let (_, out, _) = run(&order("env", &[])).await;
    assert!(out.lines().any(|line| line == "KEPT=yes"), "{out}");
    assert!(out.lines().all(|line| line.starts_with("KEPT=") || line.starts_with("PATH=")), "{out}");
}

#[tokio::test]
async fn a_command_that_cannot_start_says_so() {
    let (code, _, err) = run(&order("no-such-command-here", &[])).await;
    assert_eq!(code, Some(i32::from(NOT_FOUND)));
    assert!(err.starts_with("handraise supervise: cannot start no-such-command-here: "), "{err}");
    let (code, _, _) = run(&order("/dev/null", &[])).await;
    assert_eq!(code, Some(i32::from(NOT_STARTED)));
}

#[tokio::test]
async fn a_command_that_closes_its_stdout_is_seen_to() {
    let mut child = spawn(&order("sh", &["-c", "exec >&-; read line"]), &supervisor()).unwrap();
    let mut out = String::new();
    let reading = child.stdout.take().unwrap().read_to_string(&mut out).await;
    assert_eq!(reading.unwrap(), 0, "the supervisor keeps no copy of the pipe");
    drop(child.stdin.take());
    assert!(child.wait().await.unwrap().code().is_some());
}

#[tokio::test]
async fn a_dropped_child_is_asked_to_end() {
    let child = spawn(&order("sh", &["-c", "while :; do sleep 1000; done"]), &supervisor()).unwrap();
    let pid = i32::try_from(child.supervisor_id().unwrap()).unwrap();
    drop(child);
    all_gone(&[pid]);
}

#[test]
fn a_supervisor_whose_parent_is_another_starts_nothing() {
    let dir = TempDir::new().unwrap();
    let started = dir.path().join("started");
    let output = Command::new(FIXTURE)
        .args(["supervise", "--parent", "1", "--", "touch"])
        .arg(&started)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "handraise supervise: the parent, process 1, has already ended\n");
    assert!(!started.exists());
}
