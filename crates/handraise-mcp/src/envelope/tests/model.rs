//! The envelope against a second, naive model, over random interleavings.
//!
//! The model is written from the contract: it keeps every call it ever saw in a list, and knows nothing of frames.

use std::sync::atomic::{AtomicBool, Ordering};

use handraise_core::words::Provenance;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::envelope::{InboxEnd, InboxSaid};

#[derive(Debug, Clone)]
enum Step {
    Call(usize),
    /// The upstream answers a call: refuses with one of two candidate sets, or succeeds.
    Refuse(usize, usize),
    Succeed(usize),
    /// The client answers one of the questions ever asked.
    Answer(usize, Reply),
    /// The inbox says what became of one of the questions that it was ever asked.
    Says(usize, Said),
    /// An operator comes, or goes.
    Operator(bool),
    /// The upstream answers one of the second runs ever begun.
    RunAgain(usize),
    Cancel(usize),
    Wait(u64),
    Switch(bool),
    ClientCloses,
    UpstreamEnds,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Said {
    Accept,
    Rogue,
    Decline,
    TimedOut,
    NotOpened,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Reply {
    Accept,
    Rogue,
    Decline,
    Cancel,
    Fail,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = 0..4_usize;
    let reply = prop_oneof![
        3 => Just(Reply::Accept),
        1 => Just(Reply::Rogue),
        1 => Just(Reply::Decline),
        1 => Just(Reply::Cancel),
        1 => Just(Reply::Fail),
    ];
    let said = prop_oneof![
        3 => Just(Said::Accept),
        1 => Just(Said::Rogue),
        1 => Just(Said::Decline),
        1 => Just(Said::TimedOut),
        1 => Just(Said::NotOpened),
    ];
    let wait = prop_oneof![
        8 => prop_oneof![Just(1), Just(399), Just(400), Just(5_000), Just(20_000)],
        2 => prop_oneof![Just(250), Just(25_000), Just(900_000)],
    ];
    let step = prop_oneof![
        8 => call.clone().prop_map(Step::Call),
        8 => (call.clone(), 0..2_usize).prop_map(|(call, set)| Step::Refuse(call, set)),
        2 => call.clone().prop_map(Step::Succeed),
        8 => (0..12_usize, reply).prop_map(|(ask, reply)| Step::Answer(ask, reply)),
        4 => (0..8_usize).prop_map(Step::RunAgain),
        5 => (0..8_usize, said).prop_map(|(ask, said)| Step::Says(ask, said)),
        2 => prop_oneof![3 => Just(true), 1 => Just(false)].prop_map(Step::Operator),
        3 => call.prop_map(Step::Cancel),
        4 => wait.prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Switch),
        1 => prop_oneof![4 => Just(Step::Wait(0)), 1 => Just(Step::ClientCloses), 1 => Just(Step::UpstreamEnds)],
    ];
    prop::collection::vec(step, 1..60)
}

/// Where a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Upstream,
    /// Asked about since then, with that question, over that set.
    Asked(u64, usize, usize),
    /// In the inbox until then, as that question, over that set.
    Inbox(u64, usize, usize),
    /// Runs again as the nth second run.
    Again(usize),
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
#[derive(Debug, Default)]
struct Model {
    /// The open calls, by number: since when, and where.
    open: Vec<Option<(u64, At)>>,
    now: u64,
    asks: usize,
    agains: usize,
    declined: Vec<usize>,
    /// Questions that the inbox was asked: from when to when.
    waits: Vec<(u64, Option<u64>)>,
    taken_back: usize,
    has_operator: bool,
    unanswered: Option<u64>,
    is_off: bool,
    is_closed: bool,
    has_ended: bool,
    /// What must have happened.
    runs: usize,
    delivered: Vec<String>,
    recorded: Vec<String>,
}

impl Model {
    fn deliver(&mut self, call: usize, what: &str) {
        self.delivered.push(format!("{call} {what}"));
    }

    fn record(&mut self, outcome: &str) {
        self.recorded.push(outcome.to_owned());
    }

