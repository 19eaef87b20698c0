//! The children of this process, as the kernel lists them.

use std::fs;

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, waitid},
};

/// Every child of this process, orphans adopted as a subreaper and ended but unreaped ones included.
///
/// Empty where the kernel does not list children (`CONFIG_PROC_CHILDREN`).
pub(crate) fn children() -> Vec<Pid> {
    // A program that starts its first child has none, and is told so at once.
    let looks = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if let Err(Errno::CHILD) = waitid(WaitId::All, looks) {
        return Vec::new();
    }
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .flatten()
        // A thread that ended meanwhile has handed its children on.
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(parse_pid).collect::<Vec<_>>())
        .collect()
}

/// Whether a process is there and has not ended.
pub(crate) fn is_running(pid: i32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name before it may hold anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn parse_pid(word: &str) -> Option<Pid> {
    word.parse().ok().and_then(Pid::from_raw)
}
