//! An inbox of a task's own: the real binary, with a folder that holds all that it reads and writes.

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::http::Connection;

/// The binary, the folder in which it runs, and what its environment has besides.
#[derive(Clone)]
pub(crate) struct Place {
    binary: PathBuf,
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Place {
    /// A place in a folder that exists.
    pub(crate) fn new(binary: &Path, folder: &Path) -> Self {
        Self { binary: binary.to_owned(), folder: folder.to_owned(), variables: Vec::new() }
    }

    /// Sets a variable for every command.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where the inbox keeps its data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The binary with nothing of our own environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("HOME", &self.folder)
            .env("HANDRAISE_DATA_DIR", self.data_dir())
            .env("HANDRAISE_LOG", "warn")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Starts the inbox and waits until it says that it is ready. What it logs is added to `up.log`.
    pub(crate) fn up(&self) -> anyhow::Result<Up> {
        let log = File::options().create(true).append(true).open(self.folder.join("up.log"))?;
        let mut child = self
            .command()
            .args(["up", "--no-open", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", self.binary.display()))?;
        let mut link = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut link)?;
        }
        let url = link.split("/#").next().unwrap_or_default().to_owned();
        let up = Up { child: Ending(child), url };
        up.connect("")?.call("GET", "/readyz", "")?;
        Ok(up)
    }

    /// A new token of this scope.
    pub(crate) fn token(&self, scope: &str) -> anyhow::Result<String> {
        let output =
            self.command().args(["token", "create", "--scope", scope]).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("no token was made");
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// A running inbox; it is ended with this.
pub(crate) struct Up {
    /// Its process.
    pub(crate) child: Ending,
    /// `http://HOST:PORT`.
    pub(crate) url: String,
}

impl Up {
    /// A connection that shows this token.
    pub(crate) fn connect(&self, token: &str) -> anyhow::Result<Connection> {
        Connection::open(&self.url, token)
    }
}

/// A child that is ended with what it was started for.
pub(crate) struct Ending(pub(crate) Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // The id of one that was waited for may be another process's by now.
        if matches!(self.0.try_wait(), Ok(None)) {
            send(&self.0, Signal::TERM);
            let _ = self.0.wait();
        }
    }
}

/// Sends a signal to a child that was not waited for. One that has ended stays a zombie until then, so no other
/// process can be hit.
pub(crate) fn send(child: &Child, signal: Signal) {
    if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(id, signal);
    }
}

/// Ids of processes whose environment has this variable with this value; of those that we may look at.
pub(crate) fn processes_with(name: &str, value: &str) -> Vec<i32> {
    let wanted = format!("{name}={value}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| OsStr::new(&wanted).as_encoded_bytes() == entry)
    })
    .collect()
}
