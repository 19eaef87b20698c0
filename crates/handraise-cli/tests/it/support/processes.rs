//! Looking at processes and ending them.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wait_within;

/// Nothing may be left after this (quality.md, "Reliability").
const GONE: Duration = Duration::from_secs(2);

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

/// Any signal.
pub(crate) fn send(id: u32, signal: Signal) {
    kill_process(pid(id), signal).unwrap();
}

/// Whether our children hear SIGHUP. Under `nohup` they are started to ignore it, and do; that is said.
pub(crate) fn hears_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is_ignored = u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1;
    if is_ignored {
        println!("skipped: a closed terminal, because SIGHUP is ignored here, as under nohup");
    }
    !is_ignored
}

/// SIGTERM.
pub(crate) fn terminate(id: u32) {
    let _ = kill_process(pid(id), Signal::TERM);
}

/// SIGKILL.
pub(crate) fn kill(id: u32) {
    kill_process(pid(id), Signal::KILL).unwrap();
}

/// SIGSTOP.
pub(crate) fn pause(id: u32) {
    kill_process(pid(id), Signal::STOP).unwrap();
}

/// SIGCONT.
pub(crate) fn resume(id: u32) {
    kill_process(pid(id), Signal::CONT).unwrap();
}

/// Whether a process runs; a zombie that nobody has waited for does not.
pub(crate) fn alive(id: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Every process below one, itself excepted.
pub(crate) fn tree(id: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut left = vec![id];
    while let Some(next) = left.pop() {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{next}/task")) else { continue };
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse::<u32>().ok());
            for child in children {
                found.push(child);
                left.push(child);
            }
        }
    }
    found
}

/// None of these processes, of which there is one at least, is left in time.
#[track_caller]
pub(crate) fn assert_gone(processes: &[u32]) {
    assert!(!processes.is_empty(), "there was nothing to end");
    wait_within("end of every process", GONE, || {
        processes.iter().all(|process| !alive(*process)).then_some(())
    });
}
