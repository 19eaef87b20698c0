//! Answers: adjudicated once, whatever happens to the stream.

use std::time::Duration;

use handraise_api::{
    error::ErrorCode,
    frame::{
        AskOpened, AskSettled, AsksDeclined, Respond, RespondBatch, RespondPermission, SnapshotPart,
        VerdictQuery, action,
    },
    words::{Outcome, Provenance, WireAction},
};
use handraise_core::{
    AskId, Choice, Source,
    form::{AnswerRules, Form},
};
use handraise_holder::{Delivery, Demands, EndCause, NewAsk};
use serde_json::json;

use crate::inbox::{Asker, Inbox, Listen, accepts, colour, pick, soon, wide_limits};

fn query(ask: &str, submission: &str) -> VerdictQuery {
    VerdictQuery { pending_id: ask.into(), submission_id: submission.into() }
}

#[tokio::test]
async fn ac20b_an_answer_travels_as_a_respond_action_and_is_delivered() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();

    let opened: AskOpened = stream.expect(action::ASK_OPENED).await;
    assert_eq!((opened.ask.id.as_str(), opened.ask.deadline_ms), (id.as_str(), Some(3_300_000)));
    assert_eq!(opened.ask.content.questions[0].choices.len(), 2);

    let verdict = stream.ask(action::RESPOND, &pick(id.as_str(), "s1", "Red")).await;
    assert!(verdict.is_success(), "{verdict:?}");
    assert_eq!(asker.got(), [accepts("Red")]);
    let settled: AskSettled = stream.expect(action::ASK_SETTLED).await;
    assert_eq!((settled.pending_id.as_str(), settled.submission_id.as_deref()), (id.as_str(), Some("s1")));
    assert_eq!(settled.settlement.outcome, Outcome::Accept);
    assert_ne!(settled.settlement.provenance, Provenance::Human, "a holder cannot say human (S15)");
}

#[tokio::test]
async fn ac61_64_submissions_race_one_ask_and_one_is_delivered() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let mut requests = Vec::new();
    for n in 0..64 {
        let value = if n % 2 == 0 { "Red" } else { "Blue" };
        requests.push(stream.request(action::RESPOND, &pick(id.as_str(), &format!("s{n}"), value)).await);
    }
    let mut wins = 0;
    for request in &requests {
        let (verdict, _) = stream.response(request).await;
        if verdict.is_success() {
            wins += 1;
        } else {
            assert_eq!(verdict.winner(), "s0", "the first frame wins");
        }
    }
    assert_eq!((wins, asker.got()), (1, vec![accepts("Red")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_a_deadline_and_a_cancel_race_and_one_is_delivered() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    for round in 0..50 {
        let asker = Asker::default();
        let ask = NewAsk { timeout: Some(Duration::from_secs(1)), ..colour() };
        let id = holder.open(ask, asker.takes()).unwrap();
        let _: AskOpened = stream.expect(action::ASK_OPENED).await;
        let (canceller, clock) = (holder.clone(), inbox.clock.clone());
        let racers = [
            tokio::spawn(async move { canceller.end_session("session-1", EndCause::TurnCancelled) }),
            tokio::spawn(async move { clock.advance(Duration::from_secs(1)) }),
        ];
        let request = stream.request(action::RESPOND, &pick(id.as_str(), "s", "Red")).await;
        let (verdict, mut others) = stream.response(&request).await;
        for racer in racers {
            soon(racer).await.unwrap();
        }
        if others.is_empty() {
            let frame = stream.frame().await.unwrap();
            stream.acknowledge(&frame).await;
            others.push(frame);
        }
        let settled: AskSettled = serde_json::from_str(others[0].payload.as_ref().unwrap().get()).unwrap();
        let expected = match settled.settlement.outcome {
            Outcome::Accept => accepts("Red"),
            Outcome::Timeout => Delivery::Decline,
            Outcome::Cancel => Delivery::Cancel,
            other => panic!("{other:?}"),
        };
        assert_eq!(verdict.is_success(), expected == accepts("Red"), "round {round}");
        assert_eq!(asker.got(), [expected], "round {round}");
    }
}

#[tokio::test]
async fn ac12f_two_equal_asks_are_two_asks() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let (one, two) = (Asker::default(), Asker::default());
    let first = holder.open(colour(), one.takes()).unwrap();
    let second = holder.open(colour(), two.takes()).unwrap();
    assert_ne!(first, second);
    let announced: [AskOpened; 2] =
        [stream.expect(action::ASK_OPENED).await, stream.expect(action::ASK_OPENED).await];
    assert_eq!(announced.map(|opened| opened.ask.id), [first.to_string(), second.to_string()]);
    assert!(stream.ask(action::RESPOND, &pick(first.as_str(), "s1", "Red")).await.is_success());
    assert_eq!((one.got().len(), two.got().len(), holder.open_asks()), (1, 0, 1));
}

#[tokio::test]
async fn ac60_the_holder_mints_ids_of_version_7() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, _stream) = inbox.holder().await;
    let id = holder.open(colour(), |_| true).unwrap();
    assert!(id.as_str().len() == 36 && id.as_str().as_bytes()[14] == b'7', "{id}");
}

