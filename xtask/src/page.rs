//! Building the page, and what npm needs for it.

use anyhow::{Context as _, bail};

use crate::{
    commands::{Run, find_program},
    project::{Project, say},
};

/// The oldest Node that the page's tools take.
const OLDEST_NODE: (u32, u32) = (20, 19);

/// Why the page cannot be built here.
pub(crate) fn missing_tools(project: &Project) -> Option<String> {
    if find_program(project, "npm").is_none() {
        return Some("npm is not installed; install Node 20.19 or newer".to_owned());
    }
    match node_version(project) {
        Ok(version) if version >= OLDEST_NODE => None,
        Ok((major, minor)) => Some(format!("Node is {major}.{minor}; install Node 20.19 or newer")),
        Err(error) => Some(format!("Node does not run ({error:#}); install Node 20.19 or newer")),
    }
}

/// Builds the page into the server crate, from where it is embedded.
pub(crate) fn build(project: &Project) -> anyhow::Result<()> {
    if let Some(missing) = missing_tools(project) {
        bail!("{missing}");
    }
    install(project)?;
    Run::npm(project, &["run", "--silent", "build"]).succeed()
}

/// Installs the page's packages, unless the lockfile has not changed since.
pub(crate) fn install(project: &Project) -> anyhow::Result<()> {
    let lock = project.root.join("ui/package-lock.json");
    let stamp = project.root.join("ui/node_modules/.installed-from");
    let wanted = std::fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    say("installing the page's packages");
    // Packages must not run scripts of theirs on the machine of whoever builds.
    Run::npm(project, &["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).succeed()?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn node_version(project: &Project) -> anyhow::Result<(u32, u32)> {
    let output = Run::new(project, "node", &["--version"]).output()?;
    parse_version(&output).with_context(|| format!("it calls itself {:?}", output.trim()))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix('v')?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_says_its_version() {
        assert_eq!(parse_version("v20.19.2\n"), Some((20, 19)));
        assert_eq!(parse_version("20"), None);
    }
}
