//! Modules: each has a header that says its one job, none is too large, none is forgotten.

use std::path::Path;

use crate::project::SourceFile;

/// The most lines of a module.
const MOST_LINES: usize = 800;

/// Modules that are longer nevertheless.
const LONGER: &[&str] = &[];

pub(super) fn check(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let extension =
            Path::new(&file.path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_page = matches!(extension, "ts" | "tsx" | "mjs");
        if extension == "rs" || is_page {
            let first = file.text.lines().next().unwrap_or_default();
            let is_header = if is_page {
                first.starts_with("//") || first.starts_with("/*")
            } else {
                first.starts_with("//!")
            };
            if !is_header {
                complaints.push(format!("{} does not begin by saying its one job", file.path));
            }
        }
        if extension == "rs" || is_page || extension == "css" {
            complaints.extend(check_length(file));
        }
        if file.path.ends_with("Cargo.toml") && file.text.contains("[package]") && !inherits_lints(&file.text)
        {
            complaints.push(format!("{} does not take the workspace's lints", file.path));
        }
    }
    complaints.extend(check_test_modules(files));
    complaints
}

/// A path's extension, empty without one.
pub(super) fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn check_length(file: &SourceFile) -> Option<String> {
    let is_generated = file.path.contains(".generated.");
    let lines = file.text.lines().count();
    let is_listed = LONGER.contains(&file.path.as_str());
    if lines > MOST_LINES && !is_listed && !is_generated {
        return Some(format!("{} has {lines} lines; {MOST_LINES} are the most", file.path));
    }
    (lines <= MOST_LINES && is_listed).then(|| {
        format!("{} is short enough now; take it off the list in xtask/src/tidy/modules.rs", file.path)
    })
}

fn inherits_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

/// One integration test binary per crate, `tests/it`, in which every file is a module.
fn check_test_modules(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| extension(&file.path) == "rs") {
        let Some((crate_folder, below)) = file.path.split_once("/tests/") else { continue };
        // `tests/bin` holds programs that tests run.
        if crate_folder.contains("/src") || below.starts_with("bin/") {
            continue;
        }
        let Some(below) = below.strip_prefix("it/") else {
            complaints
                .push(format!("{} is a test binary of its own; make it a module of tests/it", file.path));
            continue;
        };
        let parts: Vec<&str> = below.split('/').collect();
        // A folder's module stands in it or beside it.
        let (parents, module) = match parts.as_slice() {
            ["main.rs"] | [] => continue,
            [name] | [name, "mod.rs"] => (vec!["main.rs".to_owned()], name),
            [folders @ .., name] => {
                let folder = folders.join("/");
                (vec![format!("{folder}/mod.rs"), format!("{folder}.rs")], name)
            }
        };
        let declaration = format!("mod {};", module.trim_end_matches(".rs"));
        let declares = |line: &str| {
            line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ").trim() == declaration
        };
        let parents: Vec<String> =
            parents.into_iter().map(|parent| format!("{crate_folder}/tests/it/{parent}")).collect();
        let there = files.iter().find(|other| parents.contains(&other.path));
        let parent = there.map_or(parents[0].as_str(), |there| there.path.as_str());
        let declares = there.is_some_and(|there| there.text.lines().any(declares));
        if !declares {
            complaints.push(format!("{} is forgotten: {parent} does not name it", file.path));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_module_says_its_job_and_is_not_too_long() {
        let long = format!("//! Long.\n{}", "\n".repeat(MOST_LINES));
        assert_eq!(
            check(&[
                file("a.rs", "use x;\n"),
                file("b.rs", &long),
                file("ui/c.ts", "const c = 1;\n"),
                file("d.rs", "//! D.\n")
            ]),
            [
                "a.rs does not begin by saying its one job",
                "b.rs has 801 lines; 800 are the most",
                "ui/c.ts does not begin by saying its one job"
            ]
        );
    }

    #[test]
    fn a_crate_takes_the_workspace_s_lints() {
        let with = file("crates/a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n");
        let without = file("crates/b/Cargo.toml", "[package]\n[dependencies]\nworkspace = true\n");
        assert_eq!(check(&[with, without]), ["crates/b/Cargo.toml does not take the workspace's lints"]);
    }

    #[test]
    fn no_test_module_is_forgotten() {
        let files = [
            file("crates/a/tests/it/main.rs", "//! A.\nmod one;\nmod deep;\n"),
            file("crates/a/tests/it/one.rs", "//! One.\npub(super) mod inner;\n"),
            file("crates/a/tests/it/one/inner.rs", "//! Inner.\n"),
            file("crates/a/tests/it/one/lost.rs", "//! Lost.\n"),
            file("crates/a/tests/it/two.rs", "//! Two.\n"),
            file("crates/a/tests/it/deep/mod.rs", "//! Deep.\nmod three;\n"),
            file("crates/a/tests/it/deep/three.rs", "//! Three.\n"),
            file("crates/a/tests/other.rs", "//! Other.\n"),
        ];
        assert_eq!(
            check(&files),
            [
                "crates/a/tests/it/one/lost.rs is forgotten: crates/a/tests/it/one.rs does not name it",
                "crates/a/tests/it/two.rs is forgotten: crates/a/tests/it/main.rs does not name it",
                "crates/a/tests/other.rs is a test binary of its own; make it a module of tests/it"
            ]
        );
    }
}
