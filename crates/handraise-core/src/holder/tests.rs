//! Each row of acp.md's "Elicitation life", each limit, and each promise about verdicts, by name.

use std::{sync::Arc, time::Duration};

use super::*;
use crate::{
    Answer, AskId, Choice, Constraints, Kind, Moment, Outcome, Provenance, Question, Source, Submission,
    SubmissionId, WireAction,
    form::{AnswerRules, Form, Rule},
};

/// The asking side: keeps what it was sent.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) got: Vec<(AskId, Option<Delivery>)>,
    pub(super) is_alive: bool,
}

impl Default for Asker {
    fn default() -> Self {
        Self { got: Vec::new(), is_alive: true }
    }
}

impl Courier for Asker {
    fn deliver(&mut self, ask: &AskId, delivery: Option<Delivery>) -> bool {
        self.got.push((ask.clone(), delivery));
        self.is_alive
    }
}

impl Asker {
    fn wires(&self) -> Vec<Option<WireAction>> {
        self.got.iter().map(|(_, delivery)| delivery.as_ref().map(Delivery::wire)).collect()
    }
}

pub(super) fn ask_id(n: usize) -> AskId {
    AskId::new(format!("ask-{n:06}")).unwrap()
}

pub(super) fn submission_id(n: usize) -> SubmissionId {
    SubmissionId::new(format!("sub-{n}")).unwrap()
}

pub(super) fn at(millis: u64) -> Moment {
    Moment::from_millis(millis)
}

/// One question `question_0`, with the choices Red and Blue.
pub(super) fn form() -> Form {
    let choice =
        |value: &str| Choice { value: value.into(), label: value.into(), description: None, preview: None };
    let question = Question {
        id: "question_0".into(),
        kind: Kind::Single,
        title: None,
        prompt: "Which colour?".into(),
        required: false,
        default: None,
        allows_text: false,
        companion: None,
        secret: false,
        choices: vec![choice("Red"), choice("Blue")],
        constraints: Constraints::default(),
    };
    Form::from_questions(vec![question]).unwrap()
}

pub(super) fn new_ask(n: usize) -> NewAsk {
    NewAsk {
        id: ask_id(n),
        source: Source::Elicitation,
        session: Some("session".into()),
        announcement: Arc::from(format!("{{\"n\":{n}}}")),
        form: form(),
        rules: AnswerRules::for_source(Source::Elicitation),
        single_use: Vec::new(),
        timeout: Some(Duration::from_secs(60)),
    }
}

pub(super) fn pick(n: usize, value: &str) -> Submission {
    Submission {
        id: submission_id(n),
        answers: vec![Answer {
            question_id: "question_0".into(),
            selected_options: vec![value.into()],
            custom_text: String::new(),
        }],
        rejected: false,
        reject_reason: String::new(),
    }
}

pub(super) fn skip(n: usize) -> Submission {
    Submission { id: submission_id(n), answers: vec![], rejected: true, reject_reason: "not now".into() }
}

/// Limits that no test reaches by accident.
pub(super) fn wide() -> Limits {
    Limits {
        open_asks: 1_000_000,
        open_bytes: 1 << 40,
        session_open_asks: 1_000_000,
        session_parked_asks: 1_000_000,
        asks_per_second: 1_000_000,
    }
}

pub(super) fn engine() -> Engine {
    Engine::new(wide(), 1 << 20)
}

/// An engine with ask 0 open since time 0, and its asker.
fn one_open() -> (Engine, Asker) {
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.open(at(0), new_ask(0), &mut asker).unwrap();
    (engine, asker)
}

fn submit(engine: &mut Engine, asker: &mut Asker, n: usize, submission: &Submission) -> Verdict {
    engine.submit(at(1), &ask_id(n), submission, Route::Elicitation, asker)
}

