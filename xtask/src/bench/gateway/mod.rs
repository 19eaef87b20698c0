//! What the gateway costs: a direct connection, a process that copies bytes, and `handraise mcp`, in turns, pinned to
//! one CPU.
//!
//! Targets: 100 B ≤ 2.9 times, 10 KB ≤ 2.4 times, 1 MB ≤ 2.2 times a direct call, one at a time; 10 KB × 16 ≥ 60,000
//! calls a second or 54 % of direct; started in 6 ms; 4 MB of its own, 16 MB with everything shared and the supervisor.
//!
//! The targets are ratios to a server that does what every server does: it reads its frames as JSON ([`server`]). Ratios to
//! one that looks for a few bytes and copies would be a quarter larger at 10 KB, and say less. Texts of 100 bytes and 10 KB
//! go both ways; of a megabyte only the result is.

mod cells;
mod http;
mod load;
mod memory;
mod server;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context as _;

use self::{
    cells::Cells,
    load::{Client, Work},
    memory::Memory,
};
use super::samples::Samples;
use crate::{
    commands::{Run, target_directory},
    project::{Project, say},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each system is measured, in turns. The median of the repetitions' medians is printed.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// How long each cell takes, in milliseconds.
    #[arg(long, default_value_t = 250)]
    cell_ms: u64,
    /// The binary to measure; otherwise one is built with optimisations.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Measure `handraise mcp --listen` for clients that speak HTTP.
    #[arg(long)]
    http: bool,
    /// How many sessions are opened at most for what one at rest costs, with --http.
    #[arg(long, default_value_t = 400)]
    sessions: usize,
    /// Let the scheduler place the processes. Results then differ several times between runs.
    #[arg(long)]
    unpinned: bool,
}

/// The server of the measurement, and the program that copies bytes.
#[derive(clap::Args)]
pub(crate) struct PartArguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    /// Answers calls.
    Server,
    /// Answers calls over HTTP.
    HttpServer,
    /// Copies bytes to and from an address.
    HttpRelay {
        /// The address.
        to: SocketAddr,
    },
    /// Copies bytes to and from another command.
    Copy {
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<std::ffi::OsString>,
    },
}

/// Plays one of the parts.
pub(crate) fn part(arguments: &PartArguments) -> anyhow::Result<()> {
    match &arguments.part {
        Part::Server => server::run(),
        Part::HttpServer => http::serve(),
        Part::HttpRelay { to } => http::relay(*to),
        Part::Copy { command } => copy(command),
    }
}

/// Payload and calls at a time.
const CELLS: [(&str, Work, usize); 7] = [
    ("100 B", Work::Echo(100), 1),
    ("100 B × 16", Work::Echo(100), 16),
    ("10 KB", Work::Echo(10_240), 1),
    ("10 KB × 16", Work::Echo(10_240), 16),
    ("10 KB × 128", Work::Echo(10_240), 128),
    ("1 MB", Work::Big, 1),
    ("1 MB × 16", Work::Big, 16),
];

const SYSTEMS: [&str; 3] = ["direct", "copy", "gateway"];

/// What one system did, over all repetitions.
#[derive(Default)]
struct Measured {
    starts: Samples,
    cells: Cells<{ CELLS.len() }>,
    memory: Memory,
}

pub(crate) fn run(project: &Project, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => build(project)?,
    };
    if !arguments.unpinned {
        pin()?;
    }
    if arguments.http {
        return http::run(&binary, arguments);
    }
    let mut all = [Measured::default(), Measured::default(), Measured::default()];
    for _ in 0..arguments.repetitions.max(1) {
        for (system, measured) in all.iter_mut().enumerate() {
            measure(system, &binary, arguments.cell_ms, measured)?;
        }
    }
    print(&all);
    Ok(())
}

fn build(project: &Project) -> anyhow::Result<PathBuf> {
    Run::cargo(project, &["build", "--release", "--package", "handraise-cli", "--bin", "handraise"])
        .succeed()?;
    Ok(target_directory(project)?.join("release/handraise"))
}

/// Puts this process and all that it starts on one CPU: latency is then the sum of everybody's work.
fn pin() -> anyhow::Result<()> {
    let mut allowed = rustix::thread::sched_getaffinity(None)?;
    let last = (0..rustix::thread::CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu));
    let last = last.context("there is no CPU to run on")?;
    allowed.clear();
    allowed.set(last);
    rustix::thread::sched_setaffinity(None, &allowed).context("cannot pin to one CPU")
}

/// Starts this program as one of the parts.
fn part_command(arguments: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "gateway-part"]).args(arguments);
    Ok(command)
}

fn command(system: usize, binary: &Path) -> anyhow::Result<Command> {
    let server = part_command(&["server"])?;
    let mut command = match SYSTEMS[system] {
        "direct" => return Ok(server),
        "copy" => part_command(&["copy", "--"])?,
        _ => {
            let mut command = Command::new(binary);
            command.args(["mcp", "--"]).env("HANDRAISE_LOG", "warn").env("XDG_CONFIG_HOME", "/nonexistent");
            command
        }
    };
    command.arg(server.get_program()).args(server.get_args());
    Ok(command)
}

fn measure(system: usize, binary: &Path, cell_ms: u64, measured: &mut Measured) -> anyhow::Result<()> {
    const STARTS: usize = 10;
    for _ in 0..STARTS {
        let (client, taken) = Client::start(command(system, binary)?)?;
        measured.starts.push(taken);
        client.end()?;
    }
    let (mut client, _) = Client::start(command(system, binary)?)?;
    for (cell, (name, work, at_a_time)) in CELLS.into_iter().enumerate() {
        let outcome = client.run(work, at_a_time, cell_ms * 1_000_000);
        measured.cells.push(cell, outcome.with_context(|| format!("{} at {name}", SYSTEMS[system]))?);
        if name == "100 B" {
            // Before anything large went through.
            measured.memory = measured.memory.or(Memory::of(client.id(), "server"));
        }
    }
    client.end()
}

fn print(all: &[Measured; 3]) {
    say(&format!("{:<12} {:>24} {:>24} {:>24}", "", SYSTEMS[0], SYSTEMS[1], SYSTEMS[2]));
    let row = |name: &str, cells: [String; 3]| {
        say(&format!("{name:<12} {:>24} {:>24} {:>24}", cells[0], cells[1], cells[2]));
    };
    for (cell, (name, _, at_a_time)) in CELLS.into_iter().enumerate() {
        row(name, Cells::compared(all.each_ref().map(|measured| &measured.cells), cell, at_a_time));
    }
    row("start", all.each_ref().map(|measured| format!("{:.1} ms", measured.starts.quantile(0.5) / 1000.0)));
    let memory = all[2].memory;
    say(&format!(
        "gateway and supervisor: {} KB resident in sum, {} KB of them written; the larger of the two holds {} KB that nobody else maps",
        memory.resident, memory.written, memory.private
    ));
}

/// Starts a command and copies bytes both ways: what one more process costs that looks at nothing.
fn copy(command: &[std::ffi::OsString]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut to, mut from) =
        (child.stdin.take().context("no pipe")?, child.stdout.take().context("no pipe")?);
    std::thread::spawn(move || pump(&mut io::stdin().lock(), &mut to));
    pump(&mut from, &mut io::stdout().lock())?;
    child.wait()?;
    Ok(())
}

fn pump(from: &mut impl io::Read, to: &mut impl io::Write) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
        }
    }
}
