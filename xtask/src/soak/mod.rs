//! `cargo xtask soak`: mixed load with restarts of every process, and a judgement of what came of it.

mod agents;
mod chance;
mod disturbances;
mod judge;
mod memory;
mod operators;
mod relay;
mod run;
mod scripts;
mod stored;

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, atomic::Ordering},
    thread,
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use self::{
    agents::Agent,
    chance::Chance,
    disturbances::Disturbance,
    judge::{Delivery, Evidence, judge},
    memory::{HOLDER_KEEPS, Series, UP_KEEPS, own},
    operators::Operator,
    relay::Relay,
    run::{DEADLINE, MARK, Run, lock},
    scripts::Script,
};
use crate::{
    clock,
    commands::{self, target_directory},
    inbox::{Place, processes_with},
    project::{Project, say},
};

/// How to soak.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long the load lasts; afterwards asks of killed processes run out, which takes a minute more.
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// Repeats the choices of an earlier run; otherwise one is drawn from the clock, and said.
    #[arg(long)]
    seed: Option<u64>,
    /// The binary to soak; otherwise one is built.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Keeps the folder of a run that was fine, too.
    #[arg(long)]
    keep: bool,
}

/// Agents that are ended now and then; one more, the elder, lives from start to end.
const AGENTS: usize = 3;
const SCRIPTS: usize = 2;
const OPERATORS: usize = 2;
/// How long processes may take to end after the last one that looks after them, in nanoseconds (quality of S35).
const GRACE: u64 = 2_000_000_000;
/// What each of the inbox's connections may keep of the database, in bytes: a run writes that much in a minute.
const CACHE: &str = "524288";
/// How long after the load the last ask may end: its deadline, the inbox's patience with silent holders, and some.
const DRAIN: u64 = 120_000_000_000;

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let binary = if let Some(binary) = &arguments.binary {
        std::path::absolute(binary)?
    } else {
        let build = ["build", "--package", "handraise-cli", "--bin", "handraise"];
        commands::Run::cargo(project, &build).succeed()?;
        target_directory(project)?.join("debug/handraise")
    };
    let seed = arguments.seed.unwrap_or_else(|| clock::now() % 1_000_000);
    let folder = std::env::temp_dir().join(format!("handraise-soak-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let minutes = arguments.minutes.max(1);
    say(&format!("soaking for {minutes} minutes with --seed {seed} in {}", folder.display()));
    let run = prepare(&binary, &folder, seed, minutes * 60_000_000_000)?;
    let violations = soak(&run)?;
    if violations.is_empty() {
        say("nothing was lost or doubled, and memory is flat");
        if !arguments.keep {
            std::fs::remove_dir_all(&folder)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(folder.join("violations.txt"), violations.join("\n"))?;
    violations.iter().take(40).for_each(|violation| say(&format!("violation: {violation}")));
    say(&format!(
        "{} violations with --seed {seed}; the evidence is in {}",
        violations.len(),
        folder.display()
    ));
    Ok(ExitCode::FAILURE)
}

fn prepare(binary: &Path, folder: &Path, seed: u64, length: u64) -> anyhow::Result<Run> {
    let place = Place::new(binary, folder)
        .with(MARK, &folder.to_string_lossy())
        .with("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", DEADLINE)
        // A run opens more asks than a token may in a day of work.
        .with("HANDRAISE_LIMITS__TOKEN_ASKS", "100000000")
        // What each connection keeps of the database is soon full, so that it does not count as growth.
        .with("HANDRAISE_LIMITS__CACHE_BYTES", CACHE)
        // What the allocator has free for each thread, and of large pieces that are gone, does not count as growth either:
        // it goes up with every new most of any thread, for hours.
        .with("MALLOC_ARENA_MAX", "1")
        .with("MALLOC_MMAP_THRESHOLD_", "65536")
        .with("MALLOC_TRIM_THRESHOLD_", "65536");
    let up = place.up()?;
    Ok(Run {
        seed,
        folder: folder.to_owned(),
        binary: binary.to_owned(),
        relay: Relay::start(folder.join("relay.sock"), place.data_dir().join("inbox.sock"))?,
        holder: place.token("holder")?,
        place,
        start: clock::now(),
        length,
        up: Mutex::new(Some(up)),
        evidence: Mutex::default(),
        violations: Mutex::default(),
        journal: Mutex::new(File::create(folder.join("journal.txt"))?),
        put: 0.into(),
        closing: false.into(),
        closed: false.into(),
    })
}

/// All of it; returns what was wrong.
fn soak(run: &Run) -> anyhow::Result<Vec<String>> {
    let elder = Agent::new("elder", true);
    let agents: Vec<Agent> = (0..AGENTS).map(|n| Agent::new(&format!("agent{n}"), n == 0)).collect();
    let scripts: Vec<Script> = (0..SCRIPTS).map(|n| Script::new(&format!("script{n}"))).collect();
    let operators = (0..OPERATORS)
        .map(|n| Ok(Operator { name: format!("o{n}"), token: run.place.token("operator")? }))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let viewer = run.place.token("viewer")?;
    let part = |part: usize| Chance::new(run.seed, part as u64);
    let (counts, watched) = thread::scope(|scope| -> anyhow::Result<_> {
        let mut askers = vec![scope.spawn(|| elder.work(run, part(1)))];
        for (n, agent) in agents.iter().enumerate() {
            askers.push(scope.spawn(move || agent.work(run, part(10 + n))));
        }
        for (n, script) in scripts.iter().enumerate() {
            askers.push(scope.spawn(move || script.work(run, part(20 + n))));
        }
        for (n, operator) in operators.iter().enumerate() {
            scope.spawn(move || operator.work(run, part(30 + n)));
        }
        let disturbing = scope.spawn(|| {
            let counts = disturbances::work(run, &agents, &scripts, part(2));
            // What cannot go on ends at once instead of after its time.
            run.closing.store(run.is_closing() || counts.is_err(), Ordering::Relaxed);
            counts
        });
        scope.spawn(|| visit(run, &viewer));
        let watched = watch(run, &elder);
        run.closing.store(true, Ordering::Relaxed);
        let counts = disturbing.join().ok().context("a thread broke off");
        let asked: anyhow::Result<Vec<()>> =
            askers.into_iter().map(|asker| asker.join().ok().context("a thread broke off")?).collect();
        let drained = counts.and_then(|counts| Ok((counts?, asked?, drain(run, &viewer)?)));
        run.closed.store(true, Ordering::Relaxed);
        Ok((drained?.0, watched))
    })?;
    lock(&run.evidence).stored = stored::read(&run.url(), &viewer)?;
    run.end_up(Signal::TERM)?;
    leftovers(run);
    std::fs::write(run.folder.join("memory-up.txt"), watched.up.text())?;
    std::fs::write(run.folder.join("memory-elder.txt"), watched.elder.text())?;
    let evidence = lock(&run.evidence);
    std::fs::write(run.folder.join("evidence.txt"), format!("{evidence:#?}"))?;
    let (judged, excused) = judge(&evidence);
    let mut violations = lock(&run.violations).clone();
    violations.extend(judged);
    summary(run, &evidence, &counts);
    say(&format!(
        "  after a crash   {} answers not delivered, {} not reported (none or one), {} not known",
        excused.not_delivered, excused.not_reported, excused.unknown
    ));
    for (name, series, keeps) in [("up", watched.up, UP_KEEPS), ("elder", watched.elder, HOLDER_KEEPS)] {
        let Some(trend) = series.trend() else {
            violations.push(format!("{name}: too few samples of its memory"));
            continue;
        };
        say(&format!(
            "  memory of {name:<6}{:.0} KiB to {:.0}, at most {:.0}; {:+.0} KiB a minute over {:.1} minutes, {:+.0} bytes for \
             each of {} asks",
            trend.first,
            trend.last,
            trend.most,
            trend.slope,
            trend.window,
            trend.an_ask(),
            trend.asks
        ));
        violations.extend(trend.violation(name, keeps));
    }
    Ok(violations)
}

/// Memory over time: of `up` in the half in which it lives on, and of the elder all the time.
#[derive(Default)]
struct Watched {
    up: Series,
    elder: Series,
}

/// Looks at memory until the load is over.
fn watch(run: &Run, elder: &Agent) -> Watched {
    const EVERY: Duration = Duration::from_millis(500);
    let mut watched = Watched::default();
    let mut said = 0;
    while !run.is_closing() && clock::since(run.start) < run.length {
        thread::sleep(EVERY);
        let minute = clock::since(run.start) / 60_000_000_000;
        if minute > said {
            said = minute;
            say(&format!("{minute} min: {} submissions", lock(&run.evidence).submissions.len()));
        }
        let up = lock(&run.up).as_ref().map(|up| up.child.0.id());
        if let Some(kib) = up.filter(|_| run.is_in_second_half()).and_then(own) {
            watched.up.push(run.seconds(), kib, run.put.load(Ordering::Relaxed));
        }
        let id = lock(&elder.slot).as_ref().map(|slot| slot.child.id());
        if let Some(kib) = id.and_then(own) {
            watched.elder.push(run.seconds(), kib, elder.put.load(Ordering::Relaxed));
        }
    }
    watched
}

/// Reads everything again and again in the half in which `up` lives on.
fn visit(run: &Run, viewer: &str) {
    while !run.is_closing() {
        thread::sleep(Duration::from_millis(500));
        if run.is_in_second_half()
            && let Err(error) = stored::read(&run.url(), viewer)
        {
            run.violates(&format!("the lists cannot be read: {error:#}"));
        }
    }
}

/// Waits until no ask is open, as the inbox sees it.
fn drain(run: &Run, viewer: &str) -> anyhow::Result<()> {
    let start = clock::now();
    loop {
        let open = stored::open(&run.url(), viewer)?;
        if open == 0 {
            run.note(&format!("no ask is open {} s after the load", clock::since(start) / 1_000_000_000));
            return Ok(());
        }
        if clock::since(start) > DRAIN {
            // The judge says which of them may be.
            run.note(&format!("{open} asks have not ended long after their deadlines"));
            return Ok(());
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// Looks for processes that are left, and ends them.
fn leftovers(run: &Run) {
    let start = clock::now();
    let mut left = processes_with(MARK, &run.mark());
    while !left.is_empty() && clock::since(start) < GRACE {
        thread::sleep(Duration::from_millis(50));
        left = processes_with(MARK, &run.mark());
    }
    for id in left {
        run.violates(&format!("process {id} is left"));
        if let Some(id) = Pid::from_raw(id) {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

fn summary(run: &Run, evidence: &Evidence, counts: &BTreeMap<Disturbance, usize>) {
    let mut deliveries: BTreeMap<&str, usize> = BTreeMap::new();
    for asked in &evidence.asked {
        let word = match asked.deliveries.first() {
            Some(Delivery::Accept(_)) => "accept",
            Some(Delivery::Decline) => "decline",
            Some(Delivery::Cancel) => "cancel",
            Some(Delivery::Other(_)) => "something else",
            None if asked.is_refused => "refused: no inbox",
            None => "broken off",
        };
        *deliveries.entry(word).or_default() += 1;
    }
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for submission in &evidence.submissions {
        *told.entry(format!("{:?}", submission.told)).or_default() += 1;
    }
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    for stored in &evidence.stored {
        let how = if stored.outcome.is_empty() { &stored.state } else { &stored.outcome };
        *outcomes.entry(how).or_default() += 1;
    }
    let listed = |counts: Vec<String>| counts.join(", ");
    say(&format!("after {:.0} s:", run.seconds()));
    say(&format!("  asks put        {}", evidence.asked.len()));
    say(&format!(
        "  delivered       {}",
        listed(deliveries.iter().map(|(k, n)| format!("{n} {k}")).collect())
    ));
    say(&format!("  submissions     {}", listed(told.iter().map(|(k, n)| format!("{n} {k}")).collect())));
    say(&format!("  in the store    {}", listed(outcomes.iter().map(|(k, n)| format!("{n} {k}")).collect())));
    say(&format!("  disturbances    {}", listed(counts.iter().map(|(k, n)| format!("{n} {k:?}")).collect())));
}
