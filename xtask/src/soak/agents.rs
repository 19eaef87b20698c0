//! Agents that ask one form after the other: `handraise agent` around the scripted agent, which records what it got.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    chance::Chance,
    judge::{Asked, Delivery},
    run::{LOOK, PATIENCE, Run, lock},
};
use crate::{clock, inbox::send};

/// How long a turn may take beyond the deadline of its ask, in nanoseconds.
const STALLED: u64 = 30_000_000_000;
/// How long an agent may take to end after its last prompt, in nanoseconds.
const ENDING: u64 = 10_000_000_000;

/// One agent, which is started again whenever it was ended.
pub(super) struct Agent {
    pub(super) name: String,
    /// Whether its holder stream goes through the relay.
    pub(super) is_relayed: bool,
    /// The running process, for whoever disturbs.
    pub(super) slot: Mutex<Option<Slot>>,
    /// How many asks it has put.
    pub(super) put: AtomicUsize,
}

/// A running process, and whether it was disturbed.
pub(super) struct Slot {
    pub(super) child: Child,
    pub(super) is_hit: bool,
}

impl Agent {
    pub(super) fn new(name: &str, is_relayed: bool) -> Self {
        Self { name: name.to_owned(), is_relayed, slot: Mutex::new(None), put: AtomicUsize::new(0) }
    }

    /// Asks until the run closes.
    pub(super) fn work(&self, run: &Run, mut chance: Chance) -> anyhow::Result<()> {
        let mut life = 0;
        while !run.is_closing() {
            life += 1;
            self.live(run, life, &mut chance)?;
        }
        Ok(())
    }

    /// One process from start to end.
    fn live(&self, run: &Run, life: usize, chance: &mut Chance) -> anyhow::Result<()> {
        let name = format!("{}-{life}", self.name);
        let record = run.folder.join(format!("{name}.jsonl"));
        let mut tally = Tally::open(&record)?;
        let mut child = self.start(run, &record)?;
        let mut stdin = child.stdin.take();
        *lock(&self.slot) = Some(Slot { child, is_hit: false });
        let mut prompted = 0;
        let mut since = clock::now();
        let mut pause = 0;
        let status = loop {
            std::thread::sleep(LOOK);
            let status =
                lock(&self.slot).as_mut().and_then(|slot| slot.child.try_wait().transpose()).transpose()?;
            tally.read()?;
            if status.is_some() {
                break status;
            }
            let is_idle = tally.has_session && tally.answered() >= prompted;
            if is_idle && stdin.is_some() && clock::since(since) > pause {
                if run.is_closing() {
                    stdin = None;
                } else {
                    prompt(stdin.as_mut(), &format!("{name}-{prompted}"));
                    prompted += 1;
                    self.put.fetch_add(1, Ordering::Relaxed);
                    run.puts();
                    pause = chance.below(300) * 1_000_000;
                }
                since = clock::now();
            }
            if stdin.is_none() && clock::since(since) > ENDING {
                run.violates(&format!("{name}: did not end after its last prompt"));
                self.end();
            } else if !is_idle && clock::since(since) > PATIENCE + STALLED {
                run.violates(&format!("{name}: nothing came for ask {prompted}"));
                self.end();
            } else if is_idle && stdin.is_some() {
                // The pause counts from the answer on.
                since = since.max(tally.at);
            }
        };
        let is_hit = lock(&self.slot).take().is_some_and(|slot| slot.is_hit);
        let is_clean = status.is_some_and(|status| status.success());
        // One that finds no inbox says so and ends.
        if !is_hit && !is_clean && tally.has_session {
            run.violates(&format!("{name}: ended by itself with {status:?}"));
        }
        run.asked(tally.asked(is_hit));
        Ok(())
    }

    fn start(&self, run: &Run, record: &Path) -> anyhow::Result<Child> {
        let mut command = run.place.command();
        command.args(["agent", "--attach"]);
        if self.is_relayed {
            command.arg("--inbox").arg(format!("unix:{}", run.relay.path().display()));
            command.env("HANDRAISE_TOKEN", &run.holder);
        }
        let log =
            File::options().create(true).append(true).open(run.folder.join(format!("{}.log", self.name)))?;
        command.arg("--").arg(&run.binary).args(["fake-agent", "--record"]).arg(record);
        command.current_dir(&run.folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        command.spawn().context("cannot start handraise agent")
    }

    /// Ends one that hangs, which has been said.
    fn end(&self) {
        if let Some(slot) = lock(&self.slot).as_mut() {
            slot.is_hit = true;
            send(&slot.child, Signal::KILL);
        }
    }
}

/// Prompts for one form whose only key is the ask's name. A pipe that is broken is an agent that was ended.
fn prompt(stdin: Option<&mut ChildStdin>, name: &str) {
    let form = json!({"message": name, "requestedSchema": {
        "type": "object", "properties": {name: {"type": "string", "title": "Soak"}},
    }});
    if let Some(stdin) = stdin {
        let _ = writeln!(stdin, "form {form}").and_then(|()| stdin.flush());
    }
}

/// What an agent has recorded, read while it grows.
struct Tally {
    path: PathBuf,
    file: File,
    rest: Vec<u8>,
    has_session: bool,
    /// The names of what it was prompted to ask, in order: the first is its request 0.
    prompts: Vec<String>,
    /// What came back, by the request's id.
    responses: BTreeMap<u64, Vec<Value>>,
    /// When something came last.
    at: u64,
}

impl Tally {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::options().create(true).append(true).read(true).open(path)?;
        let (rest, prompts, responses) = (Vec::new(), Vec::new(), BTreeMap::new());
        Ok(Self {
            path: path.to_owned(),
            file,
            rest,
            has_session: false,
            prompts,
            responses,
            at: clock::now(),
        })
    }

