//! Words that do not belong: settings outside their registry, paths of one machine, tests that do not run.

use super::modules;
use crate::project::SourceFile;

/// Beginnings of the names of our environment variables.
const OUR_VARIABLES: &[&str] = &["HANDRAISE_", "KANDEV_", "AUTOMOBILE_", "MCP_CONFIRM_", "MCP_HOST_"];

/// The one other file that names variables: it withholds them from children (S7).
const WITHHOLDS: &str = "crates/handraise-transport/src/environment.rs";

/// Words that no source has, with what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "a test runs or is removed"),
    (concat!("#[", "should_panic"), "assert the error"),
    (concat!("TO", "DO"), "do it, or leave it out"),
    (concat!("FIX", "ME"), "put it right, or leave it out"),
    (concat!("/ro", "ot/"), "no paths of one machine"),
];

/// The example user whose home directory may appear.
const EXAMPLE_HOME: &str = "/home/ada";

pub(super) fn check(files: &[SourceFile], root: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        if file.path == "Cargo.lock" || file.path.ends_with("package-lock.json") {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let complain = |problem: String| format!("{}:{}: {problem}", file.path, number + 1);
            for (word, instead) in FORBIDDEN {
                if line.contains(word) {
                    complaints.push(complain(format!("{word}: {instead}")));
                }
            }
            let names_home = line
                .match_indices(concat!("/ho", "me/"))
                .any(|(at, _)| !line[at..].starts_with(EXAMPLE_HOME));
            if line.contains(root) || (names_home && !is_route(line)) {
                complaints.push(complain("a path of one machine".to_owned()));
            }
        }
        complaints.extend(check_variables(file));
    }
    complaints
}

/// A URL may well have a folder of that name.
fn is_route(line: &str) -> bool {
    line.contains("://")
}

/// Only the registry names variables and reads the environment; tests set them for the processes they start.
fn check_variables(file: &SourceFile) -> Vec<String> {
    let is_exempt = modules::extension(&file.path) != "rs"
        || file.path.starts_with("crates/handraise-config/")
        || file.path == WITHHOLDS
        || file.path.starts_with("xtask/")
        || file.path.contains("/tests/")
        || file.path.contains("/examples/")
        || file.path.ends_with("/tests.rs")
        // Cargo tells build scripts by variables.
        || file.path.ends_with("/build.rs");
    if is_exempt {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        let mut literals = line.split('"').skip(1).step_by(2);
        let named = literals.find(|text| {
            OUR_VARIABLES.iter().any(|prefix| text.starts_with(prefix))
                && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        });
        if let Some(name) = named {
            complaints.push(format!(
                "{}:{}: {name} is named outside handraise-config",
                file.path,
                number + 1
            ));
        }
        if line.contains(concat!("env::", "var")) {
            complaints.push(format!(
                "{}:{}: the environment is read by handraise-config alone",
                file.path,
                number + 1
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(path: &str, text: &str) -> Vec<String> {
        check(&[SourceFile { path: path.to_owned(), text: text.to_owned() }], "/somewhere/checkout")
    }

    #[test]
    fn variables_are_named_in_the_registry_alone() {
        let text = "let a = \"HANDRAISE_TOKEN\";\nlet b = \"set HANDRAISE_TOKEN\";\n#[cfg(test)]\nlet c = \"HANDRAISE_X\";\n";
        assert_eq!(
            check_text("crates/a/src/lib.rs", text),
            ["crates/a/src/lib.rs:1: HANDRAISE_TOKEN is named outside handraise-config"]
        );
        assert_eq!(check_text("crates/handraise-config/src/registry.rs", text), [""; 0]);
        assert_eq!(check_text("crates/a/tests/it/main.rs", text), [""; 0]);
    }

    #[test]
    fn no_machine_is_named() {
        assert_eq!(check_text("a.md", "see /somewhere/checkout/x"), ["a.md:1: a path of one machine"]);
        assert_eq!(check_text("a.md", concat!("see /ho", "me/grace/x")), ["a.md:1: a path of one machine"]);
        assert_eq!(check_text("a.md", "see /home/ada/x"), [""; 0]);
    }

    #[test]
    fn tests_that_do_not_run_are_found() {
        let text = concat!("#[", "ignore]\nfn x() {}\n");
        assert_eq!(check_text("a.rs", text).len(), 1);
    }
}
