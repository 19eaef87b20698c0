//! The life of asks, submissions, sessions and tokens.

use handraise_api::{
    access::{Scope, Token},
    ask::Settlement,
    frame::{AnnouncedAsk, SessionUpdated},
    session::{Author, Message, MessageKind, PendingAction, SessionState},
    words::{AskState, Outcome, Provenance, Source},
};
use handraise_store::{
    Announced, Appended, Bounds, Claim, DATABASE_FILE, Ending, Filter, Hello, NewSubmission, NewToken,
    NoticeKind, Refusal, Retention, Settled, Verdict,
};
use jiff::{SignedDuration, Timestamp};

use crate::support::{Rig, announce, ask, at, content, ending, instance, rig, submission};

async fn with_ask(id: &str) -> Rig {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    announce(&rig.store, at(0), "i", &ask(id, Some(60_000))).await;
    rig
}

#[tokio::test]
async fn ac60_the_holders_id_is_kept_verbatim() {
    let Rig { store, dir: _dir, .. } = with_ask("0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e").await;
    let (ask, instance) = store.ask("0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e").await.unwrap().unwrap();
    assert_eq!((ask.state, instance.as_str()), (AskState::Open, "i"));
    assert_eq!(ask.deadline, Some(at(60).wall));
}

#[tokio::test]
async fn ac12f_equal_questions_are_two_asks() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    let second = announce(&store, at(0), "i", &ask("b", Some(60_000))).await;
    assert!(matches!(second, Announced::Opened { .. }), "{second:?}");
    store.submit(at(1), &[submission("s", "a")]).await.unwrap();
    let won = store.submission("s").await.unwrap().unwrap();
    store.reply(at(1), "s", Verdict::Delivered, Some(&Ending::delivered(&won, at(1).wall))).await.unwrap();
    assert_eq!(store.ask("a").await.unwrap().unwrap().0.state, AskState::Settled);
    assert_eq!(store.ask("b").await.unwrap().unwrap().0.state, AskState::Open);
}

#[tokio::test]
async fn an_ask_is_settled_once_and_the_first_ending_stands() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    let first = store.settle("a", Some("i"), &ending(at(1), Outcome::Timeout, None)).await.unwrap();
    assert!(matches!(first, Settled::Now(_)), "{first:?}");
    let second = store.settle("a", Some("i"), &ending(at(2), Outcome::Cancel, None)).await.unwrap();
    let Settled::Already(ask) = second else { panic!("{second:?}") };
    assert_eq!(ask.settlement.unwrap().outcome, Outcome::Timeout);
    let unknown = store.settle("b", None, &ending(at(2), Outcome::Cancel, None)).await.unwrap();
    assert_eq!(unknown, Settled::Unknown);
}

#[tokio::test]
async fn of_64_racing_endings_one_wins() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    let racers = (0..64).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut ending = ending(at(1), Outcome::Accept, None);
            ending.reason = Some(n.to_string());
            matches!(store.settle("a", None, &ending).await.unwrap(), Settled::Now(_)).then_some(n)
        })
    });
    let mut winners = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        winners.extend(racer.await.unwrap());
    }
    let stored = store.ask("a").await.unwrap().unwrap().0.settlement.unwrap();
    assert_eq!(winners.iter().map(|n| Some(n.to_string())).collect::<Vec<_>>(), [stored.reason]);
}

#[tokio::test]
async fn s9_another_instance_changes_nothing() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    instance(&store, "other").await;
    let foreign = announce(&store, at(1), "other", &ask("a", None)).await;
    assert_eq!(foreign, Announced::NotOwner);
    let foreign = store.settle("a", Some("other"), &ending(at(1), Outcome::Cancel, None)).await.unwrap();
    assert_eq!(foreign, Settled::NotOwner);
    let foreign = store.settle_by(at(1), "a", "other", &ending(at(1), Outcome::Cancel, Some("s"))).await;
    assert_eq!(foreign.unwrap(), Settled::NotOwner);
    let ask = store.ask("a").await.unwrap().unwrap().0;
    assert_eq!((ask.state, ask.deadline), (AskState::Open, Some(at(60).wall)));
}