#[tokio::test]
async fn f10_invalid_answers_are_explained_and_the_ask_stays_open() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let verdict = stream.ask(action::RESPOND, &pick(id.as_str(), "s1", "Green")).await;
    assert_eq!((verdict.code, verdict.details), (Some(ErrorCode::Invalid), vec!["not_a_choice".to_owned()]));
    assert_eq!((asker.got().len(), holder.open_asks()), (0, 1));
    let again = stream.ask(action::VERDICT, &query(id.as_str(), "s1")).await;
    assert_eq!(again.code, Some(ErrorCode::Invalid));
}

#[tokio::test]
async fn ac64_nobody_answers_and_the_ask_is_declined_and_reported() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    inbox.clock.step_wall(jiff::SignedDuration::from_hours(2));
    assert_eq!(holder.open_asks(), 1, "a step of the wall clock expires nothing");
    inbox.clock.advance(Duration::from_secs(3300));
    let settled: AskSettled = stream.expect(action::ASK_SETTLED).await;
    assert_eq!(settled.pending_id, id.to_string());
    let settlement = settled.settlement;
    assert_eq!(
        (settlement.outcome, settlement.provenance, settlement.wire),
        (Outcome::Timeout, Provenance::System, Some(WireAction::Decline))
    );
    assert_eq!(asker.got(), [Delivery::Decline]);
}

#[tokio::test]
async fn ac15_a_withdrawn_request_is_reported() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    holder.withdraw(&id, EndCause::RequestCancelled);
    let settled: AskSettled = stream.expect(action::ASK_SETTLED).await;
    assert_eq!(settled.settlement.outcome, Outcome::Cancel);
    assert_eq!(asker.got(), [Delivery::Cancel]);
}

#[tokio::test]
async fn an_asking_side_that_is_gone_makes_the_answer_not_found() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let gone = holder.open(colour(), |_| false).unwrap();
    let broken = holder.open(colour(), |_| panic!("a courier that breaks")).unwrap();
    for id in [gone, broken] {
        let request = stream.request(action::RESPOND, &pick(id.as_str(), "s1", "Red")).await;
        let (verdict, _) = stream.response(&request).await;
        assert_eq!(verdict.code, Some(ErrorCode::NotFound));
        let settlement = &verdict.payload["ended"]["settlement"];
        assert_eq!(settlement["outcome"], "withdrawn");
        assert_eq!(settlement["reason"], "agent_disconnected");
        assert!(settlement["wire"].is_null());
    }
}

/// Calls the holder when it goes, as a guard in an asking side may.
struct CallsBack(handraise_holder::Holder);

impl Drop for CallsBack {
    fn drop(&mut self) {
        self.0.end_session("another", EndCause::TurnCancelled);
    }
}

#[tokio::test]
async fn a_courier_that_is_not_needed_goes_after_the_lock() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, _stream) = inbox.holder().await;
    let guard = CallsBack(holder.clone());
    holder
        .open(colour(), move |_| {
            drop(guard);
            true
        })
        .unwrap();
    holder.end_session("session-1", EndCause::AgentDisconnected);
    assert_eq!(holder.open_asks(), 0);
}

