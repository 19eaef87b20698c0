//! The modern era against a second, naive model, over random interleavings: a state is accepted and cancelled, twice, late,
//! switched off, and both sides end, at every step.
//!
//! The model is written from the contract: it keeps every question it ever saw, and knows nothing of frames. What the
//! upstream was called for is the witness, beside it.

use proptest::prelude::*;

use super::fresh::{devices, fresh};
use super::*;

/// Calls have the ids from 0, retries those from here on.
const RETRIES: usize = 10;
/// So many of each.
const IDS: usize = 3;

#[derive(Debug, Clone)]
enum Step {
    Call(usize),
    /// The upstream answers a call: it refuses, with one of two candidate sets, or succeeds.
    Refuse(usize, usize),
    Succeed(usize),
    /// A retry of one of the questions ever asked.
    Retry(usize, usize, Reply),
    /// The upstream lists the candidates of now, for one of the checks ever begun.
    List(usize, Found),
    /// The upstream answers a retry that it got.
    Answer(usize),
    /// A call or a retry.
    Cancel(usize),
    Wait(u64),
    Switch(bool),
    ClientCloses,
    UpstreamEnds,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reply {
    Accept,
    Rogue,
    Decline,
    Cancel,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Found {
    Unchanged,
    Changed,
    NoList,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..IDS;
    let any_id = prop_oneof![0..IDS, RETRIES..RETRIES + IDS];
    let reply = prop_oneof![
        6 => Just(Reply::Accept),
        1 => Just(Reply::Rogue),
        1 => Just(Reply::Decline),
        1 => Just(Reply::Cancel),
        1 => Just(Reply::Nothing),
    ];
    let found = prop_oneof![4 => Just(Found::Unchanged), 1 => Just(Found::Changed), 1 => Just(Found::NoList)];
    let wait = prop_oneof![Just(1), Just(400), Just(5_000), Just(20_000), Just(300_000), Just(600_000)];
    let step = prop_oneof![
        8 => id.clone().prop_map(Step::Call),
        8 => (id.clone(), 0..2_usize).prop_map(|(call, set)| Step::Refuse(call, set)),
        1 => id.clone().prop_map(Step::Succeed),
        12 => (RETRIES..RETRIES + IDS, 0..6_usize, reply).prop_map(|(id, asked, reply)| Step::Retry(id, asked, reply)),
        6 => (0..6_usize, found).prop_map(|(check, found)| Step::List(check, found)),
        3 => (RETRIES..RETRIES + IDS).prop_map(Step::Answer),
        5 => any_id.prop_map(Step::Cancel),
        3 => wait.prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Switch),
        1 => prop_oneof![4 => Just(Step::Wait(0)), 1 => Just(Step::ClientCloses), 1 => Just(Step::UpstreamEnds)],
    ];
    prop::collection::vec(step, 1..60)
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Upstream,
    /// A retry that is accepted, until then, in the nth check.
    Checked {
        until: u64,
        check: usize,
        is_shown: bool,
    },
}

/// A question that was handed back.
#[derive(Debug)]
struct Asked {
    since: u64,
    is_spent: bool,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "switches that turn by themselves")]
struct Model {
    checks_candidates: bool,
    open: BTreeMap<usize, At>,
    asked: Vec<Asked>,
    checks: usize,
    now: u64,
    is_off: bool,
    is_closed: bool,
    has_ended: bool,
    /// What must have happened.
    runs: usize,
    delivered: Vec<String>,
    recorded: Vec<String>,
}

impl Model {
    fn deliver(&mut self, id: usize, what: &str) {
        self.delivered.push(format!("{id} {what}"));
    }

    fn record(&mut self, outcome: &str, is_shown: bool) {
        self.recorded.push(format!("{outcome} {}", if is_shown { "client" } else { "not_shown" }));
    }

    fn record_ours(&mut self, outcome: &str) {
        self.recorded.push(format!("{outcome} system"));
    }

