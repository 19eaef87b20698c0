//! `cargo xtask demo`: from a checkout to the first question.

use crate::{
    commands::{Run, target_directory},
    packages, page,
    project::{Project, say},
};

/// Builds the page and the binary and runs `handraise demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Builds with optimisations.
    #[arg(long)]
    release: bool,
    /// Arguments for `handraise demo`.
    #[arg(last = true)]
    rest: Vec<String>,
}

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<()> {
    match packages::missing_node(project) {
        None => {
            say("building the page");
            page::build(project)?;
        }
        Some(missing) => say(&format!("the page is not built, a placeholder stands in for it: {missing}")),
    }
    say("building handraise");
    let mut build = vec!["build", "--quiet", "--package", "handraise-cli", "--bin", "handraise"];
    if arguments.release {
        build.push("--release");
    }
    Run::cargo(project, &build).succeed()?;
    let profile = if arguments.release { "release" } else { "debug" };
    let binary = target_directory(project)?.join(profile).join("handraise");
    let mut command = vec!["demo"];
    command.extend(arguments.rest.iter().map(String::as_str));
    // Becoming the demo lets Ctrl-C reach it alone, so that it cleans up before the prompt returns.
    Run::new(project, &binary.to_string_lossy(), &command).become_it()
}