fn permission() -> NewAsk {
    let choice =
        |value: &str| Choice { value: value.into(), label: value.into(), description: None, preview: None };
    NewAsk {
        source: Source::Permission,
        form: Form::permission("Run it?", vec![choice("once"), choice("always"), choice("no")]).unwrap(),
        rules: AnswerRules::for_source(Source::Permission),
        single_use: vec!["once".into(), "no".into()],
        ..colour()
    }
}

fn permit(ask: &str, submission: &str, option: Option<&str>) -> RespondPermission {
    RespondPermission {
        pending_id: ask.into(),
        submission_id: submission.into(),
        option_id: option.map(Into::into),
        by: "operator".into(),
        provenance: Provenance::Human,
    }
}

#[tokio::test]
async fn a_permission_has_its_own_action_and_a_skip_is_a_decline() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let (one, two) = (
        holder.open(permission(), asker.takes()).unwrap(),
        holder.open(permission(), asker.takes()).unwrap(),
    );
    let wrong = stream.request(action::RESPOND, &pick(one.as_str(), "s1", "once")).await;
    assert_eq!(stream.response(&wrong).await.0.code, Some(ErrorCode::BadRequest));
    let picked = stream.ask(action::RESPOND_PERMISSION, &permit(one.as_str(), "s1", Some("always"))).await;
    assert!(picked.is_success(), "{picked:?}");
    let request = stream.request(action::RESPOND_PERMISSION, &permit(two.as_str(), "s2", None)).await;
    assert!(stream.response(&request).await.0.is_success());
    let content = serde_json::json!({"permission": "always"}).as_object().cloned().unwrap();
    assert_eq!(asker.got(), [Delivery::Accept(content), Delivery::Decline]);
}

#[tokio::test]
async fn s44_a_batch_is_all_or_none_and_single_use_only() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let ids = [
        holder.open(permission(), asker.takes()).unwrap(),
        holder.open(permission(), asker.takes()).unwrap(),
    ];
    let batch = |second: &str| {
        let mut submissions: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(n, id)| pick(id.as_str(), &format!("s{n}-{second}"), "once"))
            .collect();
        for submission in &mut submissions {
            submission.answers[0].question_id = "permission".into();
        }
        submissions[1].answers[0].selected_options = vec![second.into()];
        RespondBatch { submissions }
    };
    let request = stream.request(action::RESPOND_BATCH, &batch("always")).await;
    let (lasting, _) = stream.response(&request).await;
    assert_eq!((lasting.code, asker.got().len()), (Some(ErrorCode::BadRequest), 0));
    assert!(lasting.message.contains(ids[1].as_str()), "{}", lasting.message);
    assert!(stream.ask(action::RESPOND_BATCH, &batch("no")).await.is_success());
    assert_eq!(asker.got().len(), 2);
}

#[tokio::test]
async fn s15_where_a_person_is_demanded_a_token_declines_alone_and_in_no_batch_either() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let persons = Demands { human: true, ..Demands::default() };
    let confirm = || NewAsk { source: Source::Confirm, ..colour() };
    let one = holder.open_for(confirm(), persons, asker.takes()).unwrap();
    let two = holder.open(confirm(), asker.takes()).unwrap();
    let by = |ask: &AskId, submission: &str, provenance| Respond {
        provenance,
        ..pick(ask.as_str(), submission, "Red")
    };
    let token = Provenance::Client;
    let request = stream.request(action::RESPOND, &by(&one, "s1", token)).await;
    let (refused, _) = stream.response(&request).await;
    assert_eq!(refused.code, Some(ErrorCode::BadRequest));
    assert!(refused.message.contains("a person"), "{}", refused.message);
    let submissions = vec![by(&two, "s2", token), by(&one, "s3", token)];
    let batch = stream.ask(action::RESPOND_BATCH, &RespondBatch { submissions }).await;
    assert_eq!((batch.code, asker.got().len()), (Some(ErrorCode::BadRequest), 0));
    let submissions = vec![by(&two, "s4", token), by(&one, "s5", Provenance::Human)];
    assert!(stream.ask(action::RESPOND_BATCH, &RespondBatch { submissions }).await.is_success());
    assert_eq!(asker.got(), [accepts("Red"), accepts("Red")]);
    let three = holder.open_for(confirm(), persons, asker.takes()).unwrap();
    let skip = Respond { rejected: true, answers: Vec::new(), ..by(&three, "s6", token) };
    assert!(stream.ask(action::RESPOND, &skip).await.is_success());
    assert_eq!(asker.got().last(), Some(&Delivery::Decline));
}

