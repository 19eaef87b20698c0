//! Building the page.

use anyhow::bail;

use crate::{commands::Run, packages, project::Project};

/// The page's folder.
pub(crate) const FOLDER: &str = "ui";

/// Builds the page into the server crate, from where it is embedded.
pub(crate) fn build(project: &Project) -> anyhow::Result<()> {
    if let Some(missing) = packages::missing_node(project) {
        bail!("{missing}");
    }
    packages::install_npm(project, FOLDER)?;
    Run::npm(project, FOLDER, &["run", "--silent", "build"]).succeed()
}
