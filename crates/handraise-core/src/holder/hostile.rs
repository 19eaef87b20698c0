//! Sequences that somebody made up to break the engine: repeats, races with the clock, floods.

use std::{sync::Arc, time::Duration};

use super::{
    tests::{Asker, ask_id, at, engine, new_ask, pick, skip, submission_id, wide},
    *,
};
use crate::{Answer, Outcome, Source, Submission, WireAction, form::Rule};

#[test]
fn ac64_a_timeout_of_zero_opens_and_ends_at_once() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.connected(at(5), wide(), &mut asker);
    assert!(matches!(engine.next_notice(at(5)), Some(Notice::Snapshot(_))));
    engine.open(at(5), NewAsk { timeout: Some(Duration::ZERO), ..new_ask(0) }, &mut asker).unwrap();
    assert_eq!(engine.next_deadline(), Some(at(5)), "the owner is called at once");
    let verdict = engine.submit(at(5), &ask_id(0), &pick(0, "Red"), Route::Elicitation, &mut asker);
    assert!(matches!(verdict, Verdict::Ended(Some(Ended { outcome: Outcome::Timeout, .. }))), "{verdict:?}");
    assert_eq!(asker.got, [(ask_id(0), Some(Delivery::Decline))]);
    let told: Vec<_> =
        std::iter::from_fn(|| engine.next_notice(at(5)).map(|notice| notice.receipt())).collect();
    assert_eq!(told, [Receipt::Opened(ask_id(0)), Receipt::Settled(ask_id(0))]);
}

#[test]
fn ac64_asks_with_one_deadline_all_end_then_and_once() {
    const MANY: usize = 10_000;
    let (mut engine, mut asker) = (engine(), Asker::default());
    for n in 0..MANY {
        engine.open(at(0), new_ask(n), &mut asker).unwrap();
    }
    engine.advance(at(59_999), &mut asker);
    assert_eq!(engine.open_asks(), MANY);
    engine.advance(at(60_000), &mut asker);
    assert_eq!((engine.open_asks(), asker.got.len(), engine.next_deadline()), (0, MANY, None));
    engine.advance(at(60_000), &mut asker);
    assert_eq!(asker.got.len(), MANY);
}

#[test]
fn a_rejection_with_answers_is_a_rejection() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.open(at(0), new_ask(0), &mut asker).unwrap();
    let both = Submission { rejected: true, ..pick(0, "no such choice") };
    assert_eq!(engine.submit(at(1), &ask_id(0), &both, Route::Elicitation, &mut asker), Verdict::Delivered);
    assert_eq!(asker.got, [(ask_id(0), Some(Delivery::Decline))]);
}

#[test]
fn d5_an_ended_ask_is_never_ended_again_by_anything() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.open(at(0), new_ask(0), &mut asker).unwrap();
    engine.submit(at(1), &ask_id(0), &pick(0, "Red"), Route::Elicitation, &mut asker);
    let ended = engine.ended(&ask_id(0)).cloned();
    let same_id_other_words = Submission { id: submission_id(0), ..pick(9, "Blue") };
    assert_eq!(
        engine.submit(at(2), &ask_id(0), &same_id_other_words, Route::Elicitation, &mut asker),
        Verdict::Delivered,
        "it is what won, whatever else now comes under its id"
    );
    for cause in EndCause::ALL {
        assert!(!engine.end(at(3), &ask_id(0), *cause, &mut asker));
    }
    assert_eq!(engine.park(at(3), &ask_id(0), Duration::ZERO, &mut asker), Ok(false));
    assert_eq!(engine.open(at(3), new_ask(0), &mut asker), Err(Refused::KnownId), "an id never reopens");
    engine.shut_down(at(90_000), &mut asker);
    assert_eq!((asker.got.len(), engine.ended(&ask_id(0)).cloned()), (1, ended));
}

#[test]
fn s44_a_batch_that_mixes_sources_delivers_none() {
    for odd in [Source::Elicitation, Source::Tool, Source::Script, Source::Refusal] {
        let (mut engine, mut asker) = (engine(), Asker::default());
        for (n, source) in [Source::Confirm, Source::Permission, odd].into_iter().enumerate() {
            engine
                .open(at(0), NewAsk { source, single_use: vec!["Red".into()], ..new_ask(n) }, &mut asker)
                .unwrap();
        }
        let batch = [0, 1, 2].map(|n| (ask_id(n), pick(n, "Red")));
        let (entry, verdict) = engine.submit_batch(at(1), &batch, &mut asker).unwrap_err();
        assert!(entry == 2 && matches!(verdict, Verdict::Unsuitable(_)), "{odd}: {verdict:?}");
        assert_eq!((engine.open_asks(), asker.got.len()), (3, 0), "{odd}");
        assert_eq!(
            engine.submit_batch(at(1), &batch[..2], &mut asker),
            Ok(()),
            "confirms and permissions mix"
        );
    }
}

