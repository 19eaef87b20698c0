//! The engine against a second, dumber model: random histories of everything that can happen to asks.
//!
//! The reference keeps a list, scans it, and is too simple to be wrong. After every step both must agree on what the
//! asking side was sent, on every verdict and on the next deadline; at the end, on what the inbox knows.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proptest::prelude::*;

use super::{
    tests::{Asker, ask_id, at, new_ask, pick, skip, submission_id, wide},
    *,
};
use crate::{AskId, Moment, Outcome, Provenance, Source, Submission, SubmissionId, WireAction};

/// Everything the world can do. Numbers pick among what exists.
#[derive(Debug, Clone)]
enum Step {
    Open { session: u8, timeout: Option<u16>, is_permission: bool },
    Submit { ask: usize, submission: Sent, wrong_action: bool },
    Batch { asks: Vec<(usize, Sent)> },
    AskVerdict { ask: usize, submission: usize },
    End { ask: usize, cause: EndCause },
    EndSession { session: u8, cause: EndCause },
    Park { ask: usize, ttl: u16 },
    Pass { millis: u16 },
    ClockRunsBack { millis: u16 },
    AskerDies,
    AskerLives,
    Connect,
    Disconnect,
    Inbox { takes: u8, acks: bool },
}

/// What a human sends. `Again` repeats an earlier submission under its old id.
#[derive(Debug, Clone)]
enum Sent {
    Valid,
    Invalid,
    Skip,
    Again(usize),
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        4 => Just(Sent::Valid),
        2 => Just(Sent::Invalid),
        2 => Just(Sent::Skip),
        2 => any::<usize>().prop_map(Sent::Again),
    ]
}

fn cause() -> impl Strategy<Value = EndCause> {
    proptest::sample::select(EndCause::ALL)
}

fn step() -> impl Strategy<Value = Step> {
    let ask = any::<usize>();
    prop_oneof![
        6 => (0..3u8, proptest::option::of(0..500u16), any::<bool>())
            .prop_map(|(session, timeout, is_permission)| Step::Open { session, timeout, is_permission }),
        6 => (ask, sent(), proptest::bool::weighted(0.1))
            .prop_map(|(ask, submission, wrong_action)| Step::Submit { ask, submission, wrong_action }),
        2 => proptest::collection::vec((ask, sent()), 1..4).prop_map(|asks| Step::Batch { asks }),
        2 => (ask, any::<usize>()).prop_map(|(ask, submission)| Step::AskVerdict { ask, submission }),
        1 => (ask, cause()).prop_map(|(ask, cause)| Step::End { ask, cause }),
        1 => (0..3u8, cause()).prop_map(|(session, cause)| Step::EndSession { session, cause }),
        1 => (ask, 0..500u16).prop_map(|(ask, ttl)| Step::Park { ask, ttl }),
        3 => (0..300u16).prop_map(|millis| Step::Pass { millis }),
        1 => any::<u16>().prop_map(|millis| Step::ClockRunsBack { millis }),
        1 => Just(Step::AskerDies),
        2 => Just(Step::AskerLives),
        2 => Just(Step::Connect),
        1 => Just(Step::Disconnect),
        4 => (0..8u8, any::<bool>()).prop_map(|(takes, acks)| Step::Inbox { takes, acks }),
    ]
}

/// One ask as the reference sees it.
#[derive(Debug, Clone)]
struct RefAsk {
    session: String,
    is_permission: bool,
    is_parked: bool,
    deadline: Option<u64>,
    ended: Option<(Outcome, Option<WireAction>, Option<SubmissionId>)>,
    /// Submissions that were refused or disowned while it was open.
    judged: BTreeMap<SubmissionId, RefVerdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefVerdict {
    Delivered,
    Invalid,
    Unseen,
    Ended,
    NotFound,
    Unsuitable,
}

impl RefVerdict {
    fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Delivered => Self::Delivered,
            Verdict::Invalid(_) => Self::Invalid,
            Verdict::Unseen => Self::Unseen,
            Verdict::Ended(Some(_)) => Self::Ended,
            Verdict::Ended(None) => Self::NotFound,
            Verdict::Unsuitable(_) => Self::Unsuitable,
        }
    }
}