/// What is recorded about ask 0, without the time.
fn record(engine: &Engine) -> (Outcome, Provenance, Option<WireAction>, Option<&'static str>) {
    let ended = engine.ended(&ask_id(0)).expect("ended");
    (ended.outcome, ended.provenance, ended.wire, ended.reason.map(Reason::as_str))
}

#[test]
fn ac10_a_submission_is_accepted_and_goes_out_once() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(0, "Red")), Verdict::Delivered);
    let content = serde_json::json!({"question_0": "Red"}).as_object().cloned().unwrap();
    assert_eq!(asker.got, [(ask_id(0), Some(Delivery::Accept(content)))]);
    assert_eq!(record(&engine), (Outcome::Accept, Provenance::Client, Some(WireAction::Accept), None));
    assert_eq!(engine.ended(&ask_id(0)).unwrap().submission, Some(submission_id(0)));
}

#[test]
fn ac14_skip_is_decline_on_the_wire_and_in_the_record() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(submit(&mut engine, &mut asker, 0, &skip(0)), Verdict::Delivered);
    assert_eq!(asker.wires(), [Some(WireAction::Decline)]);
    assert_eq!(record(&engine), (Outcome::Decline, Provenance::Client, Some(WireAction::Decline), None));
}

#[test]
fn ac64_the_deadline_is_decline_on_the_wire_and_timeout_in_the_record() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(engine.next_deadline(), Some(at(60_000)));
    engine.advance(at(59_999), &mut asker);
    assert_eq!(asker.wires(), []);
    engine.advance(at(60_000), &mut asker);
    assert_eq!(asker.wires(), [Some(WireAction::Decline)]);
    assert_eq!(
        record(&engine),
        (Outcome::Timeout, Provenance::System, Some(WireAction::Decline), Some("deadline"))
    );
    assert_eq!(engine.next_deadline(), None);
}

#[test]
fn ac64_an_answer_that_arrives_at_the_deadline_is_too_late() {
    let (mut engine, mut asker) = one_open();
    let verdict = engine.submit(at(60_000), &ask_id(0), &pick(0, "Red"), Route::Elicitation, &mut asker);
    assert!(matches!(verdict, Verdict::Ended(Some(Ended { outcome: Outcome::Timeout, .. }))), "{verdict:?}");
    assert_eq!(asker.wires(), [Some(WireAction::Decline)]);
}

#[test]
fn ac15_every_cause_has_its_wire_action_and_its_record() {
    let (cancel, decline) = (Some(WireAction::Cancel), Some(WireAction::Decline));
    let rows = [
        (EndCause::Deadline, decline, Outcome::Timeout, "deadline"),
        (EndCause::RequestCancelled, cancel, Outcome::Cancel, "request_cancelled"),
        (EndCause::CallCancelled, None, Outcome::Withdrawn, "request_cancelled"),
        (EndCause::TurnCancelled, cancel, Outcome::Cancel, "turn_cancelled"),
        (EndCause::Shutdown, cancel, Outcome::Cancel, "shutdown"),
        (EndCause::PromptEnded, cancel, Outcome::Withdrawn, "prompt_ended"),
        (EndCause::AgentDisconnected, None, Outcome::Withdrawn, "agent_disconnected"),
        (EndCause::InboxRefused, decline, Outcome::Decline, "inbox_refused"),
    ];
    assert_eq!(rows.map(|(cause, ..)| cause).len(), EndCause::ALL.len());
    for (cause, wire, outcome, reason) in rows {
        let (mut engine, mut asker) = one_open();
        assert!(engine.end(at(1), &ask_id(0), cause, &mut asker));
        assert_eq!(asker.wires(), [wire], "{cause:?}");
        assert_eq!(record(&engine), (outcome, Provenance::System, wire, Some(reason)), "{cause:?}");
        assert!(!engine.end(at(2), &ask_id(0), cause, &mut asker), "an ask ends once");
        assert_eq!(asker.got.len(), 1, "{cause:?}");
    }
}

