//! What processes hold in memory, as the kernel counts it.
//!
//! Pages of a file that only one process maps count as that process's own, although nobody wrote them: of a single gateway
//! that is most of its program text. [`written`](Memory::written) is what does not come from a file, and what a second
//! gateway on the same machine costs anew.

use std::fs;

/// Kilobytes of several processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// What nobody else holds, of the process that holds most: `Private_Clean` and `Private_Dirty`.
    pub(super) private: u64,
    /// What was written, of all of them: `Private_Dirty`.
    pub(super) written: u64,
    /// What is resident (`VmRSS`), pages that are shared counted once for each.
    pub(super) resident: u64,
}

impl Memory {
    /// A process and what is below it, without commands that end in `except`.
    pub(super) fn of(process: u32, except: &str) -> Self {
        let mut sum = Self::default();
        let mut left = vec![process];
        while let Some(process) = left.pop() {
            let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let is_excepted = command.trim_end_matches('\0').rsplit('\0').next() == Some(except)
                && !command.contains("\0mcp\0")
                && !command.contains("supervise");
            if !is_excepted {
                let one = Self::of_one(process);
                sum.private = sum.private.max(one.private);
                sum.written += one.written;
                sum.resident += one.resident;
            }
            let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
            for task in tasks {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                left.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
        }
        sum
    }

    /// One process alone.
    pub(super) fn of_one(process: u32) -> Self {
        let map = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
        let value = |name: &str| {
            let line = map.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        let written = value("Private_Dirty:");
        Self { private: value("Private_Clean:") + written, written, resident: value("Rss:") }
    }

    /// The larger of both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            private: self.private.max(other.private),
            written: self.written.max(other.written),
            resident: self.resident.max(other.resident),
        }
    }
}
