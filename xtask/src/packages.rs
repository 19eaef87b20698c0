//! Packages of other languages that the tests need: from npm beside their package.json, from PyPI into a folder of
//! their own under the target directory, each as its lockfile says.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::{
    commands::{Run, find_program, target_directory},
    project::{Project, say},
};

/// The oldest Node that the page's tools and the SDKs take.
const OLDEST_NODE: (u32, u32) = (20, 19);

/// The oldest Python that the SDKs' programs take.
const OLDEST_PYTHON: (u32, u32) = (3, 11);

/// Why nothing can be done with npm here.
pub(crate) fn missing_node(project: &Project) -> Option<String> {
    if find_program(project, "npm").is_none() {
        return Some("npm is not installed; install Node 20.19 or newer".to_owned());
    }
    match version(project, "node") {
        Ok(version) if version >= OLDEST_NODE => None,
        Ok((major, minor)) => Some(format!("Node is {major}.{minor}; install Node 20.19 or newer")),
        Err(error) => Some(format!("Node does not run ({error:#}); install Node 20.19 or newer")),
    }
}

/// Installs what a folder's package-lock.json names into its node_modules, unless that was done before.
///
/// `npm ci` would do the same, but refuses a lockfile in which an optional package for another system is missing
/// because a registry does not have it.
pub(crate) fn install_npm(project: &Project, folder: &str) -> anyhow::Result<()> {
    let place = project.root.join(folder);
    let lock = read(&place.join("package-lock.json"))?;
    check_lock(folder, &read(&place.join("package.json"))?, &lock)?;
    let stamp = place.join("node_modules/.installed-from");
    if is_stamped(&stamp, &lock) {
        return Ok(());
    }
    say(&format!("installing the npm packages of {folder}"));
    // Packages must not run scripts of theirs on the machine of whoever builds.
    let arguments = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
    Run::npm(project, folder, &arguments).succeed()?;
    write(&stamp, &lock)
}

/// Installs what a requirements.txt with hashes names into a virtual environment under the target directory, unless
/// that was done before; gives its Python.
///
/// # Errors
/// When there is no Python that is new enough, or the packages cannot be had.
pub(crate) fn install_python(project: &Project, requirements: &str) -> anyhow::Result<PathBuf> {
    match version(project, "python3") {
        Ok(version) if version >= OLDEST_PYTHON => {}
        Ok((major, minor)) => bail!("Python is {major}.{minor}; install Python 3.11 or newer"),
        Err(_) => bail!("Python is not installed; install Python 3.11 or newer with its venv module"),
    }
    let lock = read(&project.root.join(requirements))?;
    let place = target_directory(project)?.join("peers/python");
    let python = place.join("bin/python");
    let stamp = place.join(".installed-from");
    if is_stamped(&stamp, &lock) && python.exists() {
        return Ok(python);
    }
    say(&format!("installing the PyPI packages of {requirements}"));
    let folder = place.to_str().context("the target directory's name is no UTF-8")?;
    Run::new(project, "python3", &["-m", "venv", "--clear", folder]).succeed()?;
    let program = python.to_str().context("the target directory's name is no UTF-8")?;
    // Wheels only: a source package would run a script of its own.
    let pip = ["-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:", "--requirement"];
    Run::new(project, program, &[&pip[..], &[requirements]].concat()).succeed()?;
    write(&stamp, &lock)?;
    Ok(python)
}

fn is_stamped(stamp: &Path, lock: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|installed| installed == lock)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses a lockfile that was made for other packages.
fn check_lock(folder: &str, manifest: &str, lock: &str) -> anyhow::Result<()> {
    let manifest: Value = serde_json::from_str(manifest).context("package.json")?;
    let lock: Value = serde_json::from_str(lock).context("package-lock.json")?;
    for kind in ["dependencies", "devDependencies"] {
        if manifest[kind] != lock["packages"][""][kind] {
            bail!(
                "{folder}/package-lock.json is not of {folder}/package.json; run `npm install` in {folder} and commit \
                 the lockfile"
            );
        }
    }
    Ok(())
}

/// The version that a program says it has, major and minor.
pub(crate) fn version(project: &Project, program: &str) -> anyhow::Result<(u32, u32)> {
    let output = Run::new(project, program, &["--version"]).output()?;
    parse_version(&output).with_context(|| format!("it calls itself {:?}", output.trim()))
}

/// Reads `v20.19.2` as Node writes it, and `Python 3.11.7` as Python does.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let text = text.trim();
    let mut parts = text.strip_prefix('v').or_else(|| text.strip_prefix("Python "))?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lockfile_of_other_packages_is_refused() {
        let manifest = r#"{"dependencies": {"a": "1"}}"#;
        assert!(check_lock("ui", manifest, r#"{"packages": {"": {"dependencies": {"a": "1"}}}}"#).is_ok());
        assert!(check_lock("ui", manifest, r#"{"packages": {"": {"dependencies": {"a": "2"}}}}"#).is_err());
    }

    #[test]
    fn programs_say_their_version() {
        assert_eq!(parse_version("v20.19.2\n"), Some((20, 19)));
        assert_eq!(parse_version("Python 3.11.7\n"), Some((3, 11)));
        assert_eq!(parse_version("20"), None);
    }
}