    fn take(&mut self, step: &Step) {
        self.expire();
        match *step {
            Step::Call(call) => {
                if self.has_ended {
                    self.deliver(call, "error");
                } else if self.open[call].is_none() {
                    self.open[call] = Some((self.now, At::Upstream));
                    self.runs += 1;
                }
            }
            // What it says once it was answered for.
            Step::Refuse(..) | Step::Succeed(_) if self.has_ended => {}
            Step::Refuse(call, set) => match self.open[call] {
                Some((since, At::Upstream)) => self.refused(call, since, set),
                None => self.deliver(call, "refusal"),
                Some(_) => {}
            },
            Step::Succeed(call) => match self.open[call] {
                Some((_, At::Upstream)) | None => {
                    self.open[call] = None;
                    self.deliver(call, "result");
                }
                Some(_) => {}
            },
            Step::Answer(ask, reply) => {
                let found = (0..4)
                    .find(|call| matches!(self.open[*call], Some((_, At::Asked(_, at, _))) if at == ask));
                if let Some(call) = found
                    && let Some((since, At::Asked(asked, _, set))) = self.open[call]
                {
                    self.answered(call, since, asked, set, reply);
                }
            }
            Step::Says(ask, said) => {
                let found = (0..4)
                    .find(|call| matches!(self.open[*call], Some((_, At::Inbox(_, at, _))) if at == ask));
                if let Some(call) = found
                    && let Some((since, At::Inbox(_, _, set))) = self.open[call]
                {
                    self.said(call, since, ask, set, said);
                }
            }
            Step::Operator(is_there) => self.has_operator = is_there,
            Step::RunAgain(again) => {
                if let Some(call) =
                    (0..4).find(|call| matches!(self.open[*call], Some((_, At::Again(at))) if at == again))
                {
                    self.open[call] = None;
                    self.deliver(call, "again");
                }
            }
            Step::Cancel(call) => match self.open[call].take() {
                Some((_, At::Asked(..))) => self.record("withdrawn client"),
                Some((_, At::Inbox(_, ask, _))) => {
                    self.take_back(ask);
                    self.record("withdrawn client");
                }
                _ => {}
            },
            Step::Wait(ms) => {
                self.now += ms;
                self.expire();
            }
            Step::Switch(is_on) => self.is_off = !is_on,
            Step::ClientCloses => {
                self.is_closed = true;
                self.end_asks(|model, call| {
                    model.open[call] = None;
                    model.record("withdrawn system");
                    model.deliver(call, "refusal");
                });
            }
            Step::UpstreamEnds => {
                self.has_ended = true;
                self.end_asks(|model, _| model.record("withdrawn system"));
                for call in 0..4 {
                    if self.open[call].take().is_some() {
                        self.deliver(call, "error");
                    }
                }
            }
        }
    }

    fn refused(&mut self, call: usize, since: u64, set: usize) {
        let bar = if self.is_off {
            Some("disabled system")
        } else if self.is_closed {
            Some("not_offered system")
        } else if self.declined.contains(&set) {
            Some("remembered system")
        } else if since + 20_000 <= self.now {
            match self.has_operator.then(|| self.until(since)).flatten() {
                Some(until) => return self.put(call, since, until, set),
                None => Some("not_offered system"),
            }
        } else {
            None
        };
        if let Some(bar) = bar {
            self.record(bar);
            self.open[call] = None;
            self.deliver(call, "refusal");
        } else {
            self.open[call] = Some((since, At::Asked(self.now, self.asks, set)));
            self.asks += 1;
        }
    }

    /// Until when a call that came then may wait for the inbox, if at all.
    fn until(&self, since: u64) -> Option<u64> {
        if self.unanswered.is_some_and(|at| self.now < at + 900_000) {
            return None;
        }
        let is_waiting =
            |at: u64| self.waits.iter().any(|(from, to)| *from <= at && to.is_none_or(|to| at < to));
        // The clock stands still between steps, so that nothing begins or ends but at these moments.
        let mut moments: Vec<u64> = self
            .waits
            .iter()
            .flat_map(|(from, to)| [*from, to.unwrap_or(self.now)])
            .chain([self.now])
            .collect();
        moments.sort_unstable();
        let spent: u64 =
            moments.windows(2).filter(|pair| is_waiting(pair[0])).map(|pair| pair[1] - pair[0]).sum();
        let until = (since + 45_000).min(self.now + 900_000_u64.saturating_sub(spent));
        (until > self.now).then_some(until)
    }

    fn put(&mut self, call: usize, since: u64, until: u64, set: usize) {
        self.open[call] = Some((since, At::Inbox(until, self.waits.len(), set)));
        self.waits.push((self.now, None));
    }

    fn take_back(&mut self, ask: usize) {
        self.waits[ask].1 = Some(self.now);
        self.taken_back += 1;
    }

