//! What the parts of a run share: where it is, how far it is, the running inbox, and what was seen.

use std::{
    fs::File,
    io::Write as _,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use super::{
    judge::{Asked, Evidence, Submission},
    relay::Relay,
};
use crate::{
    clock,
    inbox::{Place, Up, send},
    project::say,
};

/// How long an ask waits for an answer.
pub(super) const DEADLINE: &str = "8s";
/// The same in nanoseconds.
pub(super) const PATIENCE: u64 = 8_000_000_000;
/// How often things are looked at.
pub(super) const LOOK: Duration = Duration::from_millis(15);
/// The variable by which the processes of a run are known.
pub(super) const MARK: &str = "SOAK_RUN";
/// How long `up` may take to end in order, in nanoseconds.
const ENDING: u64 = 20_000_000_000;

/// One run.
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) folder: PathBuf,
    pub(super) binary: PathBuf,
    pub(super) place: Place,
    pub(super) relay: Relay,
    /// The token of holders that come through the relay.
    pub(super) holder: String,
    pub(super) start: u64,
    /// Nanoseconds of load.
    pub(super) length: u64,
    pub(super) up: Mutex<Option<Up>>,
    pub(super) evidence: Mutex<Evidence>,
    /// What was wrong before anything was judged.
    pub(super) violations: Mutex<Vec<String>>,
    pub(super) journal: Mutex<File>,
    /// How many asks were put.
    pub(super) put: AtomicUsize,
    pub(super) closing: AtomicBool,
    pub(super) closed: AtomicBool,
}

/// What another thread left behind is still true.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// Whether nothing more is asked or disturbed.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Whether operators are through, too.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn is_in_second_half(&self) -> bool {
        clock::since(self.start) > self.length / 2
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let nanos = clock::since(self.start) as f64;
        nanos / 1e9
    }

    /// What the environment of the run's processes says.
    pub(super) fn mark(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }

    /// Where the inbox is now. What is not there any more refuses connections.
    pub(super) fn url(&self) -> String {
        lock(&self.up).as_ref().map_or_else(|| "http://127.0.0.1:1".to_owned(), |up| up.url.clone())
    }

    /// Writes a line into the run's journal.
    pub(super) fn note(&self, line: &str) {
        let _ = writeln!(lock(&self.journal), "{:8.2} {line}", self.seconds());
    }

    pub(super) fn violates(&self, line: &str) {
        self.note(&format!("VIOLATION {line}"));
        say(&format!("violation: {line}"));
        lock(&self.violations).push(line.to_owned());
    }

    /// An ask is put.
    pub(super) fn puts(&self) {
        self.put.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn asked(&self, asked: Vec<Asked>) {
        lock(&self.evidence).asked.extend(asked);
    }

    pub(super) fn submitted(&self, submission: Submission) {
        lock(&self.evidence).submissions.push(submission);
    }

    /// Ends the inbox with a signal, and starts it again after a while.
    pub(super) fn restart_up(&self, signal: Signal, wait: Duration) -> anyhow::Result<()> {
        self.end_up(signal)?;
        std::thread::sleep(wait);
        let up = self.place.up().context("the inbox does not start again")?;
        *lock(&self.up) = Some(up);
        Ok(())
    }

    /// Ends the inbox with a signal. One that is asked to ends in order.
    pub(super) fn end_up(&self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut up) = lock(&self.up).take() else { return Ok(()) };
        send(&up.child.0, signal);
        let start = clock::now();
        let status = loop {
            if let Some(status) = up.child.0.try_wait()? {
                break status;
            }
            if clock::since(start) > ENDING {
                send(&up.child.0, Signal::KILL);
                bail!("the inbox did not end within {} s", ENDING / 1_000_000_000);
            }
            std::thread::sleep(LOOK);
        };
        if signal == Signal::TERM && !status.success() {
            self.violates(&format!("up: asked to end, it ended with {status}"));
        }
        Ok(())
    }
}