#[test]
fn s44_a_batch_in_which_one_ask_is_due_delivers_none() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    for (n, timeout) in [60, 10].into_iter().enumerate() {
        let timeout = Some(Duration::from_secs(timeout));
        engine.open(at(0), NewAsk { source: Source::Confirm, timeout, ..new_ask(n) }, &mut asker).unwrap();
    }
    let batch = [(ask_id(0), pick(0, "Red")), (ask_id(1), skip(1))];
    let (entry, verdict) = engine.submit_batch(at(10_000), &batch, &mut asker).unwrap_err();
    assert!(entry == 1 && matches!(verdict, Verdict::Ended(Some(_))), "{verdict:?}");
    assert_eq!(asker.got, [(ask_id(1), Some(Delivery::Decline))], "by its deadline alone");
}

#[test]
fn f10_a_verdict_always_says_what_is_wrong_and_never_at_great_length() {
    let key = "k".repeat(250_000);
    let schema = serde_json::json!({"properties": {&key: {"type": "array", "items": {"enum": ["a"]}}}});
    let request = crate::form::FormRequest { message: "?", schema: &schema };
    let form = crate::form::map(&request, &crate::form::FormProfile::acp()).unwrap().form;
    let (mut engine, mut asker) = (engine(), Asker::default());
    engine.open(at(0), NewAsk { form, ..new_ask(0) }, &mut asker).unwrap();
    let selected_options = (0..300).map(|n| format!("{n}{}", "x".repeat(500))).collect();
    let wrong = Answer { question_id: key, selected_options, ..Answer::default() };
    let submission = Submission { answers: vec![wrong], ..pick(0, "") };
    let verdict = engine.submit(at(1), &ask_id(0), &submission, Route::Elicitation, &mut asker);
    let Verdict::Invalid(errors) = verdict else { panic!("{verdict:?}") };
    assert_eq!((errors.len(), errors[0].rule), (1, Rule::NotAChoice));
}

#[test]
fn f7_acknowledgements_of_nothing_change_nothing() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    for receipt in [Receipt::Snapshot { last: true }, Receipt::Opened(ask_id(0)), Receipt::Settled(ask_id(0))]
    {
        engine.acknowledged(&receipt);
    }
    engine.open(at(0), new_ask(0), &mut asker).unwrap();
    engine.acknowledged(&Receipt::Settled(ask_id(0)));
    engine.end(at(1), &ask_id(0), EndCause::TurnCancelled, &mut asker);
    assert!(!engine.is_acknowledged(), "it was acknowledged before it happened");
    engine.connected(at(2), wide(), &mut asker);
    engine.disconnected();
    engine.acknowledged(&Receipt::Snapshot { last: true });
    assert!(!engine.is_acknowledged(), "that snapshot went with its connection");
}

#[test]
fn an_ask_as_large_as_a_part_has_a_part_of_its_own_and_a_larger_one_is_refused() {
    let mut engine = Engine::new(wide(), 1_000);
    let asker = &mut Asker::default();
    let of = |n, bytes: usize| NewAsk { announcement: Arc::from("x".repeat(bytes)), ..new_ask(n) };
    assert_eq!(engine.open(at(0), of(0, 1_001), asker), Err(Refused::TooLarge));
    for n in 0..3 {
        engine.open(at(0), of(n, 1_000), asker).unwrap();
    }
    engine.connected(at(0), wide(), asker);
    let parts: Vec<_> = std::iter::from_fn(|| match engine.next_notice(at(0)) {
        Some(Notice::Snapshot(part)) => Some((part.asks.len(), part.last)),
        _ => None,
    })
    .collect();
    assert_eq!(parts, [(1, false), (1, false), (1, true)], "no part is empty");
}

#[test]
fn s37_limits_of_nothing_take_nothing() {
    let none = Limits {
        open_asks: 0,
        open_bytes: 0,
        session_open_asks: 0,
        session_parked_asks: 0,
        asks_per_second: 0,
    };
    let asker = &mut Asker::default();
    for (limits, refused) in [
        (none, Refused::OpenAsks),
        (Limits { open_asks: 1, ..none }, Refused::OpenBytes),
        (Limits { open_bytes: 0, ..wide() }, Refused::OpenBytes),
        (Limits { session_open_asks: 0, ..wide() }, Refused::SessionOpenAsks),
        (Limits { asks_per_second: 0, ..wide() }, Refused::Rate),
    ] {
        let result = Engine::new(limits, 1 << 20).open(at(0), new_ask(0), asker);
        assert_eq!(result, Err(refused), "{limits:?}");
    }
}

#[test]
fn s37_limits_that_shrink_end_nothing_and_let_nothing_in() {
    let (mut engine, mut asker) = (engine(), Asker::default());
    for n in 0..3 {
        engine.open(at(0), new_ask(n), &mut asker).unwrap();
    }
    engine.connected(at(0), Limits { open_asks: 1, ..wide() }, &mut asker);
    assert_eq!(engine.open(at(0), new_ask(3), &mut asker), Err(Refused::OpenAsks));
    assert_eq!((engine.open_asks(), asker.got.len()), (3, 0));
    let wire = Some(WireAction::Accept);
    engine.submit(at(1), &ask_id(0), &pick(0, "Red"), Route::Elicitation, &mut asker);
    assert_eq!(engine.ended(&ask_id(0)).map(|ended| ended.wire), Some(wire));
}
