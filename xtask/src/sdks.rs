//! The MCP SDKs as peers of the gateway: real clients and servers of every SDK, with `handraise mcp` in between.

use std::path::Path;

use crate::{
    commands::{Run, target_directory},
    project::Project,
};

/// The folder of the peers' programs and tests.
pub(crate) const FOLDER: &str = "peers/mcp";

/// The PyPI packages of the Python peers.
pub(crate) const REQUIREMENTS: &str = "peers/mcp/requirements.txt";

/// Builds handraise and the peer of the Rust SDK.
pub(crate) fn build(project: &Project) -> anyhow::Result<()> {
    let packages = ["--package", "handraise-cli", "--package", "handraise-rmcp-peer"];
    Run::cargo(project, &[&["build", "--bins"], &packages[..]].concat()).succeed()
}

/// Runs the peers' tests; without `python`, those of the Python SDKs are left out.
pub(crate) fn test(project: &Project, python: Option<&Path>) -> anyhow::Result<()> {
    let binaries = target_directory(project)?.join("debug");
    let mut run = Run::npm(project, FOLDER, &["test", "--silent"])
        .env("HANDRAISE_BIN", binaries.join("handraise"))
        .env("HANDRAISE_RMCP_PEER", binaries.join("handraise-rmcp-peer"));
    if let Some(python) = python {
        run = run.env("HANDRAISE_PEERS_PYTHON", python);
    }
    run.succeed()
}