#[test]
fn ac15_a_cancelled_turn_cancels_every_ask_of_its_session_and_no_other() {
    let (mut engine, mut asker) = one_open();
    engine.open(at(0), new_ask(1), &mut asker).unwrap();
    engine.open(at(0), NewAsk { session: Some("other".into()), ..new_ask(2) }, &mut asker).unwrap();
    assert_eq!(engine.end_session(at(1), "session", EndCause::TurnCancelled, &mut asker), 2);
    assert_eq!(asker.wires(), [Some(WireAction::Cancel); 2]);
    assert_eq!(engine.open_asks(), 1);
    assert_eq!(engine.end_session(at(1), "session", EndCause::TurnCancelled, &mut asker), 0);
}

#[test]
fn an_answer_that_nobody_takes_is_withdrawn_and_its_sender_is_told() {
    let (mut engine, mut asker) = one_open();
    asker.is_alive = false;
    let verdict = submit(&mut engine, &mut asker, 0, &pick(0, "Red"));
    let withdrawn = (Outcome::Withdrawn, Provenance::System, None, Some("agent_disconnected"));
    assert_eq!(record(&engine), withdrawn);
    assert_eq!(verdict, Verdict::Ended(engine.ended(&ask_id(0)).cloned()));
    assert_eq!(engine.ended(&ask_id(0)).unwrap().submission, None, "no submission won");
    assert_eq!(engine.verdict(at(2), &ask_id(0), &submission_id(0), &mut asker), verdict);
}

#[test]
fn a_prompt_that_ended_with_its_request_gone_sends_nothing() {
    let (mut engine, mut asker) = one_open();
    asker.is_alive = false;
    engine.end(at(1), &ask_id(0), EndCause::PromptEnded, &mut asker);
    assert_eq!(record(&engine), (Outcome::Withdrawn, Provenance::System, None, Some("prompt_ended")));
}

#[test]
fn ac12f_two_asks_with_the_same_content_are_two_asks() {
    let (mut engine, mut asker) = one_open();
    engine.open(at(0), NewAsk { id: ask_id(1), ..new_ask(0) }, &mut asker).unwrap();
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(0, "Red")), Verdict::Delivered);
    assert_eq!(engine.open_asks(), 1);
    assert_eq!(submit(&mut engine, &mut asker, 1, &pick(1, "Blue")), Verdict::Delivered);
    assert_eq!(asker.got.len(), 2);
}

#[test]
fn ac12g_a_later_submission_is_told_how_it_ended_and_which_one_won() {
    let (mut engine, mut asker) = one_open();
    submit(&mut engine, &mut asker, 0, &pick(0, "Red"));
    for later in [pick(1, "Red"), pick(2, "Blue"), skip(3)] {
        let Verdict::Ended(Some(ended)) = submit(&mut engine, &mut asker, 0, &later) else {
            panic!("not found")
        };
        assert_eq!((ended.outcome, ended.submission), (Outcome::Accept, Some(submission_id(0))));
    }
    assert_eq!(asker.got.len(), 1);
}

#[test]
fn ac61_an_unknown_ask_is_not_found() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(submit(&mut engine, &mut asker, 7, &pick(0, "Red")), Verdict::Ended(None));
}

#[test]
fn a_submission_sent_twice_has_one_verdict_and_one_delivery() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(0, "Red")), Verdict::Delivered);
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(0, "Red")), Verdict::Delivered);
    assert_eq!(engine.verdict(at(2), &ask_id(0), &submission_id(0), &mut asker), Verdict::Delivered);
    assert_eq!(asker.got.len(), 1);
}

