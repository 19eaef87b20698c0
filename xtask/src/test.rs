//! `cargo xtask test`: everything that CI runs, in one order, with what was skipped and why.

use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::{
    clock,
    commands::{Run, find_program, target_directory},
    generate, packages, page,
    project::{Project, say},
    sdks, tidy,
};

/// Browsers that the page's tests can drive, best first.
const BROWSERS: &[&str] = &["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// Builds what all later steps use. cargo chooses the features of dependencies by what it is told to build: steps that built
/// their own parts would build most dependencies once each.
const EVERYTHING: &[&str] = &["build", "--workspace", "--bins", "--examples", "--tests"];

/// A stopwatch and a list of what could not be done.
struct Report {
    steps: Vec<(String, u64)>,
    skipped: Vec<String>,
}

pub(crate) fn run(project: &Project) -> anyhow::Result<()> {
    let mut report = Report { steps: Vec::new(), skipped: Vec::new() };
    let outcome = steps(project, &mut report);
    report.print();
    outcome
}

fn steps(project: &Project, report: &mut Report) -> anyhow::Result<()> {
    report.step("format", || Run::cargo(project, &["fmt", "--all", "--check"]).succeed())?;
    report.step("tidy", || tidy::run(project))?;

    let has_npm = match packages::missing_node(project) {
        None => true,
        Some(missing) => {
            report.skip("the page's build, checks, unit and browser tests", &missing);
            report.skip("the MCP SDKs as peers of the gateway", &missing);
            false
        }
    };
    if has_npm {
        // Before anything embeds it, so that one build serves all.
        report.step("page: build", || page::build(project))?;
    }
    report.step("clippy", || {
        Run::cargo(project, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).succeed()
    })?;
    report.step("build", || Run::cargo(project, EVERYTHING).succeed())?;
    let built = target_directory(project)?.join("debug");
    report.step("generated files", || generate::check(project, &built))?;
    if has_npm {
        report.step("page: types", || {
            Run::npm(project, page::FOLDER, &["run", "--silent", "check"]).succeed()
        })?;
        report
            .step("page: unit tests", || Run::npm(project, page::FOLDER, &["test", "--silent"]).succeed())?;
    }
    if find_program(project, "cargo-deny").is_some() {
        report.step("cargo-deny", || {
            Run::cargo(project, &["deny", "--offline", "check", "licenses", "sources", "bans"]).succeed()
        })?;
    } else {
        report.skip("cargo-deny's second opinion on licences and sources", "cargo-deny is not installed");
    }
    if has_npm {
        match browser(project) {
            Ok(browser) => {
                report.step("page: browser tests", || {
                    Run::npm(project, page::FOLDER, &["run", "--silent", "e2e"])
                        .env("HANDRAISE_BIN", built.join("handraise"))
                        .env("CHROMIUM", &browser)
                        .succeed()
                })?;
            }
            Err(missing) => report.skip("the page's browser tests", &format!("{missing:#}")),
        }
    }
    if has_npm {
        report.step("MCP SDKs: npm packages", || packages::install_npm(project, sdks::FOLDER))?;
        if let Some(missing) = sdks::missing_for_the_suite(project) {
            report.skip("the MCP conformance suite in front of the gateway and behind it", &missing);
        }
        let python = packages::install_python(project, sdks::REQUIREMENTS);
        if let Err(missing) = &python {
            report.skip("the Python MCP SDKs as peers of the gateway", &format!("{missing:#}"));
        }
        report.step("MCP SDKs as peers of the gateway", || {
            sdks::test(project, &built, python.ok().as_deref())
        })?;
    }
    // Last, so that the closing lines are cargo's.
    report.step("cargo test", || Run::cargo(project, &["test", "--workspace"]).succeed())
}

/// A browser to test with; installed when this is Debian and we may.
fn browser(project: &Project) -> anyhow::Result<PathBuf> {
    let named = project.environment.get("CHROMIUM").map(PathBuf::from);
    let found = || named.clone().or_else(|| BROWSERS.iter().find_map(|name| find_program(project, name)));
    if let Some(browser) = found() {
        return Ok(browser);
    }
    let may_install = rustix::process::geteuid().is_root()
        && PathBuf::from("/etc/debian_version").exists()
        && find_program(project, "apt-get").is_some();
    if !may_install {
        bail!("no Chromium is installed; install chromium-headless-shell or name a browser in CHROMIUM");
    }
    say("installing chromium-headless-shell");
    let install = || {
        Run::new(
            project,
            "apt-get",
            &["install", "--yes", "--quiet", "--no-install-recommends", "chromium-headless-shell"],
        )
        .env("DEBIAN_FRONTEND", "noninteractive")
        .succeed()
    };
    if install().is_err() {
        Run::new(project, "apt-get", &["update", "--quiet"]).succeed()?;
        install()?;
    }
    found().context("chromium-headless-shell is installed and still not found in PATH")
}

impl Report {
    fn step(&mut self, name: &str, step: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        say(&format!("==> {name}"));
        let start = clock::now();
        let outcome = step();
        self.steps.push((name.to_owned(), clock::since(start) / 1_000_000));
        outcome.with_context(|| name.to_owned())
    }

    fn skip(&mut self, what: &str, why: &str) {
        self.skipped.push(format!("skipped: {what}, because {why}"));
    }

    fn print(&self) {
        let mut total = 0;
        say("");
        for (name, millis) in &self.steps {
            total += millis;
            say(&format!("{:>7}.{} s  {name}", millis / 1000, millis % 1000 / 100));
        }
        for skipped in &self.skipped {
            say(skipped);
        }
        say(&format!("{} steps in {} s, {} skipped", self.steps.len(), total / 1000, self.skipped.len()));
    }
}
