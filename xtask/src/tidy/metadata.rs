//! What `cargo metadata` says, as far as the rules need it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The packages and how they depend on each other.
#[derive(Deserialize)]
pub(super) struct Metadata {
    /// Every package.
    pub(super) packages: Vec<Package>,
    /// The resolved graph.
    pub(super) resolve: Resolve,
}

/// One package.
#[derive(Deserialize)]
pub(super) struct Package {
    /// Names it in the graph.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
    /// Its licence, in SPDX words.
    pub(super) license: Option<String>,
    /// Where it comes from; `None` for our own.
    pub(super) source: Option<String>,
}

/// The resolved graph.
#[derive(Deserialize)]
pub(super) struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    /// `None` for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
}

impl Metadata {
    /// Our own packages.
    pub(super) fn ours(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.source.is_none())
    }

    /// The package with an id.
    pub(super) fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    /// What a package needs to run, itself excepted: its normal dependencies and theirs.
    pub(super) fn normal_tree(&self, id: &str) -> BTreeSet<&str> {
        let edges = self.normal_edges();
        let mut reached = BTreeSet::new();
        let mut left = vec![id];
        while let Some(next) = left.pop() {
            for dependency in edges.get(next).into_iter().flatten() {
                if reached.insert(*dependency) {
                    left.push(*dependency);
                }
            }
        }
        reached
    }

    /// The normal dependencies of every package, by id.
    pub(super) fn normal_edges(&self) -> BTreeMap<&str, Vec<&str>> {
        self.resolve
            .nodes
            .iter()
            .map(|node| {
                let normal =
                    node.deps.iter().filter(|edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none()));
                (node.id.as_str(), normal.map(|edge| edge.pkg.as_str()).collect())
            })
            .collect()
    }
}
