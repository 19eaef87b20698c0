//! The MCP SDKs as peers of the gateway: real clients and servers of every SDK, with `handraise mcp` in between.

use std::{
    env::consts::{ARCH, OS},
    path::{Path, PathBuf},
};

use crate::{commands::Run, packages, project::Project};

/// The folder of the peers' programs and tests.
pub(crate) const FOLDER: &str = "peers/mcp";

/// The PyPI packages of the Python peers.
pub(crate) const REQUIREMENTS: &str = "peers/mcp/requirements.txt";

/// What the conformance suite runs on; older ones do not start it.
const OLDEST_NODE_OF_THE_SUITE: (u32, u32) = (22, 0);

/// Why the conformance suite cannot run here, once the npm packages are installed. The tests skip it then.
pub(crate) fn missing_for_the_suite(project: &Project) -> Option<String> {
    missing(packages::version(project, "node").ok(), &packaged_node(&project.root))
}

/// The Node that npm may have installed beside the suite, under the names that Node has for systems and processors.
fn packaged_node(root: &Path) -> PathBuf {
    let system = if OS == "macos" { "darwin" } else { OS };
    let processor = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    root.join(FOLDER).join(format!("node_modules/node-{system}-{processor}/bin/node"))
}

fn missing(installed: Option<(u32, u32)>, packaged: &Path) -> Option<String> {
    if installed.is_some_and(|version| version >= OLDEST_NODE_OF_THE_SUITE) || packaged.exists() {
        return None;
    }
    let (major, _) = OLDEST_NODE_OF_THE_SUITE;
    Some(format!(
        "it needs Node {major}, and neither `node` is that nor has npm installed {}",
        packaged.display()
    ))
}

/// Runs the peers' tests with the binaries in `built`; without `python`, those of the Python SDKs are left out.
pub(crate) fn test(project: &Project, built: &Path, python: Option<&Path>) -> anyhow::Result<()> {
    let mut run = Run::npm(project, FOLDER, &["test", "--silent"])
        .env("HANDRAISE_BIN", built.join("handraise"))
        .env("HANDRAISE_RMCP_PEER", built.join("handraise-rmcp-peer"));
    if let Some(python) = python {
        run = run.env("HANDRAISE_PEERS_PYTHON", python);
    }
    run.succeed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_runs_on_a_node_that_is_new_enough_wherever_that_is() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let nowhere = packaged_node(Path::new("/nowhere"));
        assert!(nowhere.starts_with("/nowhere/peers/mcp/node_modules"), "{}", nowhere.display());
        for old in [None, Some((20, 19)), Some((21, 99))] {
            let said = missing(old, &nowhere).unwrap();
            assert!(said.contains("Node 22") && said.contains("/nowhere/"), "{said}");
            assert_eq!(missing(old, here), None, "one is packaged");
        }
        assert_eq!(missing(Some((22, 0)), &nowhere), None);
        assert_eq!(missing(Some((24, 1)), &nowhere), None);
    }
}
