//! A network of its own, with nothing in it but the loopback interface.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::{
    commands::{Run, find_program},
    project::Project,
};

/// Runs this program again, with further arguments, where there is no network. Its exit status is passed on.
pub(super) fn enter(project: &Project, arguments: &[String]) -> anyhow::Result<ExitCode> {
    for program in ["unshare", "ip"] {
        if find_program(project, program).is_none() {
            bail!("{program} is not installed, so agents cannot be kept from the network");
        }
    }
    let mut command = Command::new("unshare");
    command.arg("--net");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let status = command.arg("--").arg(std::env::current_exe()?).args(arguments).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).context("ended by a signal")?;
    Ok(ExitCode::from(code))
}

/// Makes the loopback interface work, and checks that it is the only one.
pub(super) fn settle_in(project: &Project) -> anyhow::Result<()> {
    Run::new(project, "ip", &["link", "set", "lo", "up"]).succeed()?;
    let interfaces = std::fs::read_to_string("/proc/net/dev")?;
    let others: Vec<&str> = interfaces
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .filter(|name| *name != "lo")
        .collect();
    if !others.is_empty() {
        bail!("there are other interfaces than lo: {}", others.join(", "));
    }
    Ok(())
}
