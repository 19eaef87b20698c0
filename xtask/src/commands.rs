//! Running other programs.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use crate::project::Project;

/// A program with arguments, to be run in the checkout.
pub(crate) struct Run {
    command: Command,
    shown: String,
}

impl Run {
    /// Prepares `program` in the checkout's root.
    pub(crate) fn new(project: &Project, program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.current_dir(&project.root).args(arguments).stdin(Stdio::null());
        Self { command, shown: [&[program], arguments].concat().join(" ") }
    }

    /// Prepares cargo, the one that runs this task.
    pub(crate) fn cargo(project: &Project, arguments: &[&str]) -> Self {
        Self::new(project, "cargo", arguments)
    }

    /// Prepares npm in a folder of the checkout.
    pub(crate) fn npm(project: &Project, folder: &str, arguments: &[&str]) -> Self {
        let mut run = Self::new(project, "npm", arguments);
        run.command.current_dir(project.root.join(folder));
        run
    }

    /// Sets a variable for it.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it to its end, its output going where ours goes.
    pub(crate) fn succeed(mut self) -> anyhow::Result<()> {
        let status = self.command.status().with_context(|| format!("cannot run {}", self.shown))?;
        if !status.success() {
            bail!("`{}` failed ({status})", self.shown);
        }
        Ok(())
    }

    /// Runs it to its end and takes what it prints.
    pub(crate) fn output(mut self) -> anyhow::Result<String> {
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.shown))?;
        if !output.status.success() {
            bail!("`{}` failed ({})", self.shown, output.status);
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", self.shown))
    }

    /// Becomes it: signals and the exit code are then its own. Returns only when it cannot be started.
    #[cfg(unix)]
    pub(crate) fn become_it(mut self) -> anyhow::Result<()> {
        use std::os::unix::process::CommandExt as _;
        let error = self.command.stdin(Stdio::inherit()).exec();
        Err(error).with_context(|| format!("cannot run {}", self.shown))
    }
}

/// A program in one of the folders where programs are.
pub(crate) fn find_program(project: &Project, name: &str) -> Option<std::path::PathBuf> {
    let folders = project.environment.get("PATH")?;
    std::env::split_paths(folders).map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory(project: &Project) -> anyhow::Result<std::path::PathBuf> {
    let metadata = Run::cargo(project, &["metadata", "--format-version", "1", "--no-deps"]).output()?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    metadata["target_directory"].as_str().map(Into::into).context("cargo metadata names no target directory")
}