    /// Whether a client can take a step: it has not closed its side, and uses no id twice at once.
    fn can(&self, step: &Step) -> bool {
        match step {
            Step::Call(id) => !self.is_closed && !self.open.contains_key(id),
            Step::Retry(id, asked, _) => {
                !self.is_closed && !self.open.contains_key(id) && *asked < self.asked.len()
            }
            Step::Cancel(_) => !self.is_closed,
            Step::List(check, _) => *check < self.checks,
            _ => true,
        }
    }

    fn take(&mut self, step: &Step) {
        self.expire();
        match *step {
            Step::Call(id) | Step::Retry(id, ..) if self.has_ended => self.deliver(id, "error"),
            Step::Refuse(..) | Step::Succeed(_) | Step::List(..) | Step::Answer(_) if self.has_ended => {}
            Step::Call(id) => {
                self.open.insert(id, At::Upstream);
                self.runs += 1;
            }
            Step::Refuse(id, _) => match self.open.remove(&id) {
                Some(_) => self.refused(id),
                None => self.deliver(id, "refusal"),
            },
            Step::Succeed(id) => {
                self.open.remove(&id);
                self.deliver(id, "result");
            }
            Step::Retry(id, asked, reply) => self.retried(id, asked, reply),
            Step::List(check, found) => self.listed(check, found),
            Step::Answer(id) => match self.open.get(&id) {
                Some(At::Checked { .. }) => {}
                Some(At::Upstream) | None => {
                    self.open.remove(&id);
                    self.deliver(id, "again");
                }
            },
            Step::Cancel(id) => {
                if let Some(At::Checked { is_shown, .. }) = self.open.remove(&id) {
                    self.record("withdrawn", is_shown);
                }
            }
            Step::Wait(ms) => {
                self.now += ms;
                self.expire();
            }
            Step::Switch(is_on) => self.is_off = !is_on,
            Step::ClientCloses => {
                self.is_closed = true;
                self.end_checks(|_| true, "withdrawn", Some("refusal"));
            }
            Step::UpstreamEnds => {
                self.has_ended = true;
                let open: Vec<usize> = self.open.keys().copied().collect();
                self.end_checks(|_| true, "withdrawn", None);
                self.open.clear();
                for id in open {
                    self.deliver(id, "error");
                }
            }
        }
    }

    fn refused(&mut self, id: usize) {
        let bar = if self.is_off {
            "disabled"
        } else if self.is_closed {
            "not_offered"
        } else {
            self.asked.push(Asked { since: self.now, is_spent: false });
            self.record_ours("asked");
            return self.deliver(id, "question");
        };
        self.record_ours(bar);
        self.deliver(id, "refusal");
    }

    fn retried(&mut self, id: usize, asked: usize, reply: Reply) {
        let question = &mut self.asked[asked];
        let age = self.now - question.since;
        if age >= 600_000 {
            self.record("invalid", true);
            return self.deliver(id, "invalid state");
        }
        if self.is_off {
            self.record_ours("disabled");
            return self.deliver(id, "refusal");
        }
        let is_shown = age >= 400;
        if reply != Reply::Accept {
            let outcome = match reply {
                Reply::Decline => "decline",
                Reply::Cancel => "cancel",
                _ => "invalid",
            };
            self.record(outcome, is_shown);
            return self.deliver(id, "refusal");
        }
        if question.is_spent {
            self.record("invalid", is_shown);
            return self.deliver(id, "invalid state");
        }
        question.is_spent = true;
        if self.checks_candidates {
            let at = At::Checked { until: self.now + 20_000, check: self.checks, is_shown };
            self.checks += 1;
            self.open.insert(id, at);
        } else {
            self.run(id, is_shown);
        }
    }

    fn run(&mut self, id: usize, is_shown: bool) {
        self.record("accept", is_shown);
        self.open.insert(id, At::Upstream);
        self.runs += 1;
    }