/// The inbox's rows, kept as acp.md tells it to.
#[derive(Debug, Default)]
struct Inbox {
    rows: BTreeMap<AskId, Option<Ended>>,
    in_snapshot: Vec<AskId>,
}

impl Inbox {
    fn take(&mut self, notice: &Notice) {
        match notice {
            Notice::Snapshot(part) => {
                for ask in &part.asks {
                    self.open(ask);
                    self.in_snapshot.push(ask.id.clone());
                }
                for (ask, ended) in &part.settlements {
                    self.settle(ask, ended);
                }
                if part.last {
                    let missing = |(ask, row): &(&AskId, &Option<Ended>)| {
                        row.is_none() && !self.in_snapshot.contains(ask)
                    };
                    let withdrawn: Vec<_> = self.rows.iter().filter(missing).collect();
                    assert!(withdrawn.is_empty(), "a snapshot forgot {withdrawn:?}");
                }
            }
            Notice::Opened(ask) => self.open(ask),
            Notice::Settled(ask, ended) => self.settle(ask, ended),
        }
    }

    fn open(&mut self, ask: &Announced) {
        let row = self.rows.entry(ask.id.clone()).or_default();
        assert_eq!(*row, None, "{} was settled and is announced as open", ask.id);
    }

    fn settle(&mut self, ask: &AskId, ended: &Ended) {
        let row = self.rows.entry(ask.clone()).or_default();
        if let Some(before) = row {
            assert_eq!(before, ended, "two ends of {ask}");
        }
        *row = Some(ended.clone());
    }
}

struct World {
    engine: Engine,
    asker: Asker,
    inbox: Inbox,
    is_connected: bool,
    time: u64,
    now: u64,
    asks: Vec<RefAsk>,
    deliveries: Vec<(AskId, Option<WireAction>)>,
    submissions: Vec<Submission>,
}

impl World {
    fn new() -> Self {
        Self {
            engine: Engine::new(wide(), 600),
            asker: Asker::default(),
            inbox: Inbox::default(),
            is_connected: false,
            time: 0,
            now: 0,
            asks: Vec::new(),
            deliveries: Vec::new(),
            submissions: Vec::new(),
        }
    }

    fn moment(&self) -> Moment {
        at(self.time)
    }

    /// What the reference makes of time: the latest it has seen; whatever is due is declined, nearest first.
    fn let_time_pass(&mut self) {
        self.now = self.now.max(self.time);
        while let Some((_, ask)) = self
            .asks
            .iter()
            .enumerate()
            .filter(|(_, ask)| ask.ended.is_none())
            .filter_map(|(n, ask)| ask.deadline.map(|deadline| (deadline, n)))
            .filter(|(deadline, _)| *deadline <= self.now)
            .min()
        {
            self.finish(ask, Outcome::Timeout, Some(WireAction::Decline), None);
        }
    }

    fn finish(&mut self, ask: usize, outcome: Outcome, wire: Option<WireAction>, won: Option<SubmissionId>) {
        self.deliveries.push((ask_id(ask), wire));
        let ended = if self.asker.is_alive && wire.is_some() {
            (outcome, wire, won)
        } else {
            (Outcome::Withdrawn, None, None)
        };
        self.asks[ask].ended = Some(ended);
    }

    fn end(&mut self, ask: usize, cause: EndCause) {
        if self.asks[ask].ended.is_some() {
            return;
        }
        let (outcome, wire) = match cause {
            EndCause::Deadline => (Outcome::Timeout, Some(WireAction::Decline)),
            EndCause::InboxRefused => (Outcome::Decline, Some(WireAction::Decline)),
            EndCause::RequestCancelled | EndCause::TurnCancelled | EndCause::Shutdown => {
                (Outcome::Cancel, Some(WireAction::Cancel))
            }
            EndCause::PromptEnded => (Outcome::Withdrawn, Some(WireAction::Cancel)),
            EndCause::CallCancelled | EndCause::AgentDisconnected => (Outcome::Withdrawn, None),
        };
        self.finish(ask, outcome, wire, None);
    }

    fn submission(&mut self, sent: &Sent) -> Submission {
        let n = self.submissions.len();
        let submission = match sent {
            Sent::Again(which) if n > 0 => return self.submissions[which % n].clone(),
            Sent::Valid | Sent::Again(_) => pick(n, "Red"),
            Sent::Invalid => pick(n, "Green"),
            Sent::Skip => skip(n),
        };
        self.submissions.push(submission.clone());
        submission
    }

