//! Nothing is left when one of us is killed (S35).

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{PATIENCE, Place, fixture};

/// How long anything may outlive any of us.
const LIMIT: Duration = Duration::from_secs(2);

/// A process that runs an agent, and the pids below it: the supervisor's, the agent's, and that of a process which
/// the agent has sent into a session of its own.
struct Family {
    run: Child,
    supervisor: i32,
    agent: i32,
    detached: i32,
}

fn start(place: &Place) -> Family {
    let pids = place.dir.path().join("detached");
    // The agent's wrapper leaves a process behind that nobody waits for and that ignores signals.
    let wrapper = format!(
        "setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > \"{0}.new\"; mv \"{0}.new\" \"{0}\"; while :; do sleep 1000; done' & \
         exec '{1}' fake-agent --script wait-for-cancel",
        pids.display(),
        fixture().display()
    );
    let mut run = Command::new(fixture())
        .arg("run")
        .arg(place.work())
        .args(["go", "sh", "-c", &wrapper])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(run.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "waiting\n");
    wait_until(PATIENCE, "the detached process has started", || pids.exists());
    let detached = fs::read_to_string(pids).unwrap().trim().parse().unwrap();
    let supervisor = children(i32::try_from(run.id()).unwrap())[0];
    let agent = children(supervisor).into_iter().find(|pid| *pid != detached).unwrap();
    Family { run, supervisor, agent, detached }
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .flat_map(|task| {
            let list = fs::read_to_string(task.unwrap().path().join("children")).unwrap();
            list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>()
        })
        .collect()
}

fn wait_until(limit: Duration, what: &str, mut is_done: impl FnMut() -> bool) {
    let step = Duration::from_millis(5);
    for _ in 0..limit.as_millis() / step.as_millis() {
        if is_done() {
            return;
        }
        std::thread::sleep(step);
    }
    panic!("not within {limit:?}: {what}");
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

impl Drop for Family {
    fn drop(&mut self) {
        let _ = self.run.kill();
        let _ = self.run.wait();
    }
}

#[test]
fn s35_nothing_is_left_when_agentctl_is_killed() {
    let place = Place::new();
    let family = start(&place);
    let pids = [family.supervisor, family.agent, family.detached];
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    kill(i32::try_from(family.run.id()).unwrap());
    wait_until(LIMIT, "nothing is left", || !pids.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn s35_nothing_is_left_when_the_supervisor_is_killed_and_the_run_ends_with_an_error() {
    let place = Place::new();
    let mut family = start(&place);
    let pids = [family.supervisor, family.agent, family.detached];
    kill(family.supervisor);
    wait_until(LIMIT, "nothing is left", || !pids.iter().any(|pid| is_alive(*pid)));
    let mut status = None;
    wait_until(PATIENCE, "the run ends", || {
        status = family.run.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(1));
}

#[test]
fn s35_nothing_is_left_when_the_agent_is_killed() {
    let place = Place::new();
    let mut family = start(&place);
    let pids = [family.supervisor, family.agent, family.detached];
    kill(family.agent);
    wait_until(LIMIT, "nothing is left", || !pids.iter().any(|pid| is_alive(*pid)));
    assert_eq!(family.run.wait().unwrap().code(), Some(1));
}
