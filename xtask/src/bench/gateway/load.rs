//! The client of the measurement: a closed loop with so many calls at a time, over a child's stdio.

use std::{
    fmt::Write as _,
    io::Write as _,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{super::samples::Samples, server::BIG};
use crate::clock;

/// After how long without an answer a connection stands still, in nanoseconds.
const STALL: u64 = 6_000_000_000;

/// What is called.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A text of so many bytes, there and back.
    Echo(usize),
    /// A small call with a large result.
    Big,
}

impl Work {
    /// The `params` of such a call, and the least bytes of its answer.
    pub(super) fn call(self) -> (String, usize) {
        match self {
            Self::Echo(bytes) => {
                let text: String =
                    "The quick brown fox, 0123456789 jumps. ".chars().cycle().take(bytes).collect();
                (format!("{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}}}"), bytes)
            }
            Self::Big => ("{\"name\":\"big\",\"arguments\":{}}".to_owned(), BIG),
        }
    }
}

/// What so many calls since `start` came to: the median latency in nanoseconds, and calls a second.
pub(super) fn outcome(latencies: &Samples, done: u32, start: u64) -> (u64, f64) {
    let seconds = Duration::from_nanos(clock::since(start)).as_secs_f64();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds of one call")]
    let median = (latencies.quantile(0.5) * 1000.0) as u64;
    (median, f64::from(done) / seconds)
}

/// A connection.
pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// What has been read and not been taken yet.
    read: Vec<u8>,
    /// Where the first line that is not taken begins.
    taken: usize,
    /// Where the search for a line end goes on.
    searched: usize,
    unsent: Vec<u8>,
    /// How much of that is sent.
    sent: usize,
    next_id: u64,
}

impl Client {
    /// Starts a command and introduces itself; with how long it took to the first answer, in nanoseconds.
    pub(super) fn start(mut command: Command) -> anyhow::Result<(Self, u64)> {
        let start = clock::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no pipe")?;
        let output = child.stdout.take().context("no pipe")?;
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        let mut client = Self {
            child,
            input,
            output,
            read: Vec::new(),
            taken: 0,
            searched: 0,
            unsent: Vec::new(),
            sent: 0,
            next_id: 1,
        };
        let hello = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
        client.unsent.extend_from_slice(hello.as_bytes());
        client.answers(|id, _| id == 0)?;
        let taken = clock::since(start);
        client.unsent.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        Ok((client, taken))
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by closing its input.
    pub(super) fn end(self) -> anyhow::Result<()> {
        let Self { mut child, input, output, .. } = self;
        drop((input, output));
        child.wait()?;
        Ok(())
    }

    /// Keeps so many calls open for so long; the median latency in nanoseconds, and calls per second.
    pub(super) fn run(&mut self, work: Work, at_a_time: usize, nanos: u64) -> anyhow::Result<(u64, f64)> {
        let (call, answer_bytes) = work.call();
        let mut latencies = Samples::default();
        let first = self.next_id;
        let mut starts = Vec::with_capacity(1 << 16);
        let send = |client: &mut Self, starts: &mut Vec<u64>| {
            let mut line = String::with_capacity(call.len() + 80);
            let id = client.next_id;
            let _ = write!(line, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":");
            line.push_str(&call);
            line.push_str("}\n");
            client.next_id += 1;
            starts.push(clock::now());
            client.unsent.extend_from_slice(line.as_bytes());
        };
        for _ in 0..at_a_time {
            send(self, &mut starts);
        }
        let start = clock::now();
        let mut open = at_a_time;
        let mut wrong = None;
        let mut done = 0_u32;
        while open > 0 {
            let mut answered = 0;
            self.answers(|id, length| {
                if length < answer_bytes {
                    wrong = Some(id);
                }
                let index = usize::try_from(id.saturating_sub(first)).unwrap_or(usize::MAX);
                if let Some(start) = starts.get(index) {
                    latencies.push(clock::since(*start));
                    answered += 1;
                }
                true
            })?;
            if let Some(id) = wrong {
                bail!("the answer to call {id} is too short");
            }
            open -= answered;
            done += u32::try_from(answered)?;
            if clock::since(start) < nanos {
                for _ in 0..answered {
                    send(self, &mut starts);
                }
                open += answered;
            }
        }
        Ok(outcome(&latencies, done, start))
    }

    /// Sends what is to be sent, and reads until answers have come; `take` gets each with its length, and says whether
    /// that was one to wait for.
    fn answers(&mut self, mut take: impl FnMut(u64, usize) -> bool) -> anyhow::Result<()> {
        let start = clock::now();
        loop {
            self.write()?;
            let mut found = false;
            while let Some(end) = memchr::memchr(b'\n', &self.read[self.searched..]) {
                let end = self.searched + end;
                if let Some(id) = id(&self.read[self.taken..end]) {
                    found |= take(id, end - self.taken);
                }
                self.taken = end + 1;
                self.searched = end + 1;
            }
            self.read.drain(..self.taken);
            self.searched = self.read.len();
            self.taken = 0;
            if found {
                return Ok(());
            }
            if clock::since(start) > STALL {
                bail!("it stands still");
            }
            self.wait_and_read()?;
        }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        while self.sent < self.unsent.len() {
            match self.input.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(())
    }

    fn wait_and_read(&mut self) -> anyhow::Result<()> {
        let writes = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut watched = [PollFd::new(&self.output, PollFlags::IN), PollFd::new(&self.input, writes)];
        poll(&mut watched, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }))?;
        self.read.reserve(64 * 1024);
        match rustix::io::read(&self.output, rustix::buffer::spare_capacity(&mut self.read)) {
            Ok(0) => bail!("it closed its stdout"),
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// The id of an answer as the server of the measurement writes it.
fn id(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}