#[test]
fn f10_an_invalid_answer_keeps_the_ask_open_and_sends_nothing() {
    let (mut engine, mut asker) = one_open();
    let verdict = submit(&mut engine, &mut asker, 0, &pick(0, "Green"));
    let Verdict::Invalid(errors) = &verdict else { panic!("{verdict:?}") };
    assert_eq!((errors[0].question_id.as_str(), errors[0].rule), ("question_0", Rule::NotAChoice));
    assert_eq!((engine.open_asks(), asker.got.len()), (1, 0));

    assert_eq!(engine.verdict(at(2), &ask_id(0), &submission_id(0), &mut asker), verdict, "asked again");
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(1, "Red")), Verdict::Delivered);
}

#[test]
fn a_submission_that_was_reported_unseen_is_never_delivered() {
    let (mut engine, mut asker) = one_open();
    assert_eq!(engine.verdict(at(1), &ask_id(0), &submission_id(0), &mut asker), Verdict::Unseen);
    assert_eq!(
        submit(&mut engine, &mut asker, 0, &pick(0, "Red")),
        Verdict::Unseen,
        "its sender was told so"
    );
    assert_eq!((engine.open_asks(), asker.got.len()), (1, 0));
    assert_eq!(submit(&mut engine, &mut asker, 0, &pick(1, "Red")), Verdict::Delivered);
    let Verdict::Ended(Some(ended)) = engine.verdict(at(2), &ask_id(0), &submission_id(0), &mut asker) else {
        panic!("ended");
    };
    assert_eq!(ended.submission, Some(submission_id(1)));
}

#[test]
fn permissions_and_other_asks_have_their_own_actions() {
    let (mut engine, mut asker) = one_open();
    let of = |source| NewAsk { source, single_use: vec!["Red".into()], ..new_ask(1) };
    engine.open(at(0), of(Source::Permission), &mut asker).unwrap();
    let ask = |engine: &mut Engine, asker: &mut Asker, n, route| {
        engine.submit(at(1), &ask_id(n), &pick(n, "Red"), route, asker)
    };
    assert!(matches!(ask(&mut engine, &mut asker, 1, Route::Elicitation), Verdict::Unsuitable(_)));
    assert!(matches!(ask(&mut engine, &mut asker, 0, Route::Permission), Verdict::Unsuitable(_)));
    assert_eq!(ask(&mut engine, &mut asker, 1, Route::Permission), Verdict::Delivered);
    assert_eq!(ask(&mut engine, &mut asker, 0, Route::Elicitation), Verdict::Delivered);
}

/// An engine with the permissions 0 and 1 open, of which only Red is single-use.
fn two_permissions() -> (Engine, Asker) {
    let (mut engine, mut asker) = (engine(), Asker::default());
    for n in 0..2 {
        let ask = NewAsk { source: Source::Permission, single_use: vec!["Red".into()], ..new_ask(n) };
        engine.open(at(0), ask, &mut asker).unwrap();
    }
    (engine, asker)
}

#[test]
fn s44_a_batch_delivers_all() {
    let (mut engine, mut asker) = two_permissions();
    let batch = [(ask_id(0), pick(0, "Red")), (ask_id(1), skip(1))];
    assert_eq!(engine.submit_batch(at(1), &batch, &mut asker), Ok(()));
    assert_eq!(asker.wires(), [Some(WireAction::Accept), Some(WireAction::Decline)]);
    assert_eq!(engine.submit_batch(at(1), &batch, &mut asker), Ok(()), "the same batch again");
    assert_eq!(asker.got.len(), 2);
}

#[test]
fn s44_a_batch_with_one_bad_answer_delivers_none() {
    let bad = [
        (ask_id(1), pick(1, "Green")),
        (ask_id(1), pick(1, "Blue")),
        (ask_id(0), pick(1, "Red")),
        (ask_id(7), pick(1, "Red")),
    ];
    for (index, bad) in bad.into_iter().enumerate() {
        let (mut engine, mut asker) = two_permissions();
        let batch = [(ask_id(0), pick(0, "Red")), bad];
        let (at_entry, verdict) = engine.submit_batch(at(1), &batch, &mut asker).unwrap_err();
        assert_eq!(at_entry, 1, "case {index}");
        assert_ne!(verdict, Verdict::Delivered, "case {index}");
        assert_eq!((engine.open_asks(), asker.got.len()), (2, 0), "case {index}: {verdict:?}");
    }
}