#[tokio::test]
async fn the_stream_is_cut_before_the_answer_was_written() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    stream.cut();

    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let snapshot = stream.snapshot().await;
    assert_eq!(snapshot.asks.iter().map(|ask| ask.id.as_str()).collect::<Vec<_>>(), [id.as_str()]);
    let verdict = stream.ask(action::VERDICT, &query(id.as_str(), "s1")).await;
    assert_eq!(verdict.code, Some(ErrorCode::Unseen));
    let late = stream.ask(action::RESPOND, &pick(id.as_str(), "s1", "Red")).await;
    assert_eq!(late.code, Some(ErrorCode::Unseen), "its operator was told that it did not arrive");
    assert!(stream.ask(action::RESPOND, &pick(id.as_str(), "s2", "Red")).await.is_success());
    assert_eq!(asker.got(), [accepts("Red")]);
}

#[tokio::test]
async fn the_stream_is_cut_after_the_answer_was_written_and_before_its_verdict() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    stream.request(action::RESPOND, &pick(id.as_str(), "s1", "Red")).await;
    // Written; whatever the holder says to it is never read.
    stream.cut();

    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let snapshot = stream.snapshot().await;
    let verdict = stream.ask(action::VERDICT, &query(id.as_str(), "s1")).await;
    if asker.got().is_empty() {
        assert_eq!(verdict.code, Some(ErrorCode::Unseen));
        assert_eq!((snapshot.asks.len(), snapshot.settlements.len()), (1, 0));
    } else {
        assert!(verdict.is_success(), "{verdict:?}");
        assert_eq!(asker.got(), [accepts("Red")]);
        assert_eq!(snapshot.asks.len(), 0);
        assert_eq!(snapshot.settlements[0].submission_id.as_deref(), Some("s1"));
    }
}

#[tokio::test]
async fn f7_a_settlement_is_repeated_until_acknowledged_and_then_never_again() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let id = holder.open(colour(), asker.takes()).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    let request = stream.request(action::RESPOND, &pick(id.as_str(), "s1", "Red")).await;
    let response = stream.frame().await.unwrap();
    assert_eq!(response.id.as_deref(), Some(request.as_str()));
    let (_, settled): (_, AskSettled) = stream.expect_unacknowledged(action::ASK_SETTLED).await;
    assert_eq!(settled.submission_id.as_deref(), Some("s1"));
    stream.close().await;

    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let again = stream.snapshot().await;
    assert_eq!((again.asks.len(), again.settlements.len()), (0, 1));
    assert_eq!(again.settlements[0].pending_id, id.to_string());
    // Its acknowledgement is known to have arrived once a later request was answered.
    assert!(stream.ask(action::VERDICT, &query(id.as_str(), "s1")).await.is_success());
    stream.cut();

    let mut stream = inbox.next().await;
    stream.welcome(3).await;
    assert_eq!(stream.snapshot().await.settlements.len(), 0);
    assert_eq!(asker.got().len(), 1);
}

