//! Where the project is, which files it has, and how to speak to whoever runs a task.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use handraise_config::Environment;

/// Folders that hold no source.
const NOT_SOURCE: &[&str] = &[".git", "artefacts", "dist", "node_modules"];

/// The checkout, and the environment of this run.
pub(crate) struct Project {
    /// The folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// The environment of this run.
    pub(crate) environment: Environment,
}

/// One source file.
pub(crate) struct SourceFile {
    /// Its path below the root, with `/` between folders.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl Project {
    /// Finds the checkout from this crate's own place in it.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
        Ok(Self { root: root.to_owned(), environment: Environment::of_process() })
    }

    /// Every text file of the checkout that is not built, sorted by path.
    pub(crate) fn source_files(&self) -> anyhow::Result<Vec<SourceFile>> {
        let mut files = Vec::new();
        self.walk(&self.root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn walk(&self, folder: &Path, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
        for entry in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let is_target = name == "target" || name.starts_with("target-");
                // The built page, except for the committed placeholder.
                let is_built = path.ends_with("handraise-server/page");
                if !is_target && !is_built && !NOT_SOURCE.contains(&name.as_ref()) {
                    self.walk(&path, files)?;
                }
            } else if kind.is_file() {
                let bytes =
                    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    let path = path.strip_prefix(&self.root)?.to_string_lossy().replace('\\', "/");
                    files.push(SourceFile { path, text });
                }
            }
        }
        Ok(())
    }
}

/// Says something to whoever runs the task. Tasks speak on stderr: stdout belongs to what they run.
pub(crate) fn say(line: &str) {
    // Nobody listens when stderr is closed; the exit code still tells.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