#[test]
fn s44_a_batch_takes_no_elicitations() {
    let (mut engine, mut asker) = one_open();
    let (_, verdict) = engine.submit_batch(at(1), &[(ask_id(0), pick(0, "Red"))], &mut asker).unwrap_err();
    assert!(matches!(verdict, Verdict::Unsuitable(_)), "{verdict:?}");
}

#[test]
fn time_that_runs_backwards_is_ignored() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.advance(at(100_000), &mut asker);
    engine.open(at(0), new_ask(0), &mut asker).unwrap();
    assert_eq!(engine.next_deadline(), Some(at(160_000)));
    engine.advance(at(159_999), &mut asker);
    assert_eq!(engine.open_asks(), 1);
}

#[test]
fn a_shutdown_cancels_everything_and_refuses_what_comes_later() {
    let (mut engine, mut asker) = one_open();
    engine.shut_down(at(1), &mut asker);
    assert_eq!(asker.wires(), [Some(WireAction::Cancel)]);
    assert_eq!(engine.open(at(2), new_ask(1), &mut asker), Err(Refused::ShuttingDown));
    assert_eq!(engine.open_asks(), 0);
}

#[test]
fn s37_each_limit_refuses_with_its_reason_and_is_counted() {
    let one = Limits {
        open_asks: 3,
        open_bytes: 30,
        session_open_asks: 2,
        session_parked_asks: 1,
        asks_per_second: 100,
    };
    let mut engine = Engine::new(one, 20);
    let asker = &mut Asker::default();
    let sized = |n: usize, bytes: usize, session: &str| NewAsk {
        announcement: Arc::from("x".repeat(bytes)),
        session: Some(session.into()),
        ..new_ask(n)
    };
    assert_eq!(engine.open(at(0), sized(0, 10, "a"), asker), Ok(()));
    assert_eq!(engine.open(at(0), sized(0, 10, "a"), asker), Err(Refused::KnownId));
    assert_eq!(engine.open(at(0), sized(1, 21, "a"), asker), Err(Refused::TooLarge));
    assert_eq!(engine.open(at(0), sized(1, 10, "a"), asker), Ok(()));
    assert_eq!(engine.open(at(0), sized(2, 5, "a"), asker), Err(Refused::SessionOpenAsks));
    assert_eq!(engine.open(at(0), sized(2, 15, "b"), asker), Err(Refused::OpenBytes));
    assert_eq!(engine.open(at(0), sized(2, 10, "b"), asker), Ok(()));
    assert_eq!(engine.open(at(0), sized(3, 0, "c"), asker), Err(Refused::OpenAsks));
    let ttl = Duration::from_secs(900);
    assert_eq!(engine.park(at(0), &ask_id(0), ttl, asker), Ok(true));
    assert_eq!(engine.park(at(0), &ask_id(0), ttl, asker), Ok(false), "parked already");
    assert_eq!(engine.park(at(0), &ask_id(1), ttl, asker), Err(Refused::SessionParkedAsks));
    assert_eq!(engine.park(at(0), &ask_id(2), ttl, asker), Ok(true), "another session");
    let reasons: Vec<_> = engine.refusals().iter().map(|(reason, count)| (reason.code(), *count)).collect();
    let once =
        ["known_id", "open_asks", "open_bytes", "session_open_asks", "session_parked_asks", "too_large"];
    assert_eq!(reasons, once.map(|reason| (reason, 1)));

    // What ended makes room again.
    assert!(engine.end(at(0), &ask_id(0), EndCause::TurnCancelled, asker));
    assert_eq!(engine.open(at(0), sized(4, 10, "a"), asker), Ok(()));
    assert_eq!(engine.park(at(0), &ask_id(1), ttl, asker), Ok(true));
}