    /// The verdict without its effects.
    fn expect(&self, ask: usize, submission: &Submission, route: Route) -> RefVerdict {
        let Some(ask) = self.asks.get(ask) else { return RefVerdict::NotFound };
        if let Some((_, _, won)) = &ask.ended {
            return if won.as_ref() == Some(&submission.id) {
                RefVerdict::Delivered
            } else {
                RefVerdict::Ended
            };
        }
        if let Some(verdict) = ask.judged.get(&submission.id) {
            return *verdict;
        }
        let fits = match route {
            Route::Elicitation => !ask.is_permission,
            Route::Permission | Route::Batch => ask.is_permission,
        };
        let selects =
            |value: &str| submission.answers.iter().any(|a| a.selected_options.contains(&value.into()));
        if !fits || (route == Route::Batch && selects("Green")) {
            RefVerdict::Unsuitable
        } else if !submission.rejected && selects("Green") {
            RefVerdict::Invalid
        } else {
            RefVerdict::Delivered
        }
    }

    /// The effects of a verdict that was just reached on an open ask; what its sender is told.
    fn take_effect(&mut self, ask: usize, submission: &Submission, verdict: RefVerdict) -> RefVerdict {
        if self.asks.get(ask).is_none_or(|ask| ask.ended.is_some()) {
            return verdict;
        }
        match verdict {
            RefVerdict::Delivered => {
                let (outcome, wire) = if submission.rejected {
                    (Outcome::Decline, WireAction::Decline)
                } else {
                    (Outcome::Accept, WireAction::Accept)
                };
                self.finish(ask, outcome, Some(wire), Some(submission.id.clone()));
                if self.asker.is_alive { RefVerdict::Delivered } else { RefVerdict::Ended }
            }
            RefVerdict::Invalid => {
                self.asks[ask].judged.insert(submission.id.clone(), RefVerdict::Invalid);
                verdict
            }
            RefVerdict::Unseen | RefVerdict::Ended | RefVerdict::NotFound | RefVerdict::Unsuitable => verdict,
        }
    }

