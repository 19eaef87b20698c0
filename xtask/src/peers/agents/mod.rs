//! `cargo xtask peers agents`: real ACP agents behind `handraise agent`, scenario by scenario.

mod play;
mod profile;
mod row;
mod scenario;
mod table;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};

use self::{
    play::Stage,
    profile::{AGENTS, Agent},
    row::Row,
    scenario::{SCENARIOS, Scenario, scenarios_of},
};
use crate::{
    clock,
    commands::{Run, target_directory},
    inbox::Place,
    peers::{install::Packages, model::Model, namespace},
    project::{Project, say},
};

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only agents whose name and version contain this.
    #[arg(long, value_name = "TEXT")]
    agent: Option<String>,
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT")]
    scenario: Option<String>,
    /// Takes what happens as what is expected from now on.
    #[arg(long)]
    expect: bool,
    /// Where this runs already: in a network of its own, with everything built and installed.
    #[arg(long, hide = true, value_name = "DIR")]
    inside: Option<PathBuf>,
}

/// The page of results.
const PAGE: &str = "docs/agents-measured.md";

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.inside {
        None => prepare(project, arguments),
        Some(target) => {
            namespace::settle_in(project)?;
            play(project, arguments, target)
        }
    }
}

impl Arguments {
    fn agents(&self) -> impl Iterator<Item = &'static Agent> {
        let wanted = self.agent.as_deref().unwrap_or_default();
        AGENTS.iter().filter(move |agent| format!("{} {}", agent.name, agent.version()).contains(wanted))
    }

    fn scenarios(&self, agent: &Agent) -> impl Iterator<Item = &'static Scenario> {
        let wanted = self.scenario.as_deref().unwrap_or_default();
        scenarios_of(agent).filter(move |scenario| scenario.name.contains(wanted))
    }

    fn is_complete(&self) -> bool {
        self.agent.is_none() && self.scenario.is_none()
    }
}

/// Builds and installs, which takes a network; then runs again without one.
fn prepare(project: &Project, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    Run::cargo(project, &["build", "--quiet", "--package", "handraise-cli", "--bin", "handraise"])
        .succeed()?;
    let target = target_directory(project)?;
    let packages = Packages::new(project, &target.join("peers/packages"));
    packages.node().context("agents need Node")?;
    for agent in arguments.agents() {
        if let Err(error) = packages.install(agent.package) {
            // Said again below, where the rows would be.
            say(&format!("cannot install {} {}: {error:#}", agent.name, agent.version()));
        }
    }
    let mut again = vec!["peers".to_owned(), "agents".to_owned()];
    again.extend(["--inside".to_owned(), target.to_string_lossy().into_owned()]);
    for (flag, value) in [("--agent", &arguments.agent), ("--scenario", &arguments.scenario)] {
        again.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    if arguments.expect {
        again.push("--expect".to_owned());
    }
    namespace::enter(project, &again)
}

fn play(project: &Project, arguments: &Arguments, target: &Path) -> anyhow::Result<ExitCode> {
    let packages = Packages::new(project, &target.join("peers/packages"));
    let binary = target.join("debug/handraise");
    let node = packages.node()?;
    let model = Model::start()?;
    let mut results = Vec::new();
    let mut skipped = Vec::new();
    let mut differences = 0;
    for agent in arguments.agents() {
        let name = format!("{} {}", agent.name, agent.version());
        let package = packages.folder(agent.package);
        if !package.join(".installed").exists() {
            skipped.push(format!("skipped: {name}, because it could not be installed (see above)"));
            continue;
        }
        let folder = target.join("peers/runs").join(name.replace(' ', "-"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let place = Place::new(&binary, &folder);
        let up = place.up()?;
        let stage = Stage::new(agent, (package, node.clone()), &model, &place, &up)?;
        let expected = row::expected(project, agent)?;
        let mut rows = Vec::new();
        for scenario in arguments.scenarios(agent) {
            let start = clock::now();
            let place = folder.join(scenario.name.replace(' ', "-"));
            std::fs::create_dir(&place)?;
            let row = stage.play(scenario, &place).with_context(|| format!("{name}, {}", scenario.name))?;
            let different = match expected.iter().find(|expected| expected.scenario == row.scenario) {
                _ if arguments.expect => Vec::new(),
                expected => row::differences(expected, &row)?,
            };
            let verdict = match different.is_empty() {
                _ if arguments.expect => "noted",
                true => "as expected",
                false => "DIFFERENT",
            };
            say(&format!("{:>5} ms  {name}, {}: {verdict}", clock::since(start) / 1_000_000, scenario.name));
            for line in &different {
                say(&format!("          {line}"));
            }
            differences += usize::from(!different.is_empty());
            rows.push(row);
        }
        if arguments.expect {
            row::expect(project, agent, &merged(&expected, &rows))?;
        }
        results.push((agent, rows));
    }
    report(project, arguments, &results, &skipped)?;
    if results.is_empty() {
        bail!("no agent could be run");
    }
    if differences > 0 {
        bail!("{differences} rows differ; each run's files are in {}", target.join("peers/runs").display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The expected rows, with these in their places.
fn merged(expected: &[Row], rows: &[Row]) -> Vec<Row> {
    let find = |rows: &[Row], name: &str| rows.iter().find(|row| row.scenario == name).cloned();
    let names = SCENARIOS.iter().map(|scenario| scenario.name);
    names.filter_map(|name| find(rows, name).or_else(|| find(expected, name))).collect()
}

/// Prints the tables, and writes the page when nothing is missing in it.
fn report(
    project: &Project,
    arguments: &Arguments,
    results: &[(&Agent, Vec<Row>)],
    skipped: &[String],
) -> anyhow::Result<()> {
    for (agent, rows) in results {
        say(&format!("\n{} {}\n\n{}", agent.name, agent.version(), table::table(rows)));
    }
    for line in skipped {
        say(line);
    }
    if arguments.is_complete() && skipped.is_empty() {
        let date = Run::new(project, "date", &["-u", "+%Y-%m-%d"]).output()?;
        std::fs::write(project.root.join(PAGE), table::page(date.trim(), results))?;
        say(&format!("written to {PAGE}"));
    } else {
        say(&format!("{PAGE} stays as it is: not everything was run"));
    }
    Ok(())
}
