//! What a gateway logs, and what the scripted server behind it saw.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Collected, wait_for};

/// The tests' witness.
pub(crate) struct Witness {
    pub(crate) log: Collected,
    calls: PathBuf,
    record: PathBuf,
}

impl Witness {
    /// The files that [`Witness::arguments`] name, and a log.
    pub(crate) fn new(folder: &Path, log: Collected) -> Self {
        Self { log, calls: folder.join("calls"), record: folder.join("record") }
    }

    /// Arguments of the scripted server, so that it says what it saw.
    pub(crate) fn arguments(folder: &Path) -> [PathBuf; 4] {
        ["--calls".into(), folder.join("calls"), "--record".into(), folder.join("record")]
    }

    /// What the server saw: each call that began, `{"tool": …, "arguments": …}`, and each that was cancelled.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.calls).unwrap_or_default();
        // Of a line that is being written there may be a part.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often a tool began to run.
    pub(crate) fn count(&self, tool: &str) -> usize {
        self.calls().iter().filter(|call| call["tool"] == tool).count()
    }

    /// How often a call of a tool was cancelled.
    pub(crate) fn cancelled(&self, tool: &str) -> usize {
        self.calls().iter().filter(|call| call["cancelled"] == tool).count()
    }

    /// Every byte that the server has received.
    pub(crate) fn received(&self) -> Vec<u8> {
        std::fs::read(&self.record).unwrap_or_default()
    }

    /// The records in the log.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = self.log.text();
        let lines = text.lines().filter_map(|line| line.split_once("[elicitation] "));
        lines.map(|(_, record)| serde_json::from_str(record).unwrap()).collect()
    }

    /// The outcomes in the log, once there are so many records.
    #[track_caller]
    pub(crate) fn outcomes(&self, count: usize) -> Vec<String> {
        let records = wait_for(&format!("{count} records"), || {
            Some(self.records()).filter(|records| records.len() >= count)
        });
        records.iter().map(|record| record["outcome"].as_str().unwrap().to_owned()).collect()
    }
}