#[test]
fn s37_no_more_than_ten_asks_open_within_any_second() {
    let mut engine = Engine::new(Limits::default(), 1 << 20);
    let asker = &mut Asker::default();
    for n in 0..10 {
        assert_eq!(engine.open(at(n as u64 * 50), new_ask(n), asker), Ok(()));
    }
    assert_eq!(engine.open(at(999), new_ask(10), asker), Err(Refused::Rate));
    assert_eq!(engine.open(at(1000), new_ask(10), asker), Ok(()), "the first is a second old");
    assert_eq!(engine.open(at(1049), new_ask(11), asker), Err(Refused::Rate));
}

#[test]
fn a_parked_ask_lives_until_its_ttl_and_is_announced_as_parked() {
    let (mut engine, mut asker) = one_open();
    engine.connected(at(0), Limits::default(), &mut asker);
    assert!(matches!(engine.next_notice(at(0)), Some(Notice::Snapshot(_))));
    engine.park(at(0), &ask_id(0), Duration::from_secs(900), &mut asker).unwrap();
    let Some(Notice::Opened(ask)) = engine.next_notice(at(1000)) else { panic!("announced") };
    assert_eq!((ask.is_parked, ask.left), (true, Some(Duration::from_secs(899))));
    engine.advance(at(60_000), &mut asker);
    assert_eq!(engine.open_asks(), 1);
    engine.advance(at(900_000), &mut asker);
    assert_eq!(record(&engine).0, Outcome::Timeout);
}

#[test]
fn s9_a_snapshot_is_one_instant_and_everything_later_follows_it() {
    let (mut engine, mut asker) = one_open();
    for n in 1..3 {
        engine.open(at(0), new_ask(n), &mut asker).unwrap();
    }
    submit(&mut engine, &mut asker, 2, &skip(0));
    engine.connected(at(10_000), Limits::default(), &mut asker);
    engine.end(at(10_000), &ask_id(0), EndCause::TurnCancelled, &mut asker);
    engine.open(at(10_000), new_ask(3), &mut asker).unwrap();

    let Some(Notice::Snapshot(part)) = engine.next_notice(at(20_000)) else { panic!("snapshot first") };
    assert_eq!((part.seq, part.last), (0, true));
    let open: Vec<_> = part.asks.iter().map(|ask| (&ask.id, ask.left)).collect();
    let left = Some(Duration::from_secs(40));
    assert_eq!(open, [(&ask_id(0), left), (&ask_id(1), left)]);
    assert_eq!(part.settlements.iter().map(|(ask, _)| ask).collect::<Vec<_>>(), [&ask_id(2)]);
    let next: Vec<_> = std::iter::from_fn(|| engine.next_notice(at(20_000)).map(|n| n.receipt())).collect();
    assert_eq!(next, [Receipt::Settled(ask_id(0)), Receipt::Opened(ask_id(3))]);
    assert!(!engine.has_notice());
}

#[test]
fn a_large_snapshot_goes_in_parts_that_fit() {
    let mut engine = Engine::new(Limits { asks_per_second: 1000, ..Limits::default() }, 4_096);
    let asker = &mut Asker::default();
    for n in 0..50 {
        let announcement = Arc::from("x".repeat(1_000));
        engine.open(at(0), NewAsk { announcement, ..new_ask(n) }, asker).unwrap();
    }
    for n in 0..20 {
        engine.end(at(1), &ask_id(n), EndCause::TurnCancelled, asker);
    }
    engine.connected(at(1), Limits::default(), asker);
    let (mut asks, mut settlements, mut seqs) = (0, 0, vec![]);
    while let Some(Notice::Snapshot(part)) = engine.next_notice(at(1)) {
        let bytes: usize = part.asks.iter().map(|ask| ask.announcement.len()).sum();
        assert!(bytes + 512 * part.settlements.len() <= 4_096);
        asks += part.asks.len();
        settlements += part.settlements.len();
        seqs.push(part.seq);
        assert_eq!(part.last, !engine.has_notice());
    }
    assert_eq!((asks, settlements), (30, 20));
    assert_eq!(seqs, (0..seqs.len() as u32).collect::<Vec<_>>());
}