#[tokio::test]
async fn s9_an_open_ask_never_changes_and_a_settled_one_never_reopens() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    assert_eq!(announce(&store, at(1), "i", &ask("a", Some(59_000))).await, Announced::Known(None));
    let mut changed = ask("a", Some(59_000));
    changed.content = content(None, Source::Elicitation, "Drop the database?");
    let refused = announce(&store, at(1), "i", &changed).await;
    let Announced::ContentChanged(ended) = refused else { panic!("{refused:?}") };
    let how = ended.settlement.unwrap();
    assert_eq!((how.outcome, how.reason.as_deref()), (Outcome::Withdrawn, Some("content_changed")));
    let again = announce(&store, at(2), "i", &ask("a", Some(58_000))).await;
    assert!(matches!(again, Announced::Settled(_)), "{again:?}");
}

#[tokio::test]
async fn a_deadline_that_moved_is_taken_up_and_one_that_travelled_is_not() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    assert_eq!(announce(&store, at(1), "i", &ask("a", Some(58_500))).await, Announced::Known(None));
    let moved = announce(&store, at(1), "i", &ask("a", Some(600_000))).await;
    let Announced::Known(Some(known)) = moved else { panic!("{moved:?}") };
    assert_eq!(known.deadline, Some(at(601).wall));
}

#[tokio::test]
async fn s15_who_and_provenance_come_from_the_submission_that_won() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    store.submit(at(1), &[submission("s", "a")]).await.unwrap();
    assert_eq!(store.ask("a").await.unwrap().unwrap().0.state, AskState::Sent);
    let settled = store.settle_by(at(2), "a", "i", &ending(at(2), Outcome::Accept, Some("s"))).await.unwrap();
    let Settled::Now(ask) = settled else { panic!("{settled:?}") };
    let how = ask.settlement.unwrap();
    assert_eq!((how.provenance, how.by.as_deref()), (Provenance::Human, Some("Ada")));
    assert_eq!(how.answers[0].selected_options, ["Red"]);
    assert_eq!(store.submission("s").await.unwrap().unwrap().verdict, Some(Verdict::Delivered));
}

#[tokio::test]
async fn s37_a_deadline_beyond_any_calendar_leaves_every_list_readable() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    for (id, left) in [("b", u64::MAX), ("c", i64::MAX as u64), ("d", 9_000_000_000_000_000)] {
        let far = AnnouncedAsk { parked_ms: Some(left), ..ask(id, Some(left)) };
        let opened = announce(&store, at(0), "i", &far).await;
        assert!(matches!(opened, Announced::Opened { .. }), "{opened:?}");
        assert_eq!(announce(&store, at(1), "i", &far).await, Announced::Known(None));
    }
    assert_eq!(store.open_asks(&Filter::default(), None, 50).await.unwrap().asks.len(), 4);
}

/// How an ask ends whose holder names a submission with this outcome.
async fn claimed(outcome: Outcome, rejected: bool, verdict: Option<Verdict>) -> Settlement {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    store.submit(at(1), &[NewSubmission { rejected, ..submission("s", "a") }]).await.unwrap();
    if let Some(verdict) = verdict {
        store.reply(at(2), "s", verdict, None).await.unwrap();
    }
    let settled = store.settle_by(at(3), "a", "i", &ending(at(3), outcome, Some("s"))).await.unwrap();
    let Settled::Now(ask) = settled else { panic!("{settled:?}") };
    ask.settlement.unwrap()
}

#[tokio::test]
async fn s15_a_skip_is_never_told_as_a_humans_acceptance() {
    for (outcome, rejected, verdict) in [
        (Outcome::Accept, true, None),
        (Outcome::Decline, false, None),
        (Outcome::Timeout, true, None),
        (Outcome::Cancel, false, None),
        (Outcome::Accept, false, Some(Verdict::Invalid)),
        (Outcome::Accept, false, Some(Verdict::NotDelivered)),
        (Outcome::Decline, true, Some(Verdict::Unseen)),
    ] {
        let how = claimed(outcome, rejected, verdict).await;
        assert_eq!((how.provenance, how.by, how.submission_id), (Provenance::System, None, None));
        assert_eq!(how.outcome, outcome);
    }
    assert_eq!(claimed(Outcome::Decline, true, None).await.provenance, Provenance::Human);
    assert_eq!(claimed(Outcome::Accept, false, Some(Verdict::Delivered)).await.provenance, Provenance::Human);
}

#[tokio::test]
async fn s9_an_ask_never_ended_before_it_opened() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    let long_ago = Ending { at: Timestamp::MIN, ..ending(at(1), Outcome::Accept, None) };
    let settled = store.settle_by(at(1), "a", "i", &long_ago).await.unwrap();
    let Settled::Now(ask) = settled else { panic!("{settled:?}") };
    assert_eq!(ask.settlement.unwrap().at, ask.opened_at);
}

