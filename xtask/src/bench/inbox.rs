//! From an operator's submission to the frame at the agent, and how long `up` takes to be ready.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, bail};

use super::{http::Connection, samples::Samples};
use crate::{
    clock,
    commands::{Run, target_directory},
    project::{Project, say},
};

/// How to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many asks are open all the time.
    #[arg(long, default_value_t = 10_000)]
    asks: usize,
    /// How many are answered, one after the other.
    #[arg(long, default_value_t = 2_000)]
    answers: usize,
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
    let outcome = measure(&binary, &folder, arguments);
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    outcome
}

fn build(project: &Project) -> anyhow::Result<PathBuf> {
    Run::cargo(project, &["build", "--release", "--package", "handraise-cli", "--bin", "handraise"])
        .succeed()?;
    Ok(target_directory(project)?.join("release/handraise"))
}

fn measure(binary: &Path, folder: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let mut ready = Samples::default();
    for _ in 0..STARTS {
        let start = clock::now();
        let up = Up::start(binary, folder)?;
        ready.push(clock::since(start));
        drop(up);
    }
    say(&format!(
        "up ready: p50 {:.1} ms, max {:.1} ms of {STARTS} starts",
        ready.quantile(0.5) / 1000.0,
        ready.quantile(1.0) / 1000.0
    ));

    let up = Up::start(binary, folder)?;
    let token = token(binary, folder)?;
    let mut connection = Connection::open(&up.url, &token)?;
    let (agent, mut reports) = start_agent(binary, folder, arguments.asks)?;
    wait_for_asks(&mut connection, arguments.asks)?;
    let mut baseline = Baseline::start(folder)?;

    let (mut through, mut bare) = (Samples::default(), Samples::default());
    let mut left = arguments.answers;
    while left > 0 {
        let page = connection.call("GET", "/api/v1/asks?state=open&limit=100", "")?;
        let ids: Vec<String> = page["asks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|ask| ask["id"].as_str().map(str::to_owned))
            .collect();
        if ids.is_empty() {
            bail!("no ask is open any more");
        }
        for id in ids.iter().take(left) {
            through.push(answer(&mut connection, id, &mut reports)?);
            bare.push(baseline.pass()?);
        }
        left = left.saturating_sub(ids.len());
    }
    drop((agent, up));

    for (name, samples) in [("submit to frame", &through), ("bare", &bare)] {
        say(&format!(
            "{name}: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs",
            samples.quantile(0.5),
            samples.quantile(0.99),
            samples.quantile(1.0)
        ));
    }
    let ratio = |share| through.quantile(share) / bare.quantile(share).max(0.001);
    say(&format!(
        "ratio: p50 {:.1}, p99 {:.1}, with {} asks open and {} answered",
        ratio(0.5),
        ratio(0.99),
        arguments.asks,
        arguments.answers
    ));
    Ok(())
}

/// From the submission's first byte to the agent's word that the response has come.
fn answer(connection: &mut Connection, id: &str, reports: &mut UnixStream) -> anyhow::Result<u64> {
    let body =
        r#"{"answers":[{"question_id":"question_0","selected_options":["Postgres"],"custom_text":""}]}"#;
    let start = clock::now();
    connection.send("POST", &format!("/api/v1/asks/{id}/answer"), body)?;
    reports.read_exact(&mut [0])?;
    let taken = clock::since(start);
    let (status, answer) = connection.receive()?;
    if status != 200 {
        bail!("the answer to {id} got {status}: {answer}");
    }
    Ok(taken)
}

fn handraise(binary: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    let limit = |name: &str| format!("HANDRAISE_LIMITS__{name}");
    command
        .env("HANDRAISE_DATA_DIR", folder.join("data"))
        .env("XDG_CONFIG_HOME", folder)
        .env("HANDRAISE_LOG", "warn")
        .env(limit("OPEN_ASKS"), "1000000")
        .env(limit("OPEN_BYTES"), "17179869184")
        .env(limit("SESSION_OPEN_ASKS"), "1000000")
        .env(limit("ASKS_PER_SECOND"), "1000000")
        .stdin(Stdio::null());
    command
}

/// A running inbox.
struct Up {
    child: Child,
    url: String,
}

impl Up {
    /// Starts it and waits until it says that it is ready.
    fn start(binary: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut child = handraise(binary, folder)
            .args(["up", "--no-open", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let mut link = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut link)?;
        }
        let url = link.split("/#").next().unwrap_or_default().to_owned();
        let up = Self { child, url };
        Connection::open(&up.url, "")?.call("GET", "/readyz", "")?;
        Ok(up)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    let id = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    let _ = child.wait();
}

fn token(binary: &Path, folder: &Path) -> anyhow::Result<String> {
    let output = handraise(binary, folder)
        .args(["token", "create", "--scope", "operator"])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("no token was made");
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// A child that is ended with its measurement.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn start_agent(binary: &Path, folder: &Path, asks: usize) -> anyhow::Result<(Ended, UnixStream)> {
    let socket = folder.join("reports");
    let listener = UnixListener::bind(&socket)?;
    let child = handraise(binary, folder)
        .args(["agent", "--prompt", "go", "--"])
        .arg(std::env::current_exe()?)
        .args(["bench", "agent", &asks.to_string()])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()?;
    let child = Ended(child);
    let (reports, _) = listener.accept()?;
    Ok((child, reports))
}

fn wait_for_asks(connection: &mut Connection, asks: usize) -> anyhow::Result<()> {
    const PATIENCE: u64 = 120_000_000_000;
    let start = clock::now();
    while clock::since(start) < PATIENCE {
        let mut seen = 0;
        let mut cursor = String::new();
        loop {
            let path = format!("/api/v1/asks?state=open&limit=500{cursor}");
            let page = connection.call("GET", &path, "")?;
            seen += page["asks"].as_array().map_or(0, Vec::len);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        if seen >= asks {
            say(&format!("{seen} asks are open after {:.1} s", seconds(clock::since(start))));
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    bail!("{asks} asks were not opened within two minutes")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// The same hops with nothing in them: TCP to a thread, a pipe to a child, a socket back.
struct Baseline {
    client: TcpStream,
    reports: UnixStream,
    _child: Ended,
}

impl Baseline {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let socket = folder.join("bare");
        let listener = UnixListener::bind(&socket)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "relay"])
            .arg(&socket)
            .stdin(Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdin.take().context("no pipe")?;
        let (reports, _) = listener.accept()?;
        let server = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(server.local_addr()?)?;
        client.set_nodelay(true)?;
        let (passed, _) = server.accept()?;
        std::thread::spawn(move || {
            for line in BufReader::new(passed).lines().map_while(Result::ok) {
                if writeln!(pipe, "{line}").is_err() {
                    break;
                }
            }
        });
        Ok(Self { client, reports, _child: Ended(child) })
    }

    /// One line through all of it.
    fn pass(&mut self) -> anyhow::Result<u64> {
        let start = clock::now();
        self.client.write_all(b"{\"answers\":[{\"question_id\":\"question_0\"}]}\n")?;
        self.reports.read_exact(&mut [0])?;
        Ok(clock::since(start))
    }
}