#[test]
fn an_empty_snapshot_is_one_part() {
    let mut engine = engine();
    engine.connected(at(0), Limits::default(), &mut Asker::default());
    let Some(Notice::Snapshot(part)) = engine.next_notice(at(0)) else { panic!("a snapshot") };
    assert!(part.last && part.asks.is_empty() && part.settlements.is_empty());
}

#[test]
fn f7_a_settlement_is_repeated_until_it_is_acknowledged() {
    let (mut engine, mut asker) = one_open();
    engine.end(at(1), &ask_id(0), EndCause::TurnCancelled, &mut asker);
    let mut connect = |engine: &mut Engine| {
        engine.connected(at(2), Limits::default(), &mut asker);
        let Some(Notice::Snapshot(part)) = engine.next_notice(at(2)) else { panic!("snapshot") };
        part.settlements.len()
    };
    assert_eq!(connect(&mut engine), 1);
    engine.acknowledged(&Receipt::Snapshot { last: false });
    engine.disconnected();
    assert!(!engine.is_acknowledged(), "only the last part counts");
    assert_eq!(connect(&mut engine), 1);
    engine.acknowledged(&Receipt::Snapshot { last: true });
    assert!(engine.is_acknowledged());
    assert_eq!(connect(&mut engine), 0);
}

#[test]
fn f7_a_settlement_of_a_live_connection_is_acknowledged_by_itself() {
    let (mut engine, mut asker) = one_open();
    engine.connected(at(0), Limits::default(), &mut asker);
    while engine.next_notice(at(0)).is_some() {}
    engine.advance(at(60_000), &mut asker);
    let notice = engine.next_notice(at(60_000)).unwrap();
    assert!(
        matches!(&notice, Notice::Settled(ask, ended) if *ask == ask_id(0) && ended.outcome == Outcome::Timeout)
    );
    assert!(!engine.is_acknowledged());
    engine.acknowledged(&notice.receipt());
    assert!(engine.is_acknowledged());
}

#[test]
fn an_inbox_that_does_not_read_is_lagging_before_memory_runs_out() {
    let mut engine =
        Engine::new(Limits { open_bytes: 10_000, asks_per_second: 1000, ..Limits::default() }, 4_096);
    let asker = &mut Asker::default();
    engine.connected(at(0), Limits { open_bytes: 10_000, asks_per_second: 1000, ..Limits::default() }, asker);
    let mut opened = 0;
    while !engine.is_lagging() {
        engine
            .open(at(0), NewAsk { announcement: Arc::from("x".repeat(1_000)), ..new_ask(opened) }, asker)
            .unwrap();
        engine.end(at(0), &ask_id(opened), EndCause::TurnCancelled, asker);
        opened += 1;
        assert!(opened < 20, "bounded by open_bytes");
    }
    engine.disconnected();
    assert!(!engine.is_lagging());
}

#[test]
fn next_deadline_is_the_nearest_and_goes_with_its_ask() {
    let (mut engine, mut asker) = one_open();
    let timeout = Some(Duration::from_secs(10));
    engine.open(at(0), NewAsk { timeout, ..new_ask(1) }, &mut asker).unwrap();
    engine.open(at(0), NewAsk { timeout: None, ..new_ask(2) }, &mut asker).unwrap();
    assert_eq!(engine.next_deadline(), Some(at(10_000)));
    submit(&mut engine, &mut asker, 1, &skip(0));
    assert_eq!(engine.next_deadline(), Some(at(60_000)));
    engine.advance(at(u64::MAX), &mut asker);
    assert_eq!(engine.open_asks(), 1, "no deadline, no end");
}