    fn read(&mut self) -> anyhow::Result<()> {
        let before = self.rest.len();
        self.file
            .read_to_end(&mut self.rest)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        if self.rest.len() > before {
            self.at = clock::now();
        }
        while let Some(end) = memchr::memchr(b'\n', &self.rest) {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.take(&serde_json::from_slice(&line).unwrap_or(Value::Null));
        }
        Ok(())
    }

    fn take(&mut self, frame: &Value) {
        match (frame["method"].as_str(), frame["id"].as_u64()) {
            (Some("session/new"), _) => self.has_session = true,
            (Some("session/prompt"), _) => {
                let text = frame["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                let form =
                    text.strip_prefix("form ").and_then(|form| serde_json::from_str::<Value>(form).ok());
                let name = form.and_then(|form| form["message"].as_str().map(str::to_owned));
                self.prompts.push(name.unwrap_or_default());
            }
            (None, Some(id)) => self.responses.entry(id).or_default().push(frame.clone()),
            _ => {}
        }
    }

    /// How many asks have got something.
    fn answered(&self) -> usize {
        self.responses.len()
    }

    /// Every ask with what came back. In a life that was disturbed the last one is broken off.
    fn asked(&self, is_hit: bool) -> Vec<Asked> {
        let last = self.prompts.len().saturating_sub(1);
        let asked = |(n, name): (usize, &String)| Asked {
            name: name.clone(),
            deliveries: self
                .responses
                .get(&(n as u64))
                .into_iter()
                .flatten()
                .map(|frame| delivery(name, frame))
                .collect(),
            is_broken_off: is_hit && n == last,
            is_refused: false,
        };
        self.prompts.iter().enumerate().map(asked).collect()
    }
}

/// What a response to a form is.
fn delivery(name: &str, frame: &Value) -> Delivery {
    let result = &frame["result"];
    match result["action"].as_str() {
        Some("accept") => match (result["content"].as_object(), result["content"][name].as_str()) {
            (Some(content), Some(text)) if content.len() == 1 => Delivery::Accept(text.to_owned()),
            _ => Delivery::Other(result.to_string()),
        },
        Some("decline") => Delivery::Decline,
        Some("cancel") => Delivery::Cancel,
        _ => Delivery::Other(frame.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_belong_to_the_prompt_of_their_number() {
        let record = std::env::temp_dir().join(format!("handraise-soak-tally-{}", std::process::id()));
        let mut tally = Tally::open(&record).unwrap();
        let prompt = |name: &str| {
            let form = json!({"message": name}).to_string();
            json!({"id": 9, "method": "session/prompt", "params": {"prompt": [{"text": format!("form {form}")}]}})
        };
        let accept =
            |id: i32, key: &str| json!({"id": id, "result": {"action": "accept", "content": {key: "text"}}});
        let frames = [
            json!({"id": 1, "method": "session/new"}),
            prompt("a"),
            accept(0, "a"),
            prompt("b"),
            accept(1, "a"),
            accept(1, "b"),
            prompt("c"),
        ];
        std::fs::write(&record, frames.map(|frame| frame.to_string()).join("\n") + "\n").unwrap();
        tally.read().unwrap();
        std::fs::remove_file(&record).unwrap();
        assert!(tally.has_session);
        assert_eq!(tally.answered(), 2);
        let asked = tally.asked(true);
        assert_eq!(asked[0].deliveries, [Delivery::Accept("text".to_owned())]);
        // The key of another ask is no answer to this one.
        assert!(matches!(&asked[1].deliveries[..], [Delivery::Other(_), Delivery::Accept(_)]));
        assert_eq!(asked[2].deliveries, []);
        assert_eq!(asked.iter().map(|asked| asked.is_broken_off).collect::<Vec<_>>(), [false, false, true]);
    }
}
