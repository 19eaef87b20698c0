//! Scripts: one `handraise ask` after the other.

use std::{fs::File, io::Read as _, process::Stdio, sync::Mutex};

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::Value;

use super::{
    agents::Slot,
    chance::Chance,
    judge::{Asked, Delivery},
    run::{DEADLINE, LOOK, PATIENCE, Run, lock},
};
use crate::{clock, inbox::send};

/// How long one may take beyond its deadline, in nanoseconds.
const STALLED: u64 = 30_000_000_000;

/// One script.
pub(super) struct Script {
    pub(super) name: String,
    /// The running process, for whoever disturbs.
    pub(super) slot: Mutex<Option<Slot>>,
}

impl Script {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), slot: Mutex::new(None) }
    }

    /// Asks until the run closes.
    pub(super) fn work(&self, run: &Run, mut chance: Chance) -> anyhow::Result<()> {
        let mut number = 0_usize;
        while !run.is_closing() {
            number += 1;
            run.asked(vec![self.ask(run, &format!("{}-{number}", self.name))?]);
            std::thread::sleep(std::time::Duration::from_millis(chance.below(300)));
        }
        Ok(())
    }

    fn ask(&self, run: &Run, name: &str) -> anyhow::Result<Asked> {
        let log =
            File::options().create(true).append(true).open(run.folder.join(format!("{}.log", self.name)))?;
        let mut child = run
            .place
            .command()
            .args(["ask", name, "--text", "--json", "--timeout", DEADLINE])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start handraise ask")?;
        run.puts();
        let mut stdout = child.stdout.take().context("no pipe")?;
        *lock(&self.slot) = Some(Slot { child, is_hit: false });
        let start = clock::now();
        let status = loop {
            std::thread::sleep(LOOK);
            let mut slot = lock(&self.slot);
            let Some(slot) = slot.as_mut() else { break None };
            if let Some(status) = slot.child.try_wait()? {
                break Some(status);
            }
            if clock::since(start) > PATIENCE + STALLED {
                run.violates(&format!("{name}: did not end"));
                slot.is_hit = true;
                send(&slot.child, Signal::KILL);
            }
        };
        let is_hit = lock(&self.slot).take().is_some_and(|slot| slot.is_hit);
        let mut text = String::new();
        stdout.read_to_string(&mut text)?;
        let code = status.and_then(|status| status.code());
        Ok(Asked {
            name: name.to_owned(),
            deliveries: text.lines().map(delivery).collect(),
            is_broken_off: is_hit,
            is_refused: code == Some(1),
        })
    }
}

/// What a line of `handraise ask --json` is.
fn delivery(line: &str) -> Delivery {
    let value: Value = serde_json::from_str(line).unwrap_or(Value::Null);
    match (value["outcome"].as_str(), value["content"]["answer"].as_str()) {
        (Some("accept"), Some(text)) => Delivery::Accept(text.to_owned()),
        (Some("decline" | "timeout"), None) => Delivery::Decline,
        (Some("cancel" | "withdrawn"), None) => Delivery::Cancel,
        _ => Delivery::Other(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_handraise_ask_are_deliveries() {
        let of = |outcome: &str, content: &str| {
            delivery(&format!(r#"{{"outcome":"{outcome}","provenance":"client","content":{content}}}"#))
        };
        assert_eq!(of("accept", r#"{"answer":"x"}"#), Delivery::Accept("x".to_owned()));
        assert_eq!(of("timeout", "null"), Delivery::Decline);
        assert_eq!(of("cancel", "null"), Delivery::Cancel);
        assert!(matches!(of("accept", "null"), Delivery::Other(_)));
        assert!(matches!(delivery("words"), Delivery::Other(_)));
    }
}
