//! A running inbox to be measured.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, bail};

use crate::http::Connection;

/// The binary, with a data directory in `folder` and bounds that no measurement comes to.
pub(super) fn handraise(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    let limit = |name: &str| format!("HANDRAISE_LIMITS__{name}");
    command
        .env("HANDRAISE_DATA_DIR", folder.join("data"))
        .env("XDG_CONFIG_HOME", folder)
        .env("HANDRAISE_LOG", "warn")
        .env(limit("OPEN_ASKS"), "1000000")
        .env(limit("OPEN_BYTES"), "17179869184")
        .env(limit("SESSION_OPEN_ASKS"), "1000000")
        .env(limit("ASKS_PER_SECOND"), "1000000")
        .env(limit("TOKEN_OPEN_ASKS"), "10000000")
        .env(limit("TOKEN_ASKS"), "100000000")
        .env(limit("TOKEN_BYTES"), "1099511627776")
        .stdin(Stdio::null());
    command
}

/// A running inbox.
pub(super) struct Up {
    child: Child,
    /// Where it is reached.
    pub(super) url: String,
}

impl Up {
    /// Starts it and waits until it says that it is ready.
    pub(super) fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut child = handraise(binary, folder)
            .args(["up", "--no-open", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let mut link = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut link)?;
        }
        let url = link.split("/#").next().unwrap_or_default().to_owned();
        let up = Self { child, url };
        Connection::open(&up.url, "")?.call("GET", "/readyz", "")?;
        Ok(up)
    }

    /// Processor time that it has used, of all its threads, in nanoseconds.
    pub(super) fn processor_time(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        // The name in parentheses may hold spaces.
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        // Linux counts these in hundredths of a second, whatever its own ticks are.
        Ok(ticks * 10_000_000)
    }

    /// Memory that it holds, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024)
    }

    /// How many asks it says are open.
    pub(super) fn open(&self) -> anyhow::Result<usize> {
        let text = Connection::open(&self.url, "")?.text("/metrics")?;
        let count = text.lines().find_map(|line| line.strip_prefix("handraise_asks_open "));
        count
            .and_then(|count| count.trim().parse().ok())
            .context("the metrics do not say how many asks are open")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    let _ = child.wait();
}

/// A token of that scope.
pub(super) fn token(binary: &Path, folder: &Path, scope: &str) -> anyhow::Result<String> {
    let output = handraise(binary, folder)
        .args(["token", "create", "--scope", scope])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("no token was made");
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A child that is ended with its measurement.
pub(super) struct Ended(pub(super) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}