    fn listed(&mut self, check: usize, found: Found) {
        let waits = self.open.iter().find_map(|(id, at)| match at {
            At::Checked { check: at, is_shown, .. } if *at == check => Some((*id, *is_shown)),
            _ => None,
        });
        let Some((id, is_shown)) = waits else { return };
        self.open.remove(&id);
        match found {
            Found::Unchanged => return self.run(id, is_shown),
            Found::Changed => self.record("invalid", is_shown),
            Found::NoList => self.record_ours("error"),
        }
        self.deliver(id, "refusal");
    }

    fn expire(&mut self) {
        let now = self.now;
        self.end_checks(|until| until <= now, "error", Some("refusal"));
    }

    fn end_checks(&mut self, ends: impl Fn(u64) -> bool, outcome: &str, delivers: Option<&str>) {
        let ended: Vec<usize> = self
            .open
            .iter()
            .filter(|(_, at)| matches!(at, At::Checked { until, .. } if ends(*until)))
            .map(|(id, _)| *id)
            .collect();
        for id in ended {
            self.open.remove(&id);
            self.record_ours(outcome);
            if let Some(what) = delivers {
                self.deliver(id, what);
            }
        }
    }
}

/// The real thing, with what it was seen to do.
struct Seen {
    world: World,
    states: Vec<String>,
    checks: Vec<Value>,
    delivered: Vec<String>,
    /// Which question each retry brings that is on its way.
    brings: BTreeMap<usize, usize>,
    /// The witness: how often the upstream has run each question's call again.
    reruns: BTreeMap<usize, usize>,
    cancelled: BTreeSet<usize>,
}