#[tokio::test]
async fn s15_a_submission_of_another_ask_lends_nothing() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    announce(&store, at(0), "i", &ask("b", None)).await;
    store.submit(at(1), &[submission("s", "b")]).await.unwrap();
    let settled = store.settle_by(at(2), "a", "i", &ending(at(2), Outcome::Accept, Some("s"))).await.unwrap();
    let Settled::Now(ask) = settled else { panic!("{settled:?}") };
    let how = ask.settlement.unwrap();
    assert_eq!((how.provenance, how.by, how.submission_id), (Provenance::System, None, None));
    assert!(how.answers.is_empty());
}

#[tokio::test]
async fn an_ask_is_open_again_only_when_no_submission_is_unresolved() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    store.submit(at(1), &[submission("s", "a")]).await.unwrap();
    store.submit(at(1), &[submission("t", "a")]).await.unwrap();
    let first = store.reply(at(2), "s", Verdict::Invalid, None).await.unwrap().unwrap();
    assert_eq!(first.ask.state, AskState::Sent);
    let second = store.reply(at(2), "t", Verdict::NotDelivered, None).await.unwrap().unwrap();
    assert_eq!(second.ask.state, AskState::Open);
    assert_eq!(store.reply(at(2), "unknown", Verdict::Invalid, None).await.unwrap(), None);
}

#[tokio::test]
async fn unresolved_submissions_are_those_to_ask_their_holder_about() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    store.submit(at(1), &[submission("s", "a"), submission("t", "a")]).await.unwrap();
    store.reply(at(2), "s", Verdict::Invalid, None).await.unwrap();
    let unresolved = store.unresolved("i", 10).await.unwrap();
    assert_eq!(unresolved.iter().map(|s| s.id.as_str()).collect::<Vec<_>>(), ["t"]);
    assert_eq!(store.unsettled_of("i").await.unwrap(), [("a".to_owned(), true)]);
}

#[tokio::test]
async fn a_batch_is_committed_whole_or_not_at_all() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    let failed = store.submit(at(1), &[submission("s", "a"), submission("t", "nowhere")]).await;
    assert!(failed.is_err());
    assert_eq!(store.submission("s").await.unwrap(), None);
    assert_eq!(store.ask("a").await.unwrap().unwrap().0.state, AskState::Open);
}

#[tokio::test]
async fn the_first_painting_of_a_session_counts() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    assert!(store.seen(at(1), "a", "page", "Ada", "page").await.unwrap());
    assert!(!store.seen(at(9), "a", "page", "Ada", "page").await.unwrap());
    let painted = store.painted("a", "page").await.unwrap().unwrap();
    assert_eq!(painted.boot_millis, i64::try_from(at(1).boot.as_millis()).unwrap());
    assert_eq!(store.painted("a", "other").await.unwrap(), None);
}

#[tokio::test]
async fn what_happened_reads_in_order() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    store.seen(at(1), "a", "page", "Ada", "page").await.unwrap();
    store.lose_instance(at(2), "i", 1).await.unwrap();
    let hello =
        Hello { token: "token", kind: handraise_api::words::HolderKind::Agent, version: "0", host: "h" };
    assert_eq!(store.resume_instance(at(3), "i", hello).await.unwrap(), Some(2));
    store.submit(at(4), &[submission("s", "a")]).await.unwrap();
    store.settle_by(at(5), "a", "i", &ending(at(5), Outcome::Accept, Some("s"))).await.unwrap();
    store.lose_instance(at(6), "i", 2).await.unwrap();
    let (_, events, _) = store.ask_detail("a").await.unwrap().unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["opened", "seen", "disconnected", "reconnected", "submitted", "verdict", "settled"]);
    assert!(events.iter().all(|event| event.detail.as_deref() != Some("Red")));
}

