//! A tap on the pipe between `handraise agent` and an agent: passes every line on, and writes it down.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

/// Where to write what was said, and what to run.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    record: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command with its pipes tapped; ends as it ends.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some((program, rest)) = arguments.command.split_first() else { bail!("nothing to run") };
    let record = Mutex::new(File::create(&arguments.record)?);
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let (Some(to_agent), Some(from_agent)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("no pipes")
    };
    let status = thread::scope(|scope| -> anyhow::Result<ExitStatus> {
        scope.spawn(|| pass(BufReader::new(from_agent), io::stdout(), "agent", &record));
        // Apart from the scope: stdin may stay open when the agent has ended.
        let record = Mutex::new(record.lock().unwrap_or_else(PoisonError::into_inner).try_clone()?);
        thread::spawn(move || pass(io::stdin().lock(), to_agent, "client", &record));
        Ok(child.wait()?)
    })?;
    if !status.success() {
        bail!("the agent ended with {status}");
    }
    Ok(())
}

fn pass(mut from: impl BufRead, mut to: impl Write, who: &str, record: &Mutex<File>) {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        let frame: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({"noise": text}));
        // One write a line, so that lines of both sides never mix.
        let entry = format!("{}\n", json!({"from": who, "frame": frame}));
        let _ = record.lock().unwrap_or_else(PoisonError::into_inner).write_all(entry.as_bytes());
        if to.write_all(&line).and_then(|()| to.flush()).is_err() {
            return;
        }
        line.clear();
    }
}

/// What a tap has written down.
pub(super) struct Tapped(Vec<(bool, Value)>);

impl Tapped {
    pub(super) fn read(record: &Path) -> Self {
        let text = std::fs::read_to_string(record).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Self(entries.map(|mut entry| (entry["from"] == "agent", entry["frame"].take())).collect())
    }

    /// How often we called this method.
    pub(super) fn calls(&self, method: &str) -> usize {
        self.0.iter().filter(|(from_agent, frame)| !from_agent && frame["method"] == method).count()
    }

    /// What each request of the agent with this method was answered with, in the order of requests. A request that
    /// was answered twice gives `accept+cancel`, one without an answer `none`.
    pub(super) fn answers(&self, method: &str, word: fn(&Value) -> String) -> Vec<String> {
        let asked = |(at, (from_agent, frame)): (usize, &(bool, Value))| {
            (*from_agent && frame["method"] == method && !frame["id"].is_null())
                .then(|| (at, frame["id"].clone()))
        };
        let requests = self.0.iter().enumerate().filter_map(asked);
        requests
            .map(|(at, id)| {
                let reused = |(from_agent, frame): &&(bool, Value)| {
                    !(*from_agent && frame["id"] == id && !frame["method"].is_null())
                };
                let words: Vec<String> = self.0[at + 1..]
                    .iter()
                    .take_while(reused)
                    .filter(|(from_agent, frame)| {
                        !from_agent && frame["id"] == id && frame["method"].is_null()
                    })
                    .map(
                        |(_, frame)| {
                            if frame["error"].is_null() { word(&frame["result"]) } else { "error".into() }
                        },
                    )
                    .collect();
                if words.is_empty() { "none".to_owned() } else { words.join("+") }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_by_id_until_it_is_reused() {
        let ask = |id: i32| (true, json!({"id": id, "method": "ask"}));
        let reply = |id: i32, action: &str| (false, json!({"id": id, "result": {"action": action}}));
        let word = |result: &Value| result["action"].as_str().unwrap_or_default().to_owned();
        let tapped = Tapped(vec![
            ask(0),
            ask(1),
            (false, json!({"id": 1, "method": "session/prompt"})),
            reply(1, "accept"),
            reply(1, "cancel"),
            ask(1),
            reply(1, "decline"),
            ask(2),
        ]);
        assert_eq!(tapped.answers("ask", word), ["none", "accept+cancel", "decline", "none"]);
        assert_eq!(tapped.calls("session/prompt"), 1);
    }
}
