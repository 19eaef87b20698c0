//! A running inbox to be measured.

use std::{path::Path, process::Command};

use anyhow::Context as _;

use crate::inbox::{self, Place};

/// The binary, with bounds that no measurement comes to.
fn place(binary: &Path, folder: &Path) -> Place {
    let limits = [
        ("OPEN_ASKS", "1000000"),
        ("OPEN_BYTES", "17179869184"),
        ("SESSION_OPEN_ASKS", "1000000"),
        ("ASKS_PER_SECOND", "1000000"),
        ("TOKEN_OPEN_ASKS", "10000000"),
        ("TOKEN_ASKS", "100000000"),
        ("TOKEN_BYTES", "1099511627776"),
    ];
    limits.iter().fold(Place::new(binary, folder), |place, (limit, value)| {
        place.with(&format!("HANDRAISE_LIMITS__{limit}"), value)
    })
}

/// A command of the binary, with a data directory in `folder`.
pub(super) fn handraise(binary: &Path, folder: &Path) -> Command {
    place(binary, folder).command()
}

/// A running inbox.
pub(super) struct Up {
    up: inbox::Up,
    /// Where it is reached.
    pub(super) url: String,
}

impl Up {
    /// Starts it and waits until it says that it is ready.
    pub(super) fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let up = place(binary, folder).up()?;
        Ok(Self { url: up.url.clone(), up })
    }

    /// Processor time that it has used, of all its threads, in nanoseconds.
    pub(super) fn processor_time(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/stat", self.up.child.0.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        // The name in parentheses may hold spaces.
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        // Linux counts these in hundredths of a second, whatever its own ticks are.
        Ok(ticks * 10_000_000)
    }

    /// Memory that it holds, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.up.child.0.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024)
    }

    /// How many asks it says are open.
    pub(super) fn open(&self) -> anyhow::Result<usize> {
        let text = self.up.connect("")?.text("/metrics")?;
        let count = text.lines().find_map(|line| line.strip_prefix("handraise_asks_open "));
        count
            .and_then(|count| count.trim().parse().ok())
            .context("the metrics do not say how many asks are open")
    }
}

/// A token of that scope.
pub(super) fn token(binary: &Path, folder: &Path, scope: &str) -> anyhow::Result<String> {
    place(binary, folder).token(scope)
}