    /// An ask that exists, or one past the last, which does not.
    fn pick_ask(&self, ask: usize) -> usize {
        ask % (self.asks.len() + 1)
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Open { session, timeout, is_permission } => self.open(*session, *timeout, *is_permission),
            Step::Submit { ask, submission, wrong_action } => self.submit(*ask, submission, *wrong_action),
            Step::Batch { asks } => self.batch(asks),
            Step::AskVerdict { ask, submission } => self.ask_verdict(*ask, *submission),
            Step::End { ask, cause } => {
                let ask = self.pick_ask(*ask);
                self.engine.end(self.moment(), &ask_id(ask), *cause, &mut self.asker);
                self.let_time_pass();
                if ask < self.asks.len() {
                    self.end(ask, *cause);
                }
            }
            Step::EndSession { session, cause } => {
                let name = format!("session-{session}");
                self.engine.end_session(self.moment(), &name, *cause, &mut self.asker);
                self.let_time_pass();
                for ask in 0..self.asks.len() {
                    if self.asks[ask].session == name {
                        self.end(ask, *cause);
                    }
                }
            }
            Step::Park { ask, ttl } => {
                let ask = self.pick_ask(*ask);
                let ttl = Duration::from_millis((*ttl).into());
                let parked = self.engine.park(self.moment(), &ask_id(ask), ttl, &mut self.asker).unwrap();
                self.let_time_pass();
                let now = self.now;
                let open = self.asks.get_mut(ask).filter(|ask| ask.ended.is_none() && !ask.is_parked);
                assert_eq!(parked, open.is_some());
                if let Some(open) = open {
                    open.is_parked = true;
                    open.deadline = Some(now + ttl.as_millis() as u64);
                }
            }
            Step::Pass { millis } => {
                self.time = self.time.max(self.now) + u64::from(*millis);
                self.engine.advance(self.moment(), &mut self.asker);
                self.let_time_pass();
            }
            Step::ClockRunsBack { millis } => {
                self.time = self.time.saturating_sub((*millis).into());
                self.engine.advance(self.moment(), &mut self.asker);
                self.let_time_pass();
            }
            Step::AskerDies => self.asker.is_alive = false,
            Step::AskerLives => self.asker.is_alive = true,
            Step::Connect => {
                self.engine.connected(self.moment(), wide(), &mut self.asker);
                self.let_time_pass();
                self.inbox.in_snapshot.clear();
                self.is_connected = true;
            }
            Step::Disconnect => {
                self.engine.disconnected();
                self.is_connected = false;
            }
            Step::Inbox { takes, acks } => self.inbox_takes((*takes).into(), *acks),
        }
        self.check();
    }

    fn open(&mut self, session: u8, timeout: Option<u16>, is_permission: bool) {
        let n = self.asks.len();
        let session = format!("session-{session}");
        let source = if is_permission { Source::Permission } else { Source::Elicitation };
        let timeout_of = timeout.map(|millis| Duration::from_millis(millis.into()));
        let ask = NewAsk {
            source,
            session: Some(session.clone()),
            timeout: timeout_of,
            single_use: vec!["Red".into()],
            announcement: Arc::from(format!("{{\"n\":{n}}}")),
            ..new_ask(n)
        };
        self.engine.open(self.moment(), ask, &mut self.asker).unwrap();
        self.let_time_pass();
        let deadline = timeout.map(|millis| self.now + u64::from(millis));
        let judged = BTreeMap::new();
        self.asks.push(RefAsk { session, is_permission, is_parked: false, deadline, ended: None, judged });
    }

    fn submit(&mut self, ask: usize, sent: &Sent, wrong_action: bool) {
        let ask = self.pick_ask(ask);
        let submission = self.submission(sent);
        let is_permission = self.asks.get(ask).is_some_and(|ask| ask.is_permission) != wrong_action;
        let route = if is_permission { Route::Permission } else { Route::Elicitation };
        let verdict = self.engine.submit(self.moment(), &ask_id(ask), &submission, route, &mut self.asker);
        self.let_time_pass();
        let expected = self.expect(ask, &submission, route);
        let expected = self.take_effect(ask, &submission, expected);
        assert_eq!(RefVerdict::of(&verdict), expected, "{verdict:?}");
        if let Verdict::Ended(Some(ended)) = verdict {
            assert_eq!(Some((ended.outcome, ended.wire, ended.submission)), self.asks[ask].ended);
        }
    }

    fn batch(&mut self, asks: &[(usize, Sent)]) {
        let batch: Vec<(usize, Submission)> =
            asks.iter().map(|(ask, sent)| (self.pick_ask(*ask), self.submission(sent))).collect();
        let entries: Vec<_> =
            batch.iter().map(|(ask, submission)| (ask_id(*ask), submission.clone())).collect();
        let result = self.engine.submit_batch(self.moment(), &entries, &mut self.asker);
        self.let_time_pass();
        let mut to_deliver = Vec::new();
        for (n, (ask, submission)) in batch.iter().enumerate() {
            let repeats = batch[..n].iter().any(|(other, _)| other == ask);
            let expected =
                if repeats { RefVerdict::Unsuitable } else { self.expect(*ask, submission, Route::Batch) };
            if expected != RefVerdict::Delivered {
                self.take_effect(*ask, submission, expected);
                let (entry, verdict) = result.expect_err("the reference refuses");
                assert_eq!((entry, RefVerdict::of(&verdict)), (n, expected));
                return;
            }
            to_deliver.push((n, *ask, submission));
        }
        for (n, ask, submission) in to_deliver {
            if self.take_effect(ask, submission, RefVerdict::Delivered) != RefVerdict::Delivered {
                let (entry, verdict) = result.expect_err("nobody took it");
                assert_eq!((entry, RefVerdict::of(&verdict)), (n, RefVerdict::Ended));
                return;
            }
        }
        assert_eq!(result, Ok(()));
    }

    fn ask_verdict(&mut self, ask: usize, submission: usize) {
        let ask = self.pick_ask(ask);
        let submission = submission_id(submission % (self.submissions.len() + 1));
        let verdict = self.engine.verdict(self.moment(), &ask_id(ask), &submission, &mut self.asker);
        self.let_time_pass();
        let expected = match self.asks.get_mut(ask) {
            None => RefVerdict::NotFound,
            Some(RefAsk { ended: Some((_, _, won)), .. }) if won.as_ref() == Some(&submission) => {
                RefVerdict::Delivered
            }
            Some(RefAsk { ended: Some(_), .. }) => RefVerdict::Ended,
            Some(open) => *open.judged.entry(submission).or_insert(RefVerdict::Unseen),
        };
        assert_eq!(RefVerdict::of(&verdict), expected, "{verdict:?}");
    }

    fn inbox_takes(&mut self, takes: usize, acks: bool) {
        for _ in 0..takes {
            let Some(notice) = self.engine.next_notice(self.moment()) else { return self.check_inbox() };
            self.now = self.now.max(self.time);
            assert!(self.is_connected, "a notice without a connection: {notice:?}");
            self.inbox.take(&notice);
            if acks {
                self.engine.acknowledged(&notice.receipt());
            }
        }
    }

    /// An inbox that has read everything knows everything that is open, and how whatever it knew of has ended.
    fn check_inbox(&self) {
        if !self.is_connected {
            return;
        }
        for (ask, row) in &self.inbox.rows {
            assert_eq!(row.as_ref(), self.engine.ended(ask), "the inbox's row of {ask}");
        }
        for (n, ask) in self.asks.iter().enumerate() {
            assert!(
                ask.ended.is_some() || self.inbox.rows.contains_key(&ask_id(n)),
                "ask {n} was not announced"
            );
        }
    }

    /// What must hold after every step.
    fn check(&self) {
        let sent: Vec<_> = self
            .asker
            .got
            .iter()
            .map(|(ask, sent)| (ask.clone(), sent.as_ref().map(Delivery::wire)))
            .collect();
        assert_eq!(sent, self.deliveries, "what the asking side was sent");
        let mut once: Vec<_> = sent.iter().map(|(ask, _)| ask).collect();
        once.sort();
        assert!(once.windows(2).all(|pair| pair[0] != pair[1]), "two deliveries of one ask: {once:?}");

        let open: Vec<_> = self.asks.iter().filter(|ask| ask.ended.is_none()).collect();
        assert_eq!(self.engine.open_asks(), open.len());
        assert_eq!(self.engine.next_deadline(), open.iter().filter_map(|ask| ask.deadline).min().map(at));
        for (n, ask) in self.asks.iter().enumerate() {
            let ended = self.engine.ended(&ask_id(n));
            let seen = ended.map(|ended| (ended.outcome, ended.wire, ended.submission.clone()));
            assert_eq!(seen, ask.ended);
            if let Some(ended) = ended {
                check_row(ended);
            }
        }
    }

    /// The end of every history: the asker and the inbox come back, then the holder goes down.
    fn finish_history(mut self) {
        self.inbox_takes(usize::MAX, false);
        self.apply(&Step::AskerLives);
        self.engine.shut_down(self.moment(), &mut self.asker);
        self.let_time_pass();
        for ask in 0..self.asks.len() {
            self.end(ask, EndCause::Shutdown);
        }
        self.check();
        assert_eq!(self.engine.open_asks(), 0, "every ask ends");
        assert_eq!(self.deliveries.len(), self.asks.len());

        self.apply(&Step::Connect);
        self.inbox_takes(usize::MAX, true);
        assert!(self.engine.is_acknowledged(), "every settlement arrives");
        self.apply(&Step::Connect);
        self.inbox_takes(usize::MAX, true);
        assert!(self.inbox.in_snapshot.is_empty(), "nothing is repeated once acknowledged");
    }
}

/// Outcome, wire action, provenance and winner must be a row of acp.md's table.
fn check_row(ended: &Ended) {
    let row = (ended.outcome, ended.wire, ended.provenance, ended.submission.is_some());
    let (accept, decline, cancel) =
        (Some(WireAction::Accept), Some(WireAction::Decline), Some(WireAction::Cancel));
    let legal = [
        (Outcome::Accept, accept, Provenance::Client, true),
        (Outcome::Decline, decline, Provenance::Client, true),
        (Outcome::Decline, decline, Provenance::System, false),
        (Outcome::Timeout, decline, Provenance::System, false),
        (Outcome::Cancel, cancel, Provenance::System, false),
        (Outcome::Withdrawn, cancel, Provenance::System, false),
        (Outcome::Withdrawn, None, Provenance::System, false),
    ];
    assert!(legal.contains(&row), "{row:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_agrees_with_the_reference(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.apply(step);
        }
        world.finish_history();
    }
}
