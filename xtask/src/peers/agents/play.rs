//! Playing one scenario with one agent, behind the real `handraise agent` and `handraise up`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    path::{Path, PathBuf},
    process::Child,
    time::Duration,
};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    profile::{Agent, Site},
    row::Row,
    scenario::{Operator, Scenario, full},
};
use crate::{
    clock,
    http::Connection,
    inbox::{Ending, Place, Up, processes_with, send},
    peers::{model::Model, tap::Tapped},
};

/// How long a scenario may take, in nanoseconds.
const PATIENCE: u64 = 180_000_000_000;
/// How long processes may take to end after `handraise agent` has, in nanoseconds.
const GRACE: u64 = 2_000_000_000;
/// How often the operator looks.
const LOOK: Duration = Duration::from_millis(50);
/// How long the operator waits for a second form before it takes the first alone, in nanoseconds.
const SECOND_FORM: u64 = 3_000_000_000;
/// The inbox's own word for a choice that allows one call; labels are the agents'.
const ALLOW_ONCE: &str = "allow · this call";
/// The variable by which the processes of one scenario are known.
const MARK: &str = "PEERS_SCENARIO";

/// What scenarios of one agent share.
pub(super) struct Stage<'a> {
    agent: &'a Agent,
    package: PathBuf,
    node: PathBuf,
    path: String,
    model: &'a Model,
    place: &'a Place,
    up: &'a Up,
    operator: String,
    admin: String,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        agent: &'a Agent,
        (package, node): (PathBuf, PathBuf),
        model: &'a Model,
        place: &'a Place,
        up: &'a Up,
    ) -> anyhow::Result<Self> {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", node.display());
        let operator = place.token("operator")?;
        let admin = place.token("admin")?;
        Ok(Self { agent, package, node, path, model, place, up, operator, admin })
    }

    /// Plays it in this folder, which is new.
    pub(super) fn play(&self, scenario: &Scenario, folder: &Path) -> anyhow::Result<Row> {
        let mark = folder.to_string_lossy().into_owned();
        self.model.play(vec![(scenario.calls)(self.agent)], &folder.join("model.jsonl"))?;
        let mut child = Ending(self.start(scenario, folder, &mark)?);
        let mut operator = AtWork::default();
        let start = clock::now();
        let exit = loop {
            let status = child.0.try_wait()?;
            self.look(scenario, &mut operator, &child.0)?;
            if status.is_some() || clock::since(start) > PATIENCE {
                break status;
            }
            std::thread::sleep(LOOK);
        };
        if exit.is_none() {
            send(&child.0, Signal::TERM);
            child.0.wait()?;
        }
        let ended = clock::now();
        let mut left = processes_with(MARK, &mark);
        while !left.is_empty() && clock::since(ended) < GRACE {
            std::thread::sleep(LOOK);
            left = processes_with(MARK, &mark);
        }
        for id in left.iter().filter_map(|id| Pid::from_raw(*id)) {
            let _ = kill_process(id, Signal::KILL);
        }
        self.look(scenario, &mut operator, &child.0)?;

        let tapped = Tapped::read(&folder.join("frames.jsonl"));
        let mut on_the_pipe = tapped.answers("elicitation/create", |result| text(&result["action"]));
        on_the_pipe.extend(tapped.answers("session/request_permission", |result| {
            let outcome = &result["outcome"];
            [text(&outcome["outcome"]), text(&outcome["optionId"])].join(" ").trim().to_owned()
        }));
        let (saw, missing) = self.model.saw();
        let stop = if exit.is_some() { stop_reason(folder) } else { "did not end".to_owned() };
        // Whether the model hears of a tool that failed with its turn is a matter of timing.
        let is_told = |result: &&String| stop != "cancelled" || !result.starts_with("error: ");
        let model_saw = saw.iter().filter(is_told).map(|result| redacted(result, folder));
        let model_saw: Vec<String> =
            model_saw.chain(missing.iter().map(|tool| format!("(no tool {tool})"))).collect();
        let asks_left = self.asks("open")?.len();
        Ok(Row {
            scenario: scenario.name.to_owned(),
            asks: self.ends(&operator)?,
            refused: operator.refused,
            on_the_pipe,
            model_saw,
            stop,
            exit: exit.and_then(|status| status.code()),
            prompts: tapped.calls("session/prompt"),
            processes_left: left.len(),
            asks_left,
        })
    }

    fn start(&self, scenario: &Scenario, folder: &Path, mark: &str) -> anyhow::Result<Child> {
        let folders = ["home", "work", "tmp"].map(|name| folder.join(name));
        for made in &folders {
            std::fs::create_dir_all(made)?;
        }
        let [home, work, tmp] = &folders;
        let this = std::env::current_exe()?;
        let site = Site { package: &self.package, node: &self.node, home, model: &self.model.url };
        let launch = (self.agent.launch)(&site)?;
        let config = folder.join("handraise.toml");
        let mut text = String::new();
        if let Some(patience) = scenario.mcp_patience {
            let mut command = vec![json!(this), json!("peers"), json!("elicits")];
            if patience > 0 {
                command.extend([json!("--patience"), json!(patience.to_string())]);
            }
            text = format!("[[mcp_server]]\nname = \"deploytool\"\ncommand = {}\n", Value::Array(command));
        }
        std::fs::write(&config, text)?;
        let mut command = self.place.command();
        command
            .args(["agent", "--json", "--prompt", "Please go on.", "--agent-id", self.agent.id])
            .args([Path::new("--cwd"), work, Path::new("--config"), &config])
            .args(if scenario.is_off { &["--elicitation", "off"][..] } else { &[] })
            .arg("--")
            .args([this.as_os_str(), "peers".as_ref(), "tap".as_ref()])
            .args([&folder.join("frames.jsonl"), Path::new("--")])
            .args(&launch.command)
            .env("HOME", home)
            .env("TMPDIR", tmp)
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8")
            .env(MARK, mark)
            .envs(launch.variables)
            .current_dir(work)
            .stdout(File::create(folder.join("events.jsonl"))?)
            .stderr(File::create(folder.join("agent.log"))?);
        if let Some(timeout) = scenario.answer_timeout {
            command.env("HANDRAISE_ELICITATION_ANSWER_TIMEOUT", timeout);
        }
        command.spawn().context("cannot start handraise agent")
    }

    /// One look of the operator at what is open.
    fn look(&self, scenario: &Scenario, at_work: &mut AtWork, child: &Child) -> anyhow::Result<()> {
        let open = self.asks("open")?;
        let mut forms = Vec::new();
        for ask in open {
            let id = text(&ask["id"]);
            at_work.seen.entry(id.clone()).or_insert_with(|| ask.clone());
            if ask["source"] != "permission" {
                forms.push(ask);
            } else if at_work.handled.insert(id) {
                self.decide(scenario, at_work, &ask)?;
            }
        }
        forms.retain(|form| !at_work.handled.contains(&text(&form["id"])));
        if !forms.is_empty() && at_work.first_form.is_none() {
            at_work.first_form = Some(clock::now());
        }
        match &scenario.operator {
            Operator::Answers(answer) => {
                for form in forms {
                    self.submit(at_work, &form, &answer(&form))?;
                }
            }
            Operator::AnswersBackwards(count) => {
                let has_waited = at_work.first_form.is_some_and(|first| clock::since(first) > SECOND_FORM);
                if forms.len() == *count || has_waited {
                    forms.sort_by_key(|form| text(&form["id"]));
                    for form in forms.iter().rev() {
                        self.submit(at_work, form, &full(form))?;
                    }
                }
            }
            Operator::CancelsSession => {
                for form in forms {
                    at_work.handled.insert(text(&form["id"]));
                    let path = format!("/api/v1/sessions/{}/cancel", text(&form["session_id"]));
                    self.up.connect(&self.admin)?.call("POST", &path, "")?;
                }
            }
            Operator::EndsAgent => {
                for form in forms {
                    at_work.handled.insert(text(&form["id"]));
                    send(child, Signal::TERM);
                }
            }
            Operator::ComesLate => {
                let waiting: Vec<Value> =
                    at_work.seen.values().filter(|ask| ask["source"] != "permission").cloned().collect();
                for ask in waiting {
                    let id = text(&ask["id"]);
                    let is_open = forms.iter().any(|form| form["id"] == ask["id"]);
                    if !is_open && !at_work.handled.contains(&id) {
                        self.submit(at_work, &ask, &full(&ask))?;
                    }
                }
            }
            Operator::Rejects => {}
        }
        Ok(())
    }

    /// Decides about a permission.
    fn decide(&self, scenario: &Scenario, at_work: &mut AtWork, ask: &Value) -> anyhow::Result<()> {
        let choices = ask["questions"][0]["choices"].as_array().into_iter().flatten();
        let once = choices
            .filter(|choice| choice["description"] == ALLOW_ONCE)
            .map(|choice| choice["value"].clone());
        let submission = if matches!(scenario.operator, Operator::Rejects) {
            json!({"answers": [], "rejected": true})
        } else {
            let picks: Vec<Value> = once.take(1).collect();
            json!({"answers": [{"question_id": "permission", "selected_options": picks, "custom_text": ""}]})
        };
        self.submit(at_work, ask, &submission)
    }

    /// Submits; what is refused as invalid is followed by a full answer.
    fn submit(&self, at_work: &mut AtWork, ask: &Value, submission: &Value) -> anyhow::Result<()> {
        let id = text(&ask["id"]);
        let path = format!("/api/v1/asks/{id}/answer");
        at_work.handled.insert(id);
        let (status, body) = self.operator()?.exchange("POST", &path, &submission.to_string())?;
        if status != 200 {
            at_work.refused.push(format!("{status} {}", text(&body["error"]["code"])));
        }
        if status == 422 {
            self.operator()?.call("POST", &path, &full(ask).to_string())?;
        }
        Ok(())
    }

    /// Calls the API on a connection of its own: the inbox ends one that says nothing for a while.
    fn operator(&self) -> anyhow::Result<Connection> {
        self.up.connect(&self.operator)
    }

    fn asks(&self, state: &str) -> anyhow::Result<Vec<Value>> {
        let mut list = self.operator()?.call("GET", &format!("/api/v1/asks?state={state}&limit=100"), "")?;
        Ok(list["asks"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// How each ask that was seen ended, in the order in which they were opened.
    fn ends(&self, at_work: &AtWork) -> anyhow::Result<Vec<String>> {
        // Ids are ordered by time.
        at_work
            .seen
            .iter()
            .map(|(id, ask)| {
                let now = self.operator()?.call("GET", &format!("/api/v1/asks/{id}"), "")?;
                let settlement = &now["settlement"];
                let end = if settlement.is_null() {
                    text(&now["state"])
                } else {
                    [text(&settlement["outcome"]), text(&settlement["provenance"])].join(", ")
                };
                Ok(format!("{}: {end}", text(&ask["source"])))
            })
            .collect()
    }
}

/// A result without what differs from run to run.
fn redacted(result: &str, folder: &Path) -> String {
    let result = result.replace(&*folder.to_string_lossy(), "…");
    let mut words: Vec<&str> = result.split_whitespace().collect();
    for index in 1..words.len() {
        if words[index] == "seconds" && words[index - 1].parse::<f64>().is_ok() {
            words[index - 1] = "N";
        }
        if words[index - 1] == "ID:" {
            words[index] = "…";
        }
    }
    let result = words.join(" ");
    serde_json::from_str(&result).map_or(result, |value| sorted(value).to_string())
}

/// An object with its keys in order: some agents write them in another one each time.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let by_key: BTreeMap<_, _> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            by_key.into_iter().collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

/// What the operator has seen and done.
#[derive(Default)]
struct AtWork {
    /// Asks by id, as they were first seen.
    seen: BTreeMap<String, Value>,
    handled: BTreeSet<String>,
    refused: Vec<String>,
    /// When the first form was seen.
    first_form: Option<u64>,
}

/// The stop reason as `handraise agent --json` said it.
fn stop_reason(folder: &Path) -> String {
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default();
    let last = events.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
    match last {
        Some(last) if last["event"] == "end" => text(&last["data"]["stopReason"]),
        _ => String::new(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
