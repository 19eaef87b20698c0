//! What an inbox takes: how soon it is ready, from submission to frame, whole lives of asks a second, and lists.

mod cycles;
mod frames;
mod lists;
mod up;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use self::{frames::Measured, up::Up};
use super::samples::Samples;
use crate::{
    clock,
    commands::{Run, target_directory},
    project::{Project, say},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many asks are open beside an answer: several numbers, each measured; 100000 takes a few minutes.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 10_000])]
    asks: Vec<usize>,
    /// How many are answered, one after the other.
    #[arg(long, default_value_t = 2_000)]
    answers: usize,
    /// How many asks are opened, answered and settled as fast as it goes.
    #[arg(long, default_value_t = 20_000)]
    cycles: usize,
    /// Beside how many settled asks lists are read; 0 leaves lists out.
    #[arg(long, default_value_t = 100_000)]
    settled: usize,
    /// The binary to measure; otherwise one is built with optimisations.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// How often `up` is started to see how long it takes.
const STARTS: usize = 10;

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => build(project)?,
    };
    let folder = std::env::temp_dir().join(format!("handraise-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let outcome = measure(project, &binary, &folder, arguments);
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    outcome
}

fn build(project: &Project) -> anyhow::Result<PathBuf> {
    Run::cargo(project, &["build", "--release", "--package", "handraise-cli", "--bin", "handraise"])
        .succeed()?;
    Ok(target_directory(project)?.join("release/handraise"))
}

fn measure(project: &Project, binary: &Path, folder: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let part = |name: &str| -> anyhow::Result<PathBuf> {
        let part = folder.join(name);
        std::fs::create_dir(&part).with_context(|| format!("cannot make {}", part.display()))?;
        Ok(part)
    };
    let mut ready = Samples::default();
    let starts = part("starts")?;
    for _ in 0..STARTS {
        let start = clock::now();
        let up = Up::start(binary, &starts)?;
        ready.push(clock::since(start));
        drop(up);
    }
    say(&format!(
        "up ready: p50 {:.1} ms, max {:.1} ms of {STARTS} starts",
        ready.quantile(0.5) / 1000.0,
        ready.quantile(1.0) / 1000.0
    ));
    let mut measured = Vec::new();
    for (n, asks) in arguments.asks.iter().enumerate() {
        let part = part(&format!("frames-{n}"))?;
        measured.push(frames::measure(binary, &part, *asks, arguments.answers)?);
    }
    slope(&measured);
    if arguments.cycles > 0 {
        cycles::measure(binary, &part("cycles")?, arguments.cycles)?;
    }
    if arguments.settled > 0 {
        lists::measure(project, binary, &part("lists")?, arguments.settled)?;
    }
    Ok(())
}

/// What a thousand more open asks add to a submission.
fn slope(measured: &[Measured]) {
    let (Some(few), Some(many)) =
        (measured.iter().min_by_key(|m| m.asks), measured.iter().max_by_key(|m| m.asks))
    else {
        return;
    };
    if few.asks == many.asks {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let thousands = (many.asks - few.asks) as f64 / 1000.0;
    let median = |measured: &Measured| measured.through.quantile(0.5);
    let bare = |measured: &Measured| measured.bare.quantile(0.5).max(0.001);
    say(&format!(
        "slope from {} to {} open: {:.2} µs for a thousand more, ratio {:.2} (bare {:.2})",
        few.asks,
        many.asks,
        (median(many) - median(few)) / thousands,
        median(many) / median(few).max(0.001),
        bare(many) / bare(few)
    ));
}