#[tokio::test]
async fn an_ask_that_the_inbox_turns_away_is_declined_and_its_asker_hears_the_inboxs_words() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    for (code, read) in [
        ("LIMIT_EXCEEDED", ErrorCode::LimitExceeded),
        ("BAD_REQUEST", ErrorCode::BadRequest),
        ("NOT_OWNER", ErrorCode::NotOwner),
        ("CONTENT_CHANGED", ErrorCode::ContentChanged),
    ] {
        let id = holder.open(colour(), asker.takes()).unwrap();
        let (frame, _): (_, AskOpened) = stream.expect_unacknowledged(action::ASK_OPENED).await;
        stream.refuse(&frame, code).await;
        let (frame, settled): (_, AskSettled) = stream.expect_unacknowledged(action::ASK_SETTLED).await;
        assert_eq!(settled.settlement.reason.as_deref(), Some("inbox_refused"));
        stream.refuse(&frame, "NOT_FOUND").await;
        let refused = holder.settled(&id).unwrap().refused.unwrap();
        assert_eq!((refused.code, refused.message.as_str()), (read, "the script says so"));
    }
    assert_eq!(asker.got(), [Delivery::Decline, Delivery::Decline, Delivery::Decline, Delivery::Decline]);
    soon(holder.shutdown()).await;
}

#[tokio::test]
async fn an_ask_of_a_snapshot_that_the_inbox_turns_away_is_declined_like_any_other() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, stream) = inbox.holder().await;
    let (kept, refused, ended, odd) =
        (Asker::default(), Asker::default(), Asker::default(), Asker::default());
    drop(stream);
    // Opened while nobody is there: the next inbox hears of them by snapshot.
    let ids = [&kept, &refused, &ended, &odd].map(|asker| holder.open(colour(), asker.takes()).unwrap());
    let mut stream = inbox.next().await;
    stream.welcome(2).await;
    let (frame, part): (_, SnapshotPart) = stream.expect_unacknowledged(action::SNAPSHOT).await;
    assert!(part.last && part.asks.len() == 4);
    let why = |id: &AskId, code: &str| json!({"pending_id": id.as_str(), "error": {"code": code, "message": "the script says so"}});
    let payload = json!({"success": true, "refused": [
        why(&ids[1], "LIMIT_EXCEEDED"), why(&ids[2], "NOT_FOUND"), why(&ids[3], "OF_A_LATER_VERSION"), {"pending_id": 7}
    ]});
    stream.respond(&frame, json!({"payload": payload})).await;
    for id in &ids[1..3] {
        let ended: AskSettled = stream.expect(action::ASK_SETTLED).await;
        assert_eq!(
            (&ended.pending_id, ended.settlement.reason.as_deref()),
            (&id.to_string(), Some("inbox_refused"))
        );
        assert_eq!(holder.settled(id).unwrap().refused.unwrap().message, "the script says so");
    }
    assert_eq!((refused.got(), ended.got()), (vec![Delivery::Decline], vec![Delivery::Decline]));
    // The others are open: the part was taken, and of a code that is not known nothing is.
    assert_eq!((holder.settled(&ids[0]), holder.settled(&ids[3])), (None, None));
    assert!(stream.ask(action::RESPOND, &pick(ids[0].as_str(), "s1", "Red")).await.is_success());
    assert_eq!((kept.got().len(), odd.got().len()), (1, 0));
    soon(holder.shutdown()).await;
}

