//! The generated files: written, or compared with what is committed.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    commands::Run,
    project::{Project, say},
    typescript,
};

/// What the product says about itself (`crates/handraise-cli/examples/describe.rs`).
#[derive(Deserialize)]
struct Description {
    /// The HTTP API.
    openapi: Value,
    /// One page per command, by file name.
    commands: BTreeMap<String, String>,
}

/// The folder whose pages are all generated, so that one of a removed command is noticed.
const COMMAND_PAGES: &str = "docs/cli";

/// Writes them, or compares them with what is committed.
pub(crate) fn run(project: &Project, check: bool) -> anyhow::Result<()> {
    let describe = &["run", "--quiet", "--package", "handraise-cli", "--example", "describe"];
    let (files, stale) = current(project, Run::cargo(project, describe))?;
    if check { compare(project, &files, &stale) } else { write(project, &files, &stale) }
}

/// Compares them with what is committed, by what was built into `built`.
pub(crate) fn check(project: &Project, built: &Path) -> anyhow::Result<()> {
    let describe = built.join("examples/describe");
    let describe = describe.to_str().context("the target directory's name is no UTF-8")?;
    let (files, stale) = current(project, Run::new(project, describe, &[]))?;
    compare(project, &files, &stale)
}

/// The files as they should be, and pages that should not be.
fn current(project: &Project, describe: Run) -> anyhow::Result<(BTreeMap<String, String>, Vec<String>)> {
    let description: Description =
        serde_json::from_str(&describe.output()?).context("the description is no JSON")?;
    let files = files(&description)?;
    let stale = stale_pages(&project.root.join(COMMAND_PAGES), &files)?;
    Ok((files, stale))
}

fn files(description: &Description) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::from([
        ("docs/configuration.md".to_owned(), handraise_config::reference::page()),
        ("docs/openapi.json".to_owned(), serde_json::to_string_pretty(&description.openapi)? + "\n"),
        ("ui/src/api.generated.ts".to_owned(), typescript::module(&description.openapi)?),
    ]);
    for (name, page) in &description.commands {
        files.insert(format!("{COMMAND_PAGES}/{name}"), page.clone());
    }
    Ok(files)
}

/// Pages of commands that are no more.
fn stale_pages(folder: &Path, files: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
    let Ok(entries) = folder.read_dir() else { return Ok(Vec::new()) };
    let mut stale = Vec::new();
    for entry in entries {
        let path = format!("{COMMAND_PAGES}/{}", entry?.file_name().to_string_lossy());
        if !files.contains_key(&path) {
            stale.push(path);
        }
    }
    Ok(stale)
}

fn write(project: &Project, files: &BTreeMap<String, String>, stale: &[String]) -> anyhow::Result<()> {
    for (path, text) in files {
        let full = project.root.join(path);
        if std::fs::read_to_string(&full).is_ok_and(|current| current == *text) {
            continue;
        }
        if let Some(folder) = full.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&full, text).with_context(|| format!("cannot write {}", full.display()))?;
        say(&format!("wrote {path}"));
    }
    for path in stale {
        std::fs::remove_file(project.root.join(path)).with_context(|| format!("cannot remove {path}"))?;
        say(&format!("removed {path}"));
    }
    Ok(())
}

fn compare(project: &Project, files: &BTreeMap<String, String>, stale: &[String]) -> anyhow::Result<()> {
    let differs = |(path, text): (&String, &String)| {
        let same = std::fs::read_to_string(project.root.join(path)).is_ok_and(|current| current == *text);
        (!same).then(|| path.clone())
    };
    let wrong: Vec<String> = files.iter().filter_map(differs).chain(stale.iter().cloned()).collect();
    if !wrong.is_empty() {
        bail!("{} would change; run `cargo xtask generate` and commit what it writes", wrong.join(", "));
    }
    Ok(())
}
