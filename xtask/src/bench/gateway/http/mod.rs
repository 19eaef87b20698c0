//! What the gateway costs in front of a server that speaks stdio, for clients that speak HTTP: a direct HTTP server, a
//! relay of bytes in front of it, and `handraise mcp --listen`, in turns, pinned to one CPU.
//!
//! Client and direct server are hyper's, so that they do what clients and servers do. Targets: 100 B ≤ 1.4 times, 10 KB ≤ 1.7
//! times, 1 MB ≤ 2.0 times a direct call, one at a time; 10 KB × 16 ≥ 70 % of direct; a session at rest ≤ 40 KB of the
//! gateway's own.

mod client;
mod parts;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, bail};

use self::client::Client;
use super::{Arguments, cells::Cells, load::Work, memory::Memory, part_command};
use crate::project::say;

pub(super) use parts::{relay, serve};

/// Payload, calls at a time, and what is to be reached: times a direct call, or percent of direct calls a second.
const CELLS: [(&str, Work, usize, &str); 4] = [
    ("100 B", Work::Echo(100), 1, "≤ 1.40x"),
    ("10 KB", Work::Echo(10_240), 1, "≤ 1.70x"),
    ("1 MB", Work::Big, 1, "≤ 2.00x"),
    ("10 KB × 16", Work::Echo(10_240), 16, "≥ 70 %"),
];

const SYSTEMS: [&str; 3] = ["direct", "relay", "gateway"];

/// What a session at rest may cost, in kilobytes.
const SESSION_KB: &str = "≤ 40 KB";

/// What one system did, over all repetitions.
type Measured = Cells<{ CELLS.len() }>;

/// Measures and prints.
pub(super) fn run(binary: &std::path::Path, arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = client::runtime()?;
    let mut all = [Measured::default(), Measured::default(), Measured::default()];
    for _ in 0..arguments.repetitions.max(1) {
        for (system, measured) in all.iter_mut().enumerate() {
            runtime.block_on(measure(system, binary, arguments.cell_ms, measured))?;
        }
    }
    print(&all);
    runtime.block_on(sessions(binary, arguments.sessions))
}

/// What listens, and everything that it needs.
struct System {
    address: String,
    processes: Vec<Child>,
}

impl System {
    fn start(system: usize, binary: &std::path::Path, most: usize) -> anyhow::Result<Self> {
        let mut started = Self { address: String::new(), processes: Vec::new() };
        if SYSTEMS[system] == "gateway" {
            let most = most.to_string();
            let mut command = Command::new(binary);
            command.args(["mcp", "--listen", "127.0.0.1:0", "--"]);
            let server = part_command(&["server"])?;
            command.arg(server.get_program()).args(server.get_args());
            command.env("HANDRAISE_LOG", "warn").env("XDG_CONFIG_HOME", "/nonexistent");
            command.env("HANDRAISE_MCP__SESSIONS", &most).env("HANDRAISE_MCP__CHILDREN", &most);
            started.add(command)?;
            return Ok(started);
        }
        started.add(part_command(&["http-server"])?)?;
        if SYSTEMS[system] == "relay" {
            let address = started.address.clone();
            started.add(part_command(&["http-relay", &address])?)?;
        }
        Ok(started)
    }

    /// Starts a process that prints its URL.
    fn add(&mut self, mut command: Command) -> anyhow::Result<()> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take();
        self.processes.push(child);
        let mut line = String::new();
        BufReader::new(output.context("no pipe")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
        url.context("it does not say where it listens")?.clone_into(&mut self.address);
        Ok(())
    }

    /// The process that was started last.
    fn id(&self) -> u32 {
        self.processes.last().map_or(0, Child::id)
    }
}

impl Drop for System {
    fn drop(&mut self) {
        for child in &mut self.processes {
            // It may have ended before. Supervisors end what it has started.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn measure(
    system: usize,
    binary: &std::path::Path,
    cell_ms: u64,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    let started = System::start(system, binary, 1)?;
    let mut client = Client::open(&started.address).await?;
    for (cell, (name, work, at_a_time, _)) in CELLS.into_iter().enumerate() {
        let outcome = client.run(work, at_a_time, cell_ms * 1_000_000).await;
        measured.push(cell, outcome.with_context(|| format!("{} at {name}", SYSTEMS[system]))?);
    }
    Ok(())
}

fn print(all: &[Measured; 3]) {
    say(&format!("{:<12} {:>22} {:>22} {:>22} {:>10}", "", SYSTEMS[0], SYSTEMS[1], SYSTEMS[2], "target"));
    for (cell, (name, _, at_a_time, target)) in CELLS.into_iter().enumerate() {
        let [direct, relay, gateway] = Cells::compared(all.each_ref(), cell, at_a_time);
        say(&format!("{name:<12} {direct:>22} {relay:>22} {gateway:>22} {target:>10}"));
    }
}

/// What sessions at rest cost the gateway, without their servers and supervisors.
async fn sessions(binary: &std::path::Path, most: usize) -> anyhow::Result<()> {
    if most < 4 {
        bail!("a slope needs more than {most} sessions");
    }
    let gateway = SYSTEMS.len() - 1;
    let started = System::start(gateway, binary, most)?;
    let mut open = Vec::new();
    let mut memory = Vec::new();
    // What the first ones need once is no session's.
    for count in [most / 4, most / 2, most] {
        while open.len() < count {
            open.push(Client::open(&started.address).await?);
        }
        client::rest().await;
        memory.push((count, Memory::of_one(started.id()).private));
    }
    let [_, (some, before), (all, after)] = memory[..] else { bail!("no memory was read") };
    let slope = after.saturating_sub(before) / (all - some) as u64;
    let shown: Vec<String> = memory.iter().map(|(count, kb)| format!("{count}: {kb} KB")).collect();
    say(&format!("sessions at rest: {slope} KB each ({SESSION_KB}); private at {}", shown.join(", ")));
    Ok(())
}
