//! From an operator's submission to the frame at the agent, with asks open beside it, against a bare way.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, bail};

use super::{
    super::samples::Samples,
    lists,
    up::{Up, handraise, token},
};
use crate::{clock, http::Connection, inbox::Ending, project::say};

/// What was measured with that many asks open.
pub(super) struct Measured {
    /// Asks open.
    pub(super) asks: usize,
    /// From submission to frame.
    pub(super) through: Samples,
    /// The bare way.
    pub(super) bare: Samples,
}

/// Opens asks with a real agent, and answers some of them one after the other.
pub(super) fn measure(binary: &Path, folder: &Path, asks: usize, answers: usize) -> anyhow::Result<Measured> {
    let up = Up::start(binary, folder)?;
    let token = token(binary, folder, "operator")?;
    let start = clock::now();
    let (agent, mut reports) = start_agent(binary, folder, asks)?;
    wait_for_asks(&up, asks)?;
    let taken = seconds(clock::since(start));
    let processor = seconds(up.processor_time()?);
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let count = asks as f64;
    say(&format!(
        "{asks} asks open after {taken:.1} s: {:.0} a second, {:.0} µs of processor time of `up` each, {:.0} MiB",
        count / taken,
        processor * 1e6 / count,
        mebibytes(up.memory()?)
    ));
    // Not earlier: the inbox leaves a connection that says nothing after a few seconds.
    let mut connection = Connection::open(&up.url, &token)?;
    lists::time(&mut connection, "open", &format!("beside {asks} open"))?;
    let mut baseline = Baseline::start(folder)?;
    let (mut through, mut bare) = (Samples::default(), Samples::default());
    let mut left = answers;
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
            "{name}, {asks} open: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs",
            samples.quantile(0.5),
            samples.quantile(0.99),
            samples.quantile(1.0)
        ));
    }
    let ratio = |share| through.quantile(share) / bare.quantile(share).max(0.001);
    say(&format!("ratio, {asks} open: p50 {:.1}, p99 {:.1}, {answers} answered", ratio(0.5), ratio(0.99)));
    Ok(Measured { asks, through, bare })
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

fn start_agent(binary: &Path, folder: &Path, asks: usize) -> anyhow::Result<(Ending, UnixStream)> {
    let socket = folder.join("reports");
    let listener = UnixListener::bind(&socket)?;
    let child = handraise(binary, folder)
        .args(["agent", "--prompt", "go", "--"])
        .arg(std::env::current_exe()?)
        .args(["bench", "agent", &asks.to_string()])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()?;
    let child = Ending(child);
    let (reports, _) = listener.accept()?;
    Ok((child, reports))
}

fn wait_for_asks(up: &Up, asks: usize) -> anyhow::Result<()> {
    const PATIENCE: u64 = 600_000_000_000;
    let start = clock::now();
    while clock::since(start) < PATIENCE {
        if up.open()? >= asks {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    bail!("{asks} asks were not opened within ten minutes")
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// The same hops with nothing in them: TCP to a thread, a pipe to a child, a socket back.
struct Baseline {
    client: TcpStream,
    reports: UnixStream,
    _child: Ending,
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
        Ok(Self { client, reports, _child: Ending(child) })
    }

    /// One line through all of it.
    fn pass(&mut self) -> anyhow::Result<u64> {
        let start = clock::now();
        self.client.write_all(b"{\"answers\":[{\"question_id\":\"question_0\"}]}\n")?;
        self.reports.read_exact(&mut [0])?;
        Ok(clock::since(start))
    }
}
