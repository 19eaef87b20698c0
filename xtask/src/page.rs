//! Building the page, and what npm needs for it.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

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

/// Installs the page's packages as its lockfile says, unless that was done before.
///
/// `npm ci` would do the same, but refuses a lockfile in which an optional package for another system is missing
/// because a registry does not have it.
pub(crate) fn install(project: &Project) -> anyhow::Result<()> {
    let folder = project.root.join("ui");
    let lock = read(&folder.join("package-lock.json"))?;
    check_lock(&read(&folder.join("package.json"))?, &lock)?;
    let stamp = folder.join("node_modules/.installed-from");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    say("installing the page's packages");
    // Packages must not run scripts of theirs on the machine of whoever builds.
    Run::npm(project, &["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]).succeed()?;
    std::fs::write(&stamp, lock).with_context(|| format!("cannot write {}", stamp.display()))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Refuses a lockfile that was made for other packages.
fn check_lock(manifest: &str, lock: &str) -> anyhow::Result<()> {
    let manifest: Value = serde_json::from_str(manifest).context("ui/package.json")?;
    let lock: Value = serde_json::from_str(lock).context("ui/package-lock.json")?;
    for kind in ["dependencies", "devDependencies"] {
        if manifest[kind] != lock["packages"][""][kind] {
            bail!(
                "ui/package-lock.json is not of ui/package.json; run `npm install` in ui and commit the lockfile"
            );
        }
    }
    Ok(())
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
    fn a_lockfile_of_other_packages_is_refused() {
        let manifest = r#"{"dependencies": {"a": "1"}}"#;
        assert!(check_lock(manifest, r#"{"packages": {"": {"dependencies": {"a": "1"}}}}"#).is_ok());
        assert!(check_lock(manifest, r#"{"packages": {"": {"dependencies": {"a": "2"}}}}"#).is_err());
    }

    #[test]
    fn node_says_its_version() {
        assert_eq!(parse_version("v20.19.2\n"), Some((20, 19)));
        assert_eq!(parse_version("20"), None);
    }
}