#[tokio::test]
async fn s15_the_asking_side_learns_who_answered_from_the_inbox_and_how_it_ended_otherwise() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let [answered, skipped, expired, withdrawn] =
        [colour(), colour(), NewAsk { timeout: Some(Duration::from_secs(1)), ..colour() }, colour()]
            .map(|ask| holder.open(ask, asker.takes()).unwrap());
    for _ in 0..4 {
        let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    }
    assert_eq!(holder.settled(&answered), None, "it is open");

    let respond = Respond { by: "Ada".into(), ..pick(answered.as_str(), "s1", "Red") };
    assert!(stream.ask(action::RESPOND, &respond).await.is_success());
    // The same submission again, by whoever: the first word on it counts.
    let again = Respond { by: "Eve".into(), provenance: Provenance::Client, ..respond };
    assert!(stream.ask(action::RESPOND, &again).await.is_success());
    let skip = Respond {
        rejected: true,
        reject_reason: "not today".into(),
        by: "tests".into(),
        provenance: Provenance::Client,
        ..pick(skipped.as_str(), "s2", "Red")
    };
    assert!(stream.ask(action::RESPOND, &skip).await.is_success());
    holder.withdraw(&withdrawn, EndCause::RequestCancelled);
    inbox.clock.advance(Duration::from_secs(1));

    let who = |ask| {
        let settled = holder.settled(ask).unwrap();
        let by = settled.answered.as_ref().map(|who| (who.by.clone(), who.reject_reason.clone()));
        (settled.ended.outcome.as_str(), settled.provenance().as_str(), by)
    };
    let by = |name: &str, reason: &str| Some((name.to_owned(), reason.to_owned()));
    assert_eq!(who(&answered), ("accept", "human", by("Ada", "")));
    assert_eq!(who(&skipped), ("decline", "client", by("tests", "not today")));
    assert_eq!(who(&withdrawn), ("cancel", "system", None));
    soon(async {
        while holder.settled(&expired).is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(who(&expired), ("timeout", "system", None));
}

#[tokio::test]
async fn verdicts_are_known_for_the_last_10_000_ended_asks_and_for_an_hour() {
    const ENOUGH: usize = 10_000;
    let mut inbox = Inbox::start(Listen::Socket).await;
    let (holder, mut stream) = inbox.holder().await;
    let asker = Asker::default();
    let first = holder.open(colour(), asker.takes()).unwrap();
    assert!(stream.ask(action::RESPOND, &pick(first.as_str(), "winner", "Red")).await.is_success());
    for _ in 0..ENOUGH / 100 {
        for _ in 0..100 {
            let id = holder.open(colour(), |_| true).unwrap();
            holder.withdraw(&id, EndCause::RequestCancelled);
        }
        // Reads on, so that the holder need not wait for us.
        stream.ask(action::VERDICT, &query(first.as_str(), "winner")).await;
    }
    let knows = async |stream: &mut crate::inbox::Connection| {
        let won = stream.ask(action::VERDICT, &query(first.as_str(), "winner")).await;
        let lost = stream.ask(action::VERDICT, &query(first.as_str(), "loser")).await;
        assert_eq!(lost.code, Some(ErrorCode::NotFound));
        let names_the_winner = lost.payload["ended"]["submission_id"] == "winner";
        assert_eq!(won.is_success(), names_the_winner, "{won:?} {lost:?}");
        names_the_winner
    };
    inbox.clock.advance(Duration::from_secs(3_599));
    holder.withdraw(&holder.open(colour(), |_| true).unwrap(), EndCause::RequestCancelled);
    assert!(knows(&mut stream).await, "for an hour, however many have ended");
    inbox.clock.advance(Duration::from_secs(1));
    holder.withdraw(&holder.open(colour(), |_| true).unwrap(), EndCause::RequestCancelled);
    assert!(!knows(&mut stream).await, "it is old, and not among the last 10,000");
    assert_eq!(asker.got(), [accepts("Red")]);
}

#[tokio::test]
async fn ac18_s37_what_is_declined_is_told_to_the_inbox_in_sums() {
    let mut inbox = Inbox::start(Listen::Socket).await;
    let limits = handraise_api::frame::Limits { asks_per_second: 1, ..wide_limits() };
    let (holder, mut stream) = inbox.holder_with(inbox.settings(), limits).await;
    holder.open(colour(), |_| true).unwrap();
    let _: AskOpened = stream.expect(action::ASK_OPENED).await;
    stream.cut();
    let mut stream = inbox.next().await;
    for _ in 0..1_000 {
        holder.open(colour(), |_| true).unwrap_err();
        holder.declined("url_mode");
    }
    stream.welcome_with(2, limits).await;
    stream.snapshot().await;
    let told: AsksDeclined = stream.expect(action::ASKS_DECLINED).await;
    assert_eq!(
        told.counts.into_iter().collect::<Vec<_>>(),
        [("rate".into(), 1_000), ("url_mode".into(), 1_000)]
    );
    // A holder that goes down tells what it has not told yet.
    holder.declined("no_scope");
    let going = tokio::spawn(holder.shutdown());
    let mut told = Vec::new();
    while let Some(frame) = stream.frame().await {
        stream.acknowledge(&frame).await;
        if frame.action == action::ASKS_DECLINED {
            told.push(frame.payload.unwrap().get().to_owned());
        }
    }
    soon(going).await.unwrap();
    assert_eq!(told, [r#"{"counts":{"no_scope":1}}"#]);
}