impl Seen {
    fn take(&mut self, step: &Step) {
        let world = &mut self.world;
        // What the upstream itself says in this step goes to whom it says it.
        let mut speaks = None;
        match *step {
            Step::Call(id) => {
                self.cancelled.remove(&id);
                world.client_sends(&modern_call(&id.to_string(), "", &json!({})));
            }
            Step::Refuse(id, set) => {
                speaks = Some(id);
                let result = REFUSAL.replace("A1B2", &format!("set{set}"));
                world.upstream_sends(&response(&id.to_string(), &result));
            }
            Step::Succeed(id) => {
                speaks = Some(id);
                world.upstream_sends(&response(&id.to_string(), r#"{"content":[]}"#));
            }
            Step::Retry(id, asked, reply) => {
                self.cancelled.remove(&id);
                self.brings.insert(id, asked);
                let state = &self.states[asked];
                let extra = match reply {
                    Reply::Accept => with(state, &accept("emulator-5554")),
                    Reply::Rogue => with(state, &accept("rogue")),
                    Reply::Decline => with(state, r#"{"action":"decline"}"#),
                    Reply::Cancel => with(state, r#"{"action":"cancel"}"#),
                    Reply::Nothing => format!(r#","requestState":"{state}""#),
                };
                world.client_sends(&modern_call(&id.to_string(), &extra, &json!({})));
            }
            Step::List(check, found) => {
                let result = match found {
                    Found::Unchanged => devices(r#"[{"platform":"android","deviceId":"emulator-5554"}]"#),
                    Found::Changed => devices(r#"[{"platform":"ios","deviceId":"emulator-5554"}]"#),
                    Found::NoList => "{}".to_owned(),
                };
                world.upstream_sends(&response(&self.checks[check].to_string(), &result));
            }
            Step::Answer(id) => {
                speaks = Some(id);
                world.upstream_sends(&response(&id.to_string(), r#"{"again":true}"#));
            }
            Step::Cancel(id) => {
                self.cancelled.insert(id);
                world.client_sends(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ));
            }
            Step::Wait(ms) => {
                world.advance(Duration::from_millis(ms));
                world.tick();
            }
            Step::Switch(is_on) => world.process.set_elicitation(is_on),
            Step::ClientCloses => world.client_closes(),
            Step::UpstreamEnds => world.upstream_ends(),
        }
        self.note(speaks);
    }

    /// Takes note of what both sides got.
    fn note(&mut self, speaks: Option<usize>) {
        for frame in self.world.client.drain(..).map(|frame| value(&frame)) {
            let id = frame["id"].as_u64().unwrap() as usize;
            assert!(
                !self.cancelled.contains(&id) || speaks == Some(id),
                "an answer to a cancelled call: {frame}"
            );
            let result = &frame["result"];
            let what = if let Some(state) = result["requestState"].as_str() {
                self.states.push(state.to_owned());
                "question"
            } else if frame["error"]["data"]["reason"] == "invalid_request_state" {
                "invalid state"
            } else if frame.get("error").is_some() {
                "error"
            } else if result["isError"] == true {
                "refusal"
            } else if result["again"] == true {
                "again"
            } else {
                "result"
            };
            self.delivered.push(format!("{id} {what}"));
        }
        for frame in self.world.upstream.drain(..).map(|frame| value(&frame)) {
            let params = &frame["params"];
            match (frame["method"].as_str(), params["name"].as_str()) {
                (Some("tools/call"), Some("listDevices")) => self.checks.push(frame["id"].clone()),
                (Some("tools/call"), Some("tapOn")) if params["arguments"]["deviceId"] == "emulator-5554" => {
                    let id = frame["id"].as_u64().unwrap() as usize;
                    assert!(!self.cancelled.contains(&id), "a run after its cancel: {frame}");
                    let reruns = self.reruns.entry(self.brings[&id]).or_default();
                    *reruns += 1;
                    assert_eq!(*reruns, 1, "a second run of one state: {frame}");
                }
                (Some("tools/call"), _) => {
                    assert_eq!(
                        params.get("requestState"),
                        None,
                        "a retry runs with the argument, or not at all"
                    );
                }
                _ => {}
            }
        }
    }
}

fn sorted(mut list: Vec<String>) -> Vec<String> {
    list.sort_unstable();
    list
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_modern_envelope_does_what_the_model_says(steps in steps(), checks_candidates: bool) {
        let world = World::new(if checks_candidates { fresh() } else { config() });
        let mut seen = Seen {
            world,
            states: vec![],
            checks: vec![],
            delivered: vec![],
            brings: BTreeMap::new(),
            reruns: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        };
        let mut model = Model { checks_candidates, ..Model::default() };
        for step in &steps {
            if !model.can(step) {
                continue;
            }
            model.take(step);
            seen.take(step);
            // What ends at one moment ends in any order.
            let got = sorted(std::mem::take(&mut seen.delivered));
            prop_assert_eq!(got, sorted(std::mem::take(&mut model.delivered)), "{:?}", step);
            let recorded = seen.world.records.drain(..).map(|one| format!("{} {}", one.outcome, one.provenance));
            prop_assert_eq!(sorted(recorded.collect()), sorted(std::mem::take(&mut model.recorded)), "{:?}", step);
            prop_assert_eq!(seen.world.runs - seen.checks.len(), model.runs, "the witness, at {:?}", step);
            prop_assert_eq!((seen.states.len(), seen.checks.len()), (model.asked.len(), model.checks));
            prop_assert_eq!(seen.world.envelope.open_requests(), model.open.len());
            let checked = model.open.values().filter(|at| matches!(at, At::Checked { .. })).count();
            prop_assert_eq!(seen.world.envelope.ours.len(), checked, "no request of ours outlives its retry");
            prop_assert_eq!(seen.world.envelope.next_deadline().is_some(), checked > 0);
        }
        // Everything is given back once nothing is open.
        seen.world.upstream_ends();
        prop_assert_eq!(seen.world.process.bytes_in_flight(), 0);
        prop_assert!(seen.world.envelope.ours.is_empty());
    }
}