#[tokio::test]
async fn f9_one_notification_per_ask_and_one_withdrawal() {
    let Rig { store, dir: _dir, .. } = with_ask("a").await;
    announce(&store, at(1), "i", &ask("a", Some(59_000))).await;
    store.settle("a", None, &ending(at(2), Outcome::Timeout, None)).await.unwrap();
    store.settle("a", None, &ending(at(3), Outcome::Timeout, None)).await.unwrap();
    let notices = store.notices(0, 10).await.unwrap();
    let shown: Vec<_> = notices.iter().map(|notice| (notice.kind, notice.about.as_str())).collect();
    assert_eq!(shown, [(NoticeKind::Requested, "a"), (NoticeKind::Withdrawn, "a")]);
    let asks: Vec<_> =
        notices.iter().map(|notice| notice.ask.as_ref().map(|(ask, _)| ask.id.as_str())).collect();
    assert_eq!(asks, [Some("a"), None], "one that takes a notification back only names its ask");
    assert_eq!(store.notices(notices[0].id, 10).await.unwrap(), notices[1..]);
    store.sent(notices[0].id).await.unwrap();
    assert_eq!(store.notices(0, 10).await.unwrap(), notices[1..]);
}

fn updated(session: &str, state: SessionState) -> SessionUpdated {
    SessionUpdated {
        session_id: session.into(),
        agent: "claude-acp".into(),
        title: None,
        cwd: Some("/src".into()),
        state,
        stop_reason: None,
        background: false,
    }
}

#[tokio::test]
async fn ac08_an_opened_ask_is_a_transcript_entry_and_the_sessions_pending_action() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    store
        .update_session(at(0), "i", "laptop", &updated("one", SessionState::Running), &Bounds::NONE)
        .await
        .unwrap();
    let mut asked = ask("a", None);
    asked.content = content(Some("one"), Source::Elicitation, "Pick");
    let opened = announce(&store, at(1), "i", &asked).await;
    let Announced::Opened { message: Some(entry), .. } = opened else { panic!("{opened:?}") };
    assert_eq!((entry.kind, entry.author), (MessageKind::ClarificationRequest, Author::Agent));
    assert!(entry.requests_input);
    assert_eq!(entry.metadata["pending_id"], "a");
    assert_eq!(store.messages("one", 0, 10).await.unwrap(), [*entry]);
    let (session, _) = store.session("one").await.unwrap().unwrap();
    assert_eq!((session.pending_action, session.waiting), (Some(PendingAction::Clarification), 1));
    store.settle("a", None, &ending(at(2), Outcome::Cancel, None)).await.unwrap();
    let (session, _) = store.session("one").await.unwrap().unwrap();
    assert_eq!((session.pending_action, session.waiting), (None, 0));
}

#[tokio::test]
async fn d3_pending_action_holds_until_the_last_ask_ended() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    for id in ["a", "b"] {
        let mut asked = ask(id, None);
        asked.content = content(Some("one"), Source::Elicitation, "Pick");
        announce(&store, at(1), "i", &asked).await;
    }
    store.settle("b", None, &ending(at(2), Outcome::Cancel, None)).await.unwrap();
    let (session, _) = store.session("one").await.unwrap().unwrap();
    assert_eq!((session.pending_action, session.waiting), (Some(PendingAction::Clarification), 1));
}

#[tokio::test]
async fn s9_a_session_belongs_to_one_instance() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    instance(&store, "other").await;
    let ours =
        store.update_session(at(0), "i", "laptop", &updated("one", SessionState::Idle), &Bounds::NONE).await;
    assert_eq!(ours.unwrap(), Claim::Ours);
    let foreign =
        store.update_session(at(1), "other", "x", &updated("one", SessionState::Ended), &Bounds::NONE).await;
    assert_eq!(foreign.unwrap(), Claim::NotOwner);
    let mut asked = ask("a", None);
    asked.content = content(Some("one"), Source::Elicitation, "Pick");
    assert_eq!(announce(&store, at(1), "other", &asked).await, Announced::NotOwner);
    let (session, owner) = store.session("one").await.unwrap().unwrap();
    assert_eq!((session.state, owner.as_deref()), (SessionState::Idle, Some("i")));
    assert_eq!(
        store.append_message(at(1), "other", &entry("one", 1, "x"), &Bounds::NONE).await.unwrap(),
        Appended::NotOwner
    );
}

fn entry(session: &str, seq: u64, text: &str) -> Message {
    Message {
        seq,
        session_id: session.into(),
        at: at(1).wall,
        kind: MessageKind::AgentText,
        author: Author::Agent,
        text: text.into(),
        continues: false,
        requests_input: false,
        metadata: serde_json::Map::new(),
    }
}

