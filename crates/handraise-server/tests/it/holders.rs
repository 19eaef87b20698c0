//! Instances, epochs, snapshots and what a holder may not say (S9; F7; AC-12f, AC-60).

use std::sync::Arc;

use handraise_api::{
    error::ErrorCode,
    frame::{AnnouncedAsk, FrameKind, action},
    session::SessionState,
    words::{Outcome, Provenance, Source},
};
use http::StatusCode;
use serde_json::{Value, json};

use crate::rig::{ask, rig, rig_with, settled, start};

#[tokio::test]
async fn ac60_the_holders_id_and_content_are_kept_verbatim() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let id = "0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e";
    let asked = ask(id);
    holder.opens(&asked).await;
    let shown = rig.get(&format!("/asks/{id}")).await.json();
    assert_eq!(shown["id"], id);
    assert_eq!(shown["digest"], asked.content.digest());
    assert_eq!((&shown["state"], &shown["holder_connected"]), (&json!("open"), &json!(true)));
    assert_eq!(shown["origin"]["holder"], "agent");
    assert_eq!(shown["origin"]["holder_token"], "local");
    // F6: what an answer surface needs to know is there.
    assert_eq!(shown["source"], "elicitation");
    assert_eq!(
        (&shown["allows_partial"], &shown["allows_text_with_selection"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(shown["questions"][0]["kind"], "single");
    assert_eq!(shown["questions"], serde_json::to_value(&asked.content.questions).unwrap());
}

#[tokio::test]
async fn ac12f_equal_questions_are_two_asks() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    holder.opens(&ask("b")).await;
    assert_eq!(holder.settle(&settled("a", Outcome::Accept, None)).await, None);
    assert_eq!(rig.get("/asks/b").await.json()["state"], "open");
    assert_eq!(rig.get("/asks").await.json()["asks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn f7_every_end_that_the_holder_makes_itself_is_known() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    for (id, outcome) in [("t", Outcome::Timeout), ("c", Outcome::Cancel), ("w", Outcome::Withdrawn)] {
        holder.opens(&ask(id)).await;
        let mut ended = settled(id, outcome, None);
        ended.settlement.reason = Some("agent_disconnected".into());
        assert_eq!(holder.settle(&ended).await, None);
        // Repeated until acknowledged: the same again is acknowledged again.
        assert_eq!(holder.settle(&ended).await, None);
        let how = rig.get(&format!("/asks/{id}")).await.json()["settlement"].clone();
        assert_eq!((&how["outcome"], &how["provenance"]), (&json!(outcome.as_str()), &json!("system")));
        assert_eq!(how["reason"], "agent_disconnected");
    }
    let list = rig.get("/asks?state=settled").await.json();
    assert_eq!(list["asks"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn s15_a_holder_never_says_human() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let mut ended = settled("a", Outcome::Accept, None);
    ended.settlement.provenance = Provenance::Human;
    assert_eq!(holder.settle(&ended).await, None);
    let how = rig.get("/asks/a").await.json()["settlement"].clone();
    assert_eq!((&how["provenance"], &how["by"]), (&json!("client"), &Value::Null));
}

#[tokio::test]
async fn s9_another_instance_changes_nothing() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    holder.opens(&ask("a")).await;
    let mut other = rig.holder().await;
    assert_eq!(other.open(&ask("a")).await.unwrap().code, ErrorCode::NotOwner);
    let forged = settled("a", Outcome::Accept, None);
    assert_eq!(other.settle(&forged).await.unwrap().code, ErrorCode::NotOwner);
    let mut in_session = ask("b");
    in_session.content.session_id = Some("one".into());
    assert_eq!(other.open(&in_session).await.unwrap().code, ErrorCode::NotOwner);
    other.snapshot(&[ask("a")], &[settled("a", Outcome::Accept, None)]).await;
    let shown = rig.get("/asks/a").await.json();
    assert_eq!(shown["state"], "open");
    assert_eq!(rig.get("/asks/b").await.status, StatusCode::NOT_FOUND);
    let metrics = String::from_utf8(rig.get("/!/metrics").await.bytes.to_vec()).unwrap();
    assert!(metrics.contains("handraise_refused_total{what=\"not_owner\"} 5"), "{metrics}");
}

#[tokio::test]
async fn s9_an_instance_is_resumed_with_its_secret_and_token_only() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let (instance, secret) = holder.die();
    rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    let other_token = rig.token("holder", "other").await;
    for (token, secret) in [(&rig.file.holder_token, "wrong"), (&other_token, secret.as_str())] {
        let mut thief = rig.dial(token).await;
        let refused = thief.try_hello(Some((&instance, secret))).await;
        assert_eq!(refused.error.unwrap().code, ErrorCode::NotOwner);
        assert!(thief.receive().await.is_none(), "the socket is closed");
    }
    assert_eq!(rig.get("/asks/a").await.json()["holder_connected"], false);
    let mut back = rig.dial(&rig.file.holder_token).await;
    let welcome = back.hello(Some((&instance, &secret))).await;
    assert_eq!((welcome.instance, welcome.epoch, welcome.resume_secret), (instance, 2, None));
    assert_eq!(rig.get("/asks/a").await.json()["holder_connected"], true);
}

#[tokio::test]
async fn s9_a_later_connection_closes_the_earlier_one() {
    let rig = rig().await;
    let mut first = rig.holder().await;
    first.opens(&ask("a")).await;
    let (instance, secret) = (first.instance.clone(), first.secret.clone());
    let mut second = rig.dial(&rig.file.holder_token).await;
    second.hello(Some((&instance, &secret))).await;
    assert!(first.receive().await.is_none());
    second.snapshot(&[ask("a")], &[]).await;
    let shown = rig.get("/asks/a").await.json();
    assert_eq!((&shown["state"], &shown["holder_connected"]), (&json!("open"), &json!(true)));
}

#[tokio::test]
async fn s9_what_an_earlier_connection_still_says_changes_nothing() {
    let rig = rig().await;
    let mut first = rig.holder().await;
    first.opens(&ask("a")).await;
    let mut second = rig.dial(&rig.file.holder_token).await;
    // Said before the later connection is in place, or after it: only what came before counts.
    second.hello(Some((&first.instance, &first.secret))).await;
    let ended = json!(settled("a", Outcome::Cancel, None));
    let late = [(action::ASK_SETTLED, ended), (action::ASK_OPENED, json!({"ask": ask("late")}))];
    for (action, payload) in late {
        first.try_send(FrameKind::Request, "x", action, &payload).await;
    }
    assert!(first.receive().await.is_none());
    second.snapshot(&[ask("a")], &[]).await;
    assert_eq!(rig.get("/asks/a").await.json()["state"], "open");
    assert_eq!(rig.get("/asks/late").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_frame_beyond_8_mib_ends_the_connection_and_changes_nothing() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let mut large = ask("b");
    large.content.message = "x".repeat(handraise_api::frame::MAX_FRAME_BYTES);
    holder.try_send(FrameKind::Request, "x", action::ASK_OPENED, &json!({"ask": large})).await;
    assert!(holder.receive().await.is_none());
    let lost = rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    assert_eq!(lost["state"], "open");
    assert_eq!(rig.get("/asks/b").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn s9_s37_what_a_holder_may_not_say_is_counted() {
    let rig = rig_with(|settings| settings.limits.open_asks = 1).await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    holder.open(&ask("b")).await.unwrap();
    let mut changed = ask("a");
    changed.content.message = "Drop the database?".into();
    holder.open(&changed).await.unwrap();
    let counts = json!({"counts": {"rate": 3, "url_mode": 1, "of a later version": 2}});
    holder.send(FrameKind::Event, "", action::ASKS_DECLINED, &counts).await;
    let mut other = rig.holder().await;
    other.settle(&settled("a", Outcome::Accept, None)).await.unwrap();
    other.send_text("garbage").await;
    assert!(other.receive().await.is_none());
    holder.opens(&ask("c")).await;
    let metrics = String::from_utf8(rig.get("/!/metrics").await.bytes.to_vec()).unwrap();
    for line in [
        "handraise_refused_total{what=\"holder_asks\"} 1",
        "handraise_refused_total{what=\"content_changed\"} 1",
        "handraise_refused_total{what=\"not_owner\"} 1",
        "handraise_refused_total{what=\"holder_frames\"} 1",
        "handraise_asks_declined_total{reason=\"rate\"} 3",
        "handraise_asks_declined_total{reason=\"url_mode\"} 1",
        "handraise_asks_declined_total{reason=\"other\"} 2",
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn a_snapshot_is_taken_without_what_would_be_refused_alone_and_its_holder_hears_which_and_why() {
    let rig = rig_with(|settings| settings.caps.token_open_asks = 2).await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(None).await;
    let mut odd = ask("odd");
    odd.content.session_id = Some("no id".into());
    let part =
        json!({"seq": 0, "last": true, "asks": [ask("a"), odd, ask("b"), ask("c")], "settlements": []});
    let taken = holder.request(action::SNAPSHOT, &part).await;
    assert!(taken.error.is_none());
    let taken: Value = serde_json::from_str(taken.payload.unwrap().get()).unwrap();
    let refused = |at: usize| {
        let one = &taken["refused"][at];
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        (word(&one["pending_id"]), word(&one["error"]["code"]), word(&one["error"]["message"]))
    };
    assert_eq!(taken["success"], true);
    assert_eq!(taken["refused"].as_array().unwrap().len(), 2);
    assert_eq!(refused(0), ("odd".into(), "BAD_REQUEST".into(), "an ask's session_id is no id".into()));
    let (id, code, message) = refused(1);
    assert_eq!((id.as_str(), code.as_str()), ("c", "LIMIT_EXCEEDED"));
    assert!(message.contains("limits.token_open_asks"), "{message}");
    let open = rig.get("/asks").await.json();
    let open: Vec<&str> =
        open["asks"].as_array().unwrap().iter().map(|ask| ask["id"].as_str().unwrap()).collect();
    assert_eq!(open, ["a", "b"]);
}

#[tokio::test]
async fn only_the_last_part_of_a_snapshot_withdraws() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    for id in ["kept", "ended", "gone"] {
        holder.opens(&ask(id)).await;
    }
    let (instance, secret) = holder.die();
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    let part = |seq: u32, last: bool, asks: Value, settlements: Value| json!({"seq": seq, "last": last, "asks": asks, "settlements": settlements});
    let first = part(0, false, json!([ask("kept")]), json!([]));
    assert!(holder.request(action::SNAPSHOT, &first).await.error.is_none());
    assert_eq!(rig.get("/asks/gone").await.json()["state"], "open");
    let skipped = part(2, true, json!([]), json!([]));
    let refused = holder.request(action::SNAPSHOT, &skipped).await;
    assert_eq!(refused.error.unwrap().code, ErrorCode::BadRequest);
    // An ask that opens between two parts need not be in a later one.
    holder.opens(&ask("between")).await;
    let last = part(1, true, json!([]), json!([settled("ended", Outcome::Timeout, None)]));
    assert!(holder.request(action::SNAPSHOT, &last).await.error.is_none());
    for (id, outcome) in
        [("kept", None), ("between", None), ("ended", Some("timeout")), ("gone", Some("withdrawn"))]
    {
        let shown = rig.get(&format!("/asks/{id}")).await.json();
        assert_eq!(shown["settlement"]["outcome"].as_str(), outcome, "{id}");
    }
    assert!(holder.is_quiet());
}

#[tokio::test]
async fn s9_content_never_changes_and_an_ended_id_never_reopens() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    holder.opens(&ask("a")).await;
    let mut changed = ask("a");
    changed.content.message = "Drop the database?".into();
    assert_eq!(holder.open(&changed).await.unwrap().code, ErrorCode::ContentChanged);
    let how = rig.get("/asks/a").await.json()["settlement"].clone();
    assert_eq!((&how["outcome"], &how["reason"]), (&json!("withdrawn"), &json!("content_changed")));
    let again = holder.request(action::ASK_OPENED, &json!({"ask": ask("a")})).await;
    assert_eq!(again.error.unwrap().code, ErrorCode::NotFound);
    let ended: Value = serde_json::from_str(again.payload.unwrap().get()).unwrap();
    assert_eq!(ended["ended"]["settlement"]["outcome"], "withdrawn");
    holder.snapshot(&[ask("a")], &[]).await;
    assert_eq!(rig.get("/asks/a").await.json()["state"], "settled");
}

#[tokio::test]
async fn a_holder_has_a_bounded_number_of_asks_open() {
    let rig = rig_with(|settings| settings.limits.open_asks = 2).await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    holder.opens(&ask("b")).await;
    assert_eq!(holder.open(&ask("c")).await.unwrap().code, ErrorCode::LimitExceeded);
    holder.opens(&ask("b")).await;
    assert_eq!(holder.settle(&settled("a", Outcome::Cancel, None)).await, None);
    holder.opens(&ask("c")).await;
    let mut other = rig.holder().await;
    other.opens(&ask("d")).await;
}

#[tokio::test]
async fn a_holder_has_a_bounded_number_of_bytes_open() {
    let rig = rig_with(|settings| settings.limits.open_bytes = 1_500).await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let mut large = ask("b");
    large.content.message = "x".repeat(1_500);
    assert_eq!(holder.open(&large).await.unwrap().code, ErrorCode::LimitExceeded);
}

#[tokio::test]
async fn what_is_no_frame_ends_the_connection_and_what_is_unknown_does_not() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let unknown = holder.request("asks.dance", &json!({})).await;
    assert_eq!(unknown.error.unwrap().code, ErrorCode::UnknownAction);
    let unreadable = holder.request(action::ASK_OPENED, &json!({"ask": {"id": 7}})).await;
    assert_eq!(unreadable.error.unwrap().code, ErrorCode::BadRequest);
    for id in ["", "a b", &"x".repeat(65)] {
        assert_eq!(holder.open(&ask(id)).await.unwrap().code, ErrorCode::BadRequest, "{id:?}");
    }
    holder.send(FrameKind::Event, "", "something.else", &json!({})).await;
    holder.opens(&ask("a")).await;
    for garbage in ["", "{", "[]", "{\"type\":\"request\"}", "null"] {
        let mut holder = rig.holder().await;
        holder.send_text(garbage).await;
        assert!(holder.receive().await.is_none(), "{garbage:?}");
    }
}

#[tokio::test]
async fn a_conversation_begins_with_a_hello_of_this_protocol() {
    let rig = rig().await;
    let mut early = rig.dial(&rig.file.holder_token).await;
    let refused = early.request(action::ASK_OPENED, &json!({"ask": ask("a")})).await;
    assert_eq!(refused.error.unwrap().code, ErrorCode::BadRequest);
    let mut later = rig.dial(&rig.file.holder_token).await;
    let hello = json!({"protocol": 2, "kind": "agent", "version": "9", "host": "laptop"});
    let refused = later.request(action::HELLO, &hello).await.error.unwrap();
    assert!(refused.message.contains("protocol 1"), "{refused}");
    assert_eq!(rig.get("/asks/a").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_restart_of_the_inbox_keeps_asks_open_and_notifies_nobody_again() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let mut asked = ask("a");
    asked.content.source = Source::Script;
    holder.opens(&asked).await;
    let (instance, secret) = (holder.instance.clone(), holder.secret.clone());
    let dir = rig.stop().await;
    assert!(holder.receive().await.is_none());
    let rig = start(dir, |_| {}).await;
    let shown = rig.get("/asks/a").await.json();
    assert_eq!((&shown["state"], &shown["holder_connected"]), (&json!("open"), &json!(false)));
    let mut events = rig.events(&rig.file.admin_token, None).await;
    events.until("snapshot").await;
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[asked], &[]).await;
    let updated = events.until("ask.updated").await;
    assert_eq!(updated.data["holder_connected"], true);
    // The next notification is that of the next ask.
    holder.opens(&ask("b")).await;
    assert_eq!(events.until("session.clarification_requested").await.data["id"], "b");
}

#[tokio::test]
async fn stored_names_of_holders_are_short() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let mut asked = ask("a");
    asked.server = Some("é".repeat(100));
    holder.opens(&asked).await;
    let server = rig.get("/asks/a").await.json()["origin"]["server"].as_str().unwrap().to_owned();
    assert_eq!(server, "é".repeat(64));
}

#[tokio::test]
async fn s39_a_sessions_directory_is_a_path_of_ordinary_length() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let said = json!({
        "session_id": "s", "agent": "a", "title": null, "cwd": "é".repeat(1_000_000), "state": "idle", "stop_reason": null
    });
    assert!(holder.request(action::SESSION_UPDATED, &said).await.error.is_none());
    assert_eq!(rig.get("/sessions/s").await.json()["cwd"], "é".repeat(2_048));
}

#[tokio::test]
async fn s37_an_ask_is_no_larger_than_a_form_may_be() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let large = |change: &dyn Fn(&mut AnnouncedAsk)| {
        let mut asked = ask("a");
        change(&mut asked);
        asked
    };
    for asked in [
        large(&|ask| ask.content.message = "x".repeat(2 * 1024 * 1024)),
        large(&|ask| ask.content.questions = vec![crate::rig::question("q"); 201]),
        large(&|ask| {
            let choices = &mut ask.content.questions[0].choices;
            *choices = vec![choices[0].clone(); 1_001];
        }),
    ] {
        assert_eq!(holder.open(&asked).await.unwrap().code, ErrorCode::LimitExceeded);
    }
    assert_eq!(rig.get("/asks").await.json()["asks"], json!([]));
    holder.opens(&ask("a")).await;
}

#[tokio::test]
async fn asks_that_come_together_are_each_what_they_would_be_alone_also_with_a_verdict_among_them() {
    let rig = Arc::new(rig().await);
    let token = rig.token("operator", "Ada").await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("open")).await;
    holder.opens(&ask("ended")).await;
    assert_eq!(holder.settle(&settled("ended", Outcome::Cancel, None)).await, None);
    let answering = {
        let (rig, token) = (Arc::clone(&rig), token.clone());
        tokio::spawn(async move { rig.answer(&token, "open", "Postgres").await })
    };
    let (verdict, _) = holder.expect(action::RESPOND).await;
    let mut changed = ask("new-1");
    changed.content.message = "Another question".into();
    let mut nameless = ask("x");
    nameless.id = String::new();
    let asks = [ask("new-1"), ask("ended"), nameless, ask("new-2"), ask("new-1"), changed, ask("new-3")];
    let opened = |n: usize, ask: &AnnouncedAsk| json!({"id": format!("o{n}"), "type": "request", "action": action::ASK_OPENED, "payload": {"ask": ask}});
    // All of it in one write, so that the inbox finds it together.
    for (n, ask) in asks.iter().enumerate() {
        holder.feed(&opened(n, ask).to_string()).await;
    }
    let success =
        json!({"id": verdict, "type": "response", "action": action::RESPOND, "payload": {"success": true}});
    holder.feed(&success.to_string()).await;
    holder.flush().await;
    let mut codes = Vec::new();
    for n in 0..asks.len() {
        let frame = holder.receive().await.unwrap();
        assert_eq!(frame.id, Some(format!("o{n}")), "in their order");
        codes.push(frame.error.map(|error| error.code));
    }
    let (gone, bad, other) = (ErrorCode::NotFound, ErrorCode::BadRequest, ErrorCode::ContentChanged);
    assert_eq!(codes, [None, Some(gone), Some(bad), None, None, Some(other), None]);
    assert_eq!(answering.await.unwrap().status, StatusCode::OK);
    let mut ids: Vec<String> = rig.get("/asks").await.json()["asks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ask| ask["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    assert_eq!(ids, ["new-2", "new-3"]);
    assert_eq!(rig.get("/asks/new-1").await.json()["settlement"]["reason"], "content_changed");
}

#[tokio::test]
async fn asks_that_come_together_are_written_together() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("first")).await;
    let log = rig.dir.path().join("data").join("handraise.db-wal");
    // A transaction ends with a frame of the log that says how large the database is after it.
    let commits = || {
        let log = std::fs::read(&log).unwrap();
        let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
        log[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
    };
    let before = commits();
    for n in 0..8 {
        let opened = json!({"id": format!("o{n}"), "type": "request", "action": action::ASK_OPENED, "payload": {"ask": ask(&format!("new-{n}"))}});
        holder.feed(&opened.to_string()).await;
    }
    holder.flush().await;
    for n in 0..8 {
        let frame = holder.receive().await.unwrap();
        assert_eq!((frame.id, frame.error), (Some(format!("o{n}")), None));
    }
    let written = commits() - before;
    assert!((1..8).contains(&written), "eight asks in {written} transactions");
    assert_eq!(rig.get("/asks").await.json()["asks"].as_array().unwrap().len(), 9);
}
