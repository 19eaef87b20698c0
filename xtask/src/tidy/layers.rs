//! The layers: who may depend on whom.

use super::metadata::Metadata;

/// One crate of ours: its layer, and which of ours it may depend on.
struct Place {
    name: &'static str,
    layer: u8,
    may_use: &'static [&'static str],
}

/// The map that ARCHITECTURE.md draws. Layers 0 and 1 are pure: see [`IMPURE`].
const PLACES: &[Place] = &[
    Place { name: "handraise-core", layer: 0, may_use: &[] },
    Place { name: "handraise-api", layer: 1, may_use: &["handraise-core"] },
    Place { name: "handraise-config", layer: 1, may_use: &[] },
    Place { name: "handraise-acp", layer: 1, may_use: &["handraise-core", "handraise-api"] },
    Place { name: "handraise-mcp", layer: 1, may_use: &["handraise-core"] },
    Place { name: "handraise-transport", layer: 2, may_use: &[] },
    Place { name: "handraise-spent", layer: 2, may_use: &["handraise-mcp", "handraise-transport"] },
    Place { name: "handraise-store", layer: 2, may_use: &["handraise-core", "handraise-api"] },
    Place {
        name: "handraise-holder",
        layer: 2,
        may_use: &["handraise-core", "handraise-api", "handraise-transport"],
    },
    Place {
        name: "handraise-asker",
        layer: 2,
        may_use: &[
            "handraise-core",
            "handraise-api",
            "handraise-mcp",
            "handraise-transport",
            "handraise-holder",
        ],
    },
    Place {
        name: "handraise-agentctl",
        layer: 3,
        may_use: &[
            "handraise-core",
            "handraise-api",
            "handraise-acp",
            "handraise-transport",
            "handraise-holder",
        ],
    },
    Place {
        name: "handraise-server",
        layer: 3,
        may_use: &["handraise-core", "handraise-api", "handraise-transport", "handraise-store"],
    },
    Place { name: "handraise-fake-agent", layer: 3, may_use: &[] },
    Place { name: "handraise-fake-server", layer: 3, may_use: &[] },
    Place {
        name: "handraise-gateway",
        layer: 3,
        may_use: &[
            "handraise-core",
            "handraise-mcp",
            "handraise-spent",
            "handraise-asker",
            "handraise-transport",
        ],
    },
    Place {
        name: "handraise-http",
        layer: 3,
        may_use: &[
            "handraise-core",
            "handraise-mcp",
            "handraise-spent",
            "handraise-asker",
            "handraise-transport",
        ],
    },
    Place {
        name: "handraise-cli",
        layer: 4,
        may_use: &[
            "handraise-core",
            "handraise-api",
            "handraise-config",
            "handraise-transport",
            "handraise-spent",
            "handraise-store",
            "handraise-holder",
            "handraise-asker",
            "handraise-acp",
            "handraise-agentctl",
            "handraise-server",
            "handraise-fake-agent",
            "handraise-fake-server",
            "handraise-mcp",
            "handraise-gateway",
            "handraise-http",
        ],
    },
    // A peer of the tests: it shares no code with what it tests.
    Place { name: "handraise-rmcp-peer", layer: 4, may_use: &[] },
    Place { name: "xtask", layer: 4, may_use: &["handraise-config"] },
];

/// What no crate of layers 0 and 1 may need to run: sockets, runtimes, databases, randomness.
const IMPURE: &[&str] = &[
    "async-std",
    "axum",
    "getrandom",
    "hyper",
    "mio",
    "rand",
    "rand_core",
    "reqwest",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "sqlx",
    "tokio",
    "tokio-tungstenite",
    "tungstenite",
    "ureq",
];

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let mut complaints = Vec::new();
    let edges = metadata.normal_edges();
    for package in metadata.ours() {
        let Some(place) = PLACES.iter().find(|place| place.name == package.name) else {
            complaints.push(format!(
                "{} has no place in the layers; give it one in xtask/src/tidy/layers.rs",
                package.name
            ));
            continue;
        };
        let used = edges.get(package.id.as_str()).into_iter().flatten().filter_map(|id| metadata.package(id));
        for used in used.filter(|used| used.source.is_none() && !place.may_use.contains(&used.name.as_str()))
        {
            complaints.push(format!("{} must not depend on {}", package.name, used.name));
        }
        if place.layer <= 1 {
            let tree = metadata.normal_tree(&package.id);
            let tree = tree.into_iter().filter_map(|id| metadata.package(id));
            for impure in tree.filter(|used| IMPURE.contains(&used.name.as_str())) {
                complaints.push(format!("{} is pure and must not need {}", package.name, impure.name));
            }
        }
    }
    for place in PLACES {
        if !metadata.ours().any(|package| package.name == place.name) {
            complaints.push(format!("{} has a place in the layers and is no crate", place.name));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Our crates with the given normal dependencies, written as `user -> used`.
    fn workspace(extra: &[&str], dependencies: &[(&str, &str)]) -> Metadata {
        let foreign = ["tokio", "bytes"];
        let names: Vec<&str> = PLACES.iter().map(|place| place.name).chain(extra.iter().copied()).collect();
        let packages: Vec<_> = names
            .iter()
            .map(|name| json!({"id": name, "name": name, "version": "1", "license": "MIT", "source": null}))
            .chain(foreign.iter().map(
                |name| json!({"id": name, "name": name, "version": "1", "license": "MIT", "source": "registry"}),
            ))
            .collect();
        let nodes: Vec<_> = names
            .iter()
            .chain(&foreign)
            .map(|name| {
                let deps: Vec<_> = dependencies
                    .iter()
                    .filter(|(user, _)| user == name)
                    .map(|(_, used)| json!({"pkg": used, "dep_kinds": [{"kind": null}]}))
                    .collect();
                json!({"id": name, "deps": deps})
            })
            .collect();
        serde_json::from_value(json!({"packages": packages, "resolve": {"nodes": nodes}})).unwrap()
    }

    #[test]
    fn arrows_point_down_only() {
        let down = workspace(&[], &[("handraise-server", "handraise-store"), ("handraise-store", "tokio")]);
        assert_eq!(check(&down), [""; 0]);
        let up = workspace(&[], &[("handraise-core", "handraise-api")]);
        assert_eq!(check(&up), ["handraise-core must not depend on handraise-api"]);
        let sideways = workspace(&[], &[("handraise-agentctl", "handraise-server")]);
        assert_eq!(check(&sideways), ["handraise-agentctl must not depend on handraise-server"]);
    }

    #[test]
    fn pure_crates_need_nothing_impure_at_any_depth() {
        let deep = workspace(&[], &[("handraise-acp", "bytes"), ("bytes", "tokio")]);
        assert_eq!(check(&deep), ["handraise-acp is pure and must not need tokio"]);
    }

    #[test]
    fn every_crate_has_a_place() {
        let complaints = check(&workspace(&["handraise-new"], &[]));
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("handraise-new has no place"), "{complaints:?}");
    }

    #[test]
    fn the_table_itself_points_down() {
        let layer =
            |name: &str| PLACES.iter().find(|place| place.name == name).map(|place| place.layer).unwrap();
        for (index, place) in PLACES.iter().enumerate() {
            for used in place.may_use {
                assert!(layer(used) <= place.layer, "{} may use {used}", place.name);
                // Within a layer the table is in order of use, which rules cycles out.
                let used_index = PLACES.iter().position(|other| other.name == *used).unwrap();
                assert!(used_index < index, "{} may use {used}", place.name);
            }
        }
    }
}
