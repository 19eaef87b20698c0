//! `cargo xtask tidy`: rules about the source itself that no compiler checks.
//!
//! Each rule is a function from what it looks at to a list of complaints, so that it can be tested without a
//! checkout. Known offenders are listed beside their rule; one that no longer offends must leave the list, so the
//! lists only shrink.

mod dependencies;
mod layers;
mod metadata;
mod modules;
mod words;

use anyhow::bail;

use crate::{
    commands::Run,
    project::{Project, say},
};

/// Runs every rule.
pub(crate) fn run(project: &Project) -> anyhow::Result<()> {
    let metadata = Run::cargo(project, &["metadata", "--format-version", "1", "--locked"]).output()?;
    let metadata: metadata::Metadata = serde_json::from_str(&metadata)?;
    let files = project.source_files()?;

    let mut complaints = layers::check(&metadata);
    complaints.extend(dependencies::check(&metadata));
    complaints.extend(modules::check(&files));
    complaints.extend(words::check(&files, &project.root.to_string_lossy()));
    for complaint in &complaints {
        say(complaint);
    }
    if complaints.is_empty() { Ok(()) } else { bail!("tidy: {} to put right", complaints.len()) }
}