    fn said(&mut self, call: usize, since: u64, ask: usize, set: usize, said: Said) {
        self.waits[ask].1 = Some(self.now);
        self.record(match said {
            Said::Accept => "accept human",
            Said::Rogue => "invalid human",
            Said::Decline => "decline human",
            Said::TimedOut => "timeout system",
            Said::NotOpened => "error system",
        });
        match said {
            Said::Accept | Said::Rogue | Said::Decline => self.unanswered = None,
            Said::TimedOut => self.unanswered = Some(self.now),
            Said::NotOpened => {}
        }
        if said == Said::Decline {
            self.declined.push(set);
        }
        if said == Said::Accept {
            self.open[call] = Some((since, At::Again(self.agains)));
            self.agains += 1;
            self.runs += 1;
        } else {
            self.open[call] = None;
            self.deliver(call, "refusal");
        }
    }

    fn answered(&mut self, call: usize, since: u64, asked: u64, set: usize, reply: Reply) {
        let provenance = if self.now - asked < 400 { "not_shown" } else { "client" };
        let outcome = match reply {
            Reply::Accept => "accept",
            Reply::Rogue => "invalid",
            Reply::Decline => "decline",
            Reply::Cancel => "cancel",
            Reply::Fail => "error",
        };
        self.record(&format!("{outcome} {provenance}"));
        if matches!(reply, Reply::Decline | Reply::Cancel) && provenance == "client" {
            self.declined.push(set);
        }
        if reply == Reply::Accept {
            self.open[call] = Some((since, At::Again(self.agains)));
            self.agains += 1;
            self.runs += 1;
            return;
        }
        let falls_on = reply != Reply::Rogue && provenance == "not_shown" && !self.is_off && !self.is_closed;
        if falls_on && self.has_operator {
            match self.until(since) {
                Some(until) => return self.put(call, since, until, set),
                None => self.record("not_offered system"),
            }
        }
        self.open[call] = None;
        self.deliver(call, "refusal");
    }

    /// Timeouts, earliest deadline first.
    fn expire(&mut self) {
        let mut late: Vec<(u64, usize)> = (0..4)
            .filter_map(|call| match self.open[call] {
                Some((since, At::Asked(..))) if since + 20_000 <= self.now => Some((since + 20_000, call)),
                Some((_, At::Inbox(until, ..))) if until + 250 <= self.now => Some((until + 250, call)),
                _ => None,
            })
            .collect();
        late.sort_unstable();
        for (_, call) in late {
            if let Some((_, At::Inbox(_, ask, _))) = self.open[call] {
                self.take_back(ask);
                self.unanswered = Some(self.now);
            }
            self.open[call] = None;
            self.record("timeout system");
            self.deliver(call, "refusal");
        }
    }