#[tokio::test]
async fn a_transcript_entry_sent_again_is_known() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    store
        .update_session(at(0), "i", "laptop", &updated("one", SessionState::Running), &Bounds::NONE)
        .await
        .unwrap();
    for (seq, text) in [(0, "first"), (1, "second")] {
        let new = store.append_message(at(1), "i", &entry("one", seq, text), &Bounds::NONE).await.unwrap();
        assert!(matches!(new, Appended::New(_)), "{new:?}");
    }
    assert_eq!(
        store.append_message(at(1), "i", &entry("one", 1, "second"), &Bounds::NONE).await.unwrap(),
        Appended::Known
    );
    let texts: Vec<_> =
        store.messages("one", 0, 10).await.unwrap().into_iter().map(|m| (m.seq, m.text)).collect();
    assert_eq!(texts, [(1, "first".to_owned()), (2, "second".to_owned())]);
    assert_eq!(store.messages("one", 1, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_transcript_over_16_mib_loses_its_oldest_entries() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    store
        .update_session(at(0), "i", "laptop", &updated("one", SessionState::Running), &Bounds::NONE)
        .await
        .unwrap();
    let long = "x".repeat(1024 * 1024);
    for seq in 0..20 {
        store.append_message(at(1), "i", &entry("one", seq, &long), &Bounds::NONE).await.unwrap();
    }
    let kept = store.messages("one", 0, 100).await.unwrap();
    let bytes: usize = kept.iter().map(|message| message.text.len()).sum();
    assert!((14 * 1024 * 1024..=16 * 1024 * 1024).contains(&bytes), "{bytes}");
    assert_eq!(kept.last().unwrap().seq, 20);
    assert!(kept[0].seq > 1);
}

#[tokio::test]
async fn age_prunes_settled_asks_and_idle_transcripts_and_nothing_else() {
    let Rig { store, dir: _dir, .. } = with_ask("open").await;
    announce(&store, at(0), "i", &ask("old", None)).await;
    announce(&store, at(0), "i", &ask("young", None)).await;
    store.submit(at(1), &[submission("s", "old")]).await.unwrap();
    store.settle("old", None, &ending(at(10), Outcome::Timeout, None)).await.unwrap();
    store.settle("young", None, &ending(at(5_000), Outcome::Timeout, None)).await.unwrap();
    store
        .update_session(at(0), "i", "laptop", &updated("idle", SessionState::Ended), &Bounds::NONE)
        .await
        .unwrap();
    store.append_message(at(0), "i", &entry("idle", 0, "bye"), &Bounds::NONE).await.unwrap();
    let keep = Retention {
        asks: SignedDuration::from_secs(1_000),
        transcripts: SignedDuration::from_secs(1_000),
        instances: SignedDuration::from_secs(1_000),
        ..Retention::default()
    };
    assert!(!store.prune(at(5_500), keep).await.unwrap());
    assert_eq!(store.ask("old").await.unwrap(), None);
    assert_eq!(store.submission("s").await.unwrap(), None);
    assert!(store.ask("young").await.unwrap().is_some());
    assert!(store.ask("open").await.unwrap().is_some());
    assert_eq!(store.session("idle").await.unwrap(), None);
    assert!(store.messages("idle", 0, 10).await.unwrap().is_empty());
    assert!(store.instance("i").await.unwrap().is_some());
}

#[tokio::test]
async fn what_was_committed_is_acknowledged_though_its_transcript_cannot_be_shortened() {
    let Rig { store, dir, .. } = rig().await;
    instance(&store, "i").await;
    let running = updated("s", SessionState::Running);
    store.update_session(at(0), "i", "laptop", &running, &Bounds::NONE).await.unwrap();
    let text = "x".repeat(1024 * 1024);
    let append =
        async |seq| store.append_message(at(0), "i", &entry("s", seq, &text), &Bounds::NONE).await.unwrap();
    let held = async || store.messages("s", 0, 100).await.unwrap().len();
    for seq in 0..15 {
        append(seq).await;
    }
    let other = rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    let refuse = "CREATE TRIGGER nothing_goes BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(refuse).unwrap();
    assert!(matches!(append(15).await, Appended::New(_)));
    let mut asked = ask("a", None);
    asked.content.session_id = Some("s".into());
    assert!(matches!(announce(&store, at(0), "i", &asked).await, Announced::Opened { message: Some(_), .. }));
    assert_eq!(held().await, 17);
    // The next entry tries again.
    other.execute_batch("DROP TRIGGER nothing_goes").unwrap();
    append(16).await;
    assert!(held().await < 17);
}

#[tokio::test]
async fn what_is_forgotten_goes_in_small_steps_and_whoever_writes_meanwhile_goes_between() {
    let Rig { store, dir: _dir, .. } = rig().await;
    instance(&store, "i").await;
    for session in ["long", "short"] {
        let ended = updated(session, SessionState::Ended);
        store.update_session(at(0), "i", "laptop", &ended, &Bounds::NONE).await.unwrap();
    }
    for seq in 0..4_000 {
        let Appended::New(_) =
            store.append_message(at(0), "i", &entry("long", seq, "bye"), &Bounds::NONE).await.unwrap()
        else {
            panic!("it is new")
        };
    }
    let keep = Retention { transcripts: SignedDuration::from_secs(1_000), ..Retention::default() };
    let held = async || store.messages("long", 0, 5_000).await.unwrap().len();
    let between = async {
        // As soon as the first entries are gone.
        while held().await == 4_000 {
            tokio::task::yield_now().await;
        }
        let now = updated("young", SessionState::Idle);
        store.update_session(at(2_000), "i", "laptop", &now, &Bounds::NONE).await.unwrap();
        held().await
    };
    let (more, left) = tokio::join!(store.prune(at(2_000), keep), between);
    assert!(!more.unwrap());
    assert!(left > 0 && left < 4_000, "the writer was free in the middle: {left}");
    for session in ["long", "short"] {
        assert_eq!(store.session(session).await.unwrap(), None);
    }
    assert!(held().await == 0 && store.session("young").await.unwrap().is_some());
}

#[tokio::test]
async fn s34_a_tokens_page_sessions_end_with_it() {
    let Rig { store, dir: _dir, .. } = rig().await;
    let token = |id: &str, parent: Option<&str>| NewToken {
        token: Token {
            id: id.into(),
            name: "Ada".into(),
            scope: Scope::Operator,
            owner: None,
            created_at: at(0).wall,
            expires_at: parent.map(|_| at(100).wall),
            page_session: parent.is_some(),
        },
        hash: format!("hash of {id}"),
        parent: parent.map(Into::into),
    };
    store.add_token(&token("t", None)).await.unwrap();
    store.add_token(&token("page", Some("t"))).await.unwrap();
    store.add_token(&token("other", None)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 3);
    assert!(store.delete_token("t").await.unwrap());
    assert!(!store.delete_token("t").await.unwrap());
    let left: Vec<_> = store.tokens().await.unwrap().into_iter().map(|t| t.token.id).collect();
    assert_eq!(left, ["other"]);
    store.add_token(&token("late", Some("other"))).await.unwrap();
    store.forget_expired_tokens(at(99)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 2);
    store.forget_expired_tokens(at(100)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_flag_is_set_and_taken_back() {
    let Rig { store, dir: _dir, .. } = rig().await;
    store.set_flag("elicitation", Some(false)).await.unwrap();
    store.set_flag("elicitation", Some(true)).await.unwrap();
    assert_eq!(store.flags().await.unwrap().get("elicitation"), Some(&true));
    store.set_flag("elicitation", None).await.unwrap();
    assert!(store.flags().await.unwrap().is_empty());
}

#[tokio::test]
async fn s9_what_was_refused_is_kept_and_a_flood_of_one_token_buries_nobody_elses() {
    let Rig { store, dir: _dir, .. } = rig().await;
    let refusal = |token: &'static str| Refusal {
        what: "not_owner",
        token,
        token_name: "laptop",
        instance: Some("i"),
        about: Some("a"),
    };
    store.refused(at(0), &refusal("quiet")).await.unwrap();
    for second in 1..=1_200 {
        store.refused(at(second), &refusal("loud")).await.unwrap();
    }
    let all = store.refusals(None, 5_000).await.unwrap();
    assert_eq!(all.len(), 1_001);
    let (first, last) = (all.first().unwrap(), all.last().unwrap());
    assert_eq!((first.token.as_str(), first.at), ("loud", at(1_200).wall));
    assert_eq!((last.token.as_str(), last.about.as_deref(), last.id), ("quiet", Some("a"), 1));
    let page = store.refusals(Some(first.id), 2).await.unwrap();
    assert_eq!(page.iter().map(|entry| entry.at).collect::<Vec<_>>(), [at(1_199).wall, at(1_198).wall]);
    // By age they go like everything else.
    let keep = Retention { audit: SignedDuration::from_secs(100), ..Retention::default() };
    while store.prune(at(1_200), keep).await.unwrap() {}
    assert_eq!(store.refusals(None, 5_000).await.unwrap().len(), 101);
}