    fn end_asks(&mut self, end: impl Fn(&mut Self, usize)) {
        for call in 0..4 {
            match self.open[call] {
                Some((_, At::Asked(..))) => end(self, call),
                Some((_, At::Inbox(_, ask, _))) => {
                    self.take_back(ask);
                    end(self, call);
                }
                _ => {}
            }
        }
    }
}

/// The real thing, with what it was seen to do.
struct Seen {
    world: World,
    asks: Vec<Value>,
    operator: Arc<AtomicBool>,
    agains: Vec<Value>,
    delivered: Vec<String>,
}

impl Seen {
    fn take(&mut self, step: &Step, is_open: impl Fn(usize) -> bool) {
        let world = &mut self.world;
        match step {
            Step::Call(call) if is_open(*call) => {}
            Step::Call(call) => world.client_sends(&super::call(&call.to_string())),
            Step::Refuse(call, set) => {
                let result = REFUSAL.replace("A1B2", &format!("set{set}"));
                world.upstream_sends(&response(&call.to_string(), &result));
            }
            Step::Succeed(call) => world.upstream_sends(&response(&call.to_string(), r#"{"content":[]}"#)),
            Step::Answer(ask, reply) => {
                let Some(ask) = self.asks.get(*ask) else { return };
                let body = match reply {
                    Reply::Accept => format!(r#""result":{}"#, accept("emulator-5554")),
                    Reply::Rogue => format!(r#""result":{}"#, accept("rogue")),
                    Reply::Decline => r#""result":{"action":"decline"}"#.to_owned(),
                    Reply::Cancel => r#""result":{"action":"cancel"}"#.to_owned(),
                    Reply::Fail => r#""error":{"code":-1,"message":"m"}"#.to_owned(),
                };
                world.client_sends(&format!(r#"{{"jsonrpc":"2.0","id":{ask},{body}}}"#));
            }
            Step::Says(ask, said) => {
                let Some(key) = world.inbox.get(*ask).map(|ask| ask.key.clone()) else { return };
                let (end, provenance) = match said {
                    Said::Accept => (accepted("emulator-5554"), Provenance::Human),
                    Said::Rogue => (accepted("rogue"), Provenance::Human),
                    Said::Decline => (InboxEnd::Declined, Provenance::Human),
                    Said::TimedOut => (InboxEnd::TimedOut, Provenance::System),
                    Said::NotOpened => (InboxEnd::NotOpened("not-opened"), Provenance::System),
                };
                let mut out = Vec::new();
                world.envelope.inbox_said(&key, &InboxSaid { end, provenance }, world.now, &mut out);
                world.drain(out);
            }
            Step::Operator(is_there) => self.operator.store(*is_there, Ordering::Relaxed),
            Step::RunAgain(again) => {
                let Some(again) = self.agains.get(*again) else { return };
                world.upstream_sends(&response(&again.to_string(), r#"{"again":true}"#));
            }
            Step::Cancel(call) => world.client_sends(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{call}}}}}"#
            )),
            Step::Wait(ms) => {
                world.advance(Duration::from_millis(*ms));
                world.tick();
            }
            Step::Switch(is_on) => world.process.set_elicitation(*is_on),
            Step::ClientCloses => world.client_closes(),
            Step::UpstreamEnds => world.upstream_ends(),
        }
        for frame in world.client.drain(..).map(|frame| value(&frame)) {
            match frame["method"].as_str() {
                Some("elicitation/create") => self.asks.push(frame["id"].clone()),
                Some(_) => {}
                None if frame["result"]["isError"] == true => {
                    self.delivered.push(format!("{} refusal", frame["id"]));
                }
                None if frame["result"]["again"] == true => {
                    self.delivered.push(format!("{} again", frame["id"]));
                }
                None if frame.get("error").is_some() => self.delivered.push(format!("{} error", frame["id"])),
                None => self.delivered.push(format!("{} result", frame["id"])),
            }
        }
        for frame in world.upstream.drain(..).map(|frame| value(&frame)) {
            if frame["method"] == "tools/call" && frame["id"].is_string() {
                self.agains.push(frame["id"].clone());
            }
        }
    }
}

fn accepted(device: &str) -> InboxEnd {
    InboxEnd::Accepted(format!(r#"{{"deviceId":"{device}"}}"#))
}

fn sorted(delivered: &mut Vec<String>) -> Vec<String> {
    delivered.sort_unstable();
    std::mem::take(delivered)
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn the_envelope_does_what_the_model_says(steps in steps()) {
        let operator = Arc::new(AtomicBool::new(false));
        let is_there = Arc::clone(&operator);
        let world = World::push(&json!({}));
        world.process.attach_inbox(move || is_there.load(Ordering::Relaxed).then_some(Duration::ZERO));
        let mut seen = Seen { world, asks: vec![], operator, agains: vec![], delivered: vec![] };
        let mut model = Model { open: vec![None; 4], ..Model::default() };
        for step in &steps {
            let before = model.open.clone();
            model.take(step);
            seen.take(step, |call| !model.has_ended && before[call].is_some() && model.open[call].is_some());
            // Questions that end at one moment end in any order.
            let (got, expected) = (sorted(&mut seen.delivered), sorted(&mut model.delivered));
            prop_assert_eq!(got, expected, "{:?}", step);
            let recorded: Vec<_> = seen
                .world
                .records
                .iter()
                .map(|record| format!("{} {}", record.outcome, record.provenance))
                .collect();
            prop_assert_eq!(&recorded, &model.recorded, "{:?}", step);
            prop_assert_eq!(seen.world.runs, model.runs, "the witness, at {:?}", step);
            prop_assert_eq!((seen.asks.len(), seen.agains.len()), (model.asks, model.agains));
            prop_assert_eq!(seen.world.inbox.len(), model.waits.len(), "asked of the inbox, at {:?}", step);
            prop_assert_eq!(seen.world.withdrawn.len(), model.taken_back, "at {:?}", step);
            let open = model.open.iter().flatten().count();
            prop_assert_eq!(seen.world.envelope.open_requests(), open);
            let again = model.open.iter().flatten().filter(|(_, at)| matches!(at, At::Again(_))).count();
            prop_assert_eq!(seen.world.envelope.ours.len(), again, "no request of ours outlives its call");
            let waits = model.open.iter().flatten().any(|(_, at)| matches!(at, At::Asked(..) | At::Inbox(..)));
            prop_assert_eq!(seen.world.envelope.next_deadline().is_some(), waits);
        }
        // Everything is given back once nothing is open.
        let mut out = Vec::new();
        seen.world.envelope.upstream_ended("end", seen.world.now, &mut out);
        prop_assert_eq!(seen.world.process.bytes_in_flight(), 0);
        prop_assert!(seen.world.envelope.asks.is_empty() && seen.world.envelope.ours.is_empty());
    }
}
