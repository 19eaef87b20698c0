//! Frames that a holder forges about what is another's: each changes nothing, is counted, and leaves a line in the log
//! (S9).

use std::{collections::BTreeMap, fs::File, sync::Arc};

use handraise_api::{
    frame::{AnnouncedAsk, FrameKind, action},
    session::SessionState,
    words::Outcome,
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::rig::{Holder, Response, Rig, ask, rig, settled};

/// A victim with a session, an open ask in it, an ask that is being answered, and one that has ended.
struct Scene {
    rig: Arc<Rig>,
    victim: Holder,
    /// The victim's request about the answer, which it has not answered.
    respond: String,
    submission: String,
    answering: JoinHandle<Response>,
    log: tempfile::NamedTempFile,
    _subscriber: tracing::subscriber::DefaultGuard,
}

fn in_session(id: &str) -> AnnouncedAsk {
    let mut ask = ask(id);
    ask.content.session_id = Some("one".into());
    ask
}

impl Scene {
    async fn new() -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let file: Arc<File> = log.reopen().unwrap().into();
        let lines = tracing_subscriber::fmt().with_writer(file).with_ansi(false).finish();
        // The runtime of a test is its own thread's, and so is what it logs.
        let subscriber = tracing::subscriber::set_default(lines);
        let rig = Arc::new(rig().await);
        let mut victim = rig.holder().await;
        victim.session("one", SessionState::Running).await;
        for id in ["open", "answered"] {
            victim.opens(&in_session(id)).await;
        }
        victim.opens(&ask("ended")).await;
        assert_eq!(victim.settle(&settled("ended", Outcome::Decline, None)).await, None);
        let answering = tokio::spawn({
            let rig = Arc::clone(&rig);
            async move { rig.answer(&rig.file.admin_token, "answered", "Postgres").await }
        });
        let (respond, payload) = victim.expect(action::RESPOND).await;
        let submission = payload["submission_id"].as_str().unwrap().to_owned();
        Self { rig, victim, respond, submission, answering, log, _subscriber: subscriber }
    }

    /// Everything that is the victim's, as the inbox shows it.
    async fn shown(&self) -> Vec<Value> {
        let mut shown = Vec::new();
        for path in ["/asks", "/asks/open", "/asks/answered", "/asks/ended", "/sessions/one"] {
            shown.push(self.rig.get(path).await.json());
        }
        shown.push(self.rig.get("/sessions/one/messages").await.json());
        shown.push(self.rig.get("/asks/forged").await.json());
        shown
    }

    /// What was refused so far, by word.
    async fn refused(&self) -> BTreeMap<String, u64> {
        let text = String::from_utf8(self.rig.get("/!/metrics").await.bytes.to_vec()).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("handraise_refused_total{what=\"")?.split_once("\"} "))
            .map(|(what, count)| (what.to_owned(), count.parse().unwrap()))
            .collect()
    }

    /// The warnings so far.
    fn warnings(&self) -> usize {
        let text = std::fs::read_to_string(self.log.path()).unwrap();
        text.lines().filter(|line| line.contains(" WARN ") && line.contains("holder.token=")).count()
    }

    /// Waits until something was counted, and says what that is.
    async fn audited(&self, before: &BTreeMap<String, u64>) -> Vec<String> {
        crate::rig::within(async {
            loop {
                let now = self.refused().await;
                let more = now.iter().filter(|(what, count)| before[*what] < **count);
                let more: Vec<String> = more.map(|(what, _)| what.clone()).collect();
                if !more.is_empty() {
                    return more;
                }
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await
    }
}

fn session(state: &str) -> Value {
    json!({"session_id": "one", "agent": "forged", "title": "forged", "cwd": null, "state": state,
        "stop_reason": null, "background": false})
}

fn entry() -> Value {
    json!({"message": {"seq": 99, "session_id": "one", "at": "1970-01-01T00:00:00Z", "type": "agent_text",
        "author": "agent", "text": "forged", "continues": false, "requests_input": false, "metadata": {}}})
}

fn part(asks: &[AnnouncedAsk], settlements: &Value) -> Value {
    json!({"seq": 0, "last": true, "asks": asks, "settlements": settlements})
}

fn accepted(id: &str, submission: Option<&str>) -> Value {
    json!(settled(id, Outcome::Accept, submission))
}

#[tokio::test]
async fn s9_twelve_kinds_of_forged_frames_change_nothing_and_are_audited() {
    let scene = Scene::new().await;
    let (before, submission) = (scene.shown().await, scene.submission.clone());
    let mut changed = in_session("open");
    changed.content.message = "Drop the database?".into();
    let not_owner = "not_owner";
    let frames = [
        (
            "an ask of the victim, opened again",
            not_owner,
            action::ASK_OPENED,
            json!({"ask": in_session("open")}),
        ),
        ("the same with other content", not_owner, action::ASK_OPENED, json!({"ask": changed})),
        (
            "a new ask in the victim's session",
            not_owner,
            action::ASK_OPENED,
            json!({"ask": in_session("forged")}),
        ),
        ("an end of the victim's ask", not_owner, action::ASK_SETTLED, accepted("open", None)),
        (
            "an end by the answer that is on its way",
            not_owner,
            action::ASK_SETTLED,
            accepted("answered", Some(&submission)),
        ),
        ("another end of what has ended", not_owner, action::ASK_SETTLED, accepted("ended", None)),
        (
            "a snapshot with the victim's ask",
            not_owner,
            action::SNAPSHOT,
            part(&[in_session("open")], &json!([])),
        ),
        (
            "a snapshot with an end of it",
            not_owner,
            action::SNAPSHOT,
            part(&[], &json!([settled("open", Outcome::Cancel, None)])),
        ),
        ("the end of the victim's session", not_owner, action::SESSION_UPDATED, session("ended")),
        ("words in the victim's transcript", not_owner, action::SESSION_MESSAGE, entry()),
    ];
    let mut forger = scene.rig.holder().await;
    let mut kinds = 0;
    for (kind, counter, action, payload) in frames {
        let (refused, warnings) = (scene.refused().await, scene.warnings());
        forger.send(FrameKind::Request, &format!("forged-{kinds}"), action, &payload).await;
        assert_eq!(scene.audited(&refused).await, [counter], "{kind}");
        assert!(scene.warnings() > warnings, "{kind}");
        assert_eq!(scene.shown().await, before, "{kind}");
        kinds += 1;
    }
    // The victim's request is known by its id on its own connection only.
    for payload in [json!({"success": true}), json!({"verdict": "UNSEEN"})] {
        let (refused, warnings) = (scene.refused().await, scene.warnings());
        forger.send(FrameKind::Response, &scene.respond, action::RESPOND, &payload).await;
        assert_eq!(scene.audited(&refused).await, ["stray_responses"]);
        assert!(scene.warnings() > warnings);
        assert_eq!(scene.shown().await, before, "{payload}");
        kinds += 1;
    }
    assert_eq!(kinds, 12);
    // Each is a row, with who said it about what, also for those who have not read the log.
    let audit = scene.rig.get("/audit?limit=500").await.json();
    let rows: Vec<&Value> = audit["entries"].as_array().unwrap().iter().rev().collect();
    let whats: Vec<&str> = rows.iter().map(|row| row["what"].as_str().unwrap()).collect();
    assert_eq!(whats, [&[not_owner; 10][..], &["stray_responses"; 2]].concat());
    for row in &rows {
        assert_eq!((&row["token_name"], &row["instance"]), (&json!("local"), &json!(forger.instance)));
    }
    let abouts: Vec<&Value> = rows.iter().map(|row| &row["about"]).collect();
    let (open, one) = (&json!("open"), &json!("one"));
    assert_eq!(abouts[..4], [open, open, &json!("forged"), open]);
    assert_eq!(abouts[8..], [one, one, &Value::Null, &Value::Null]);
    drop(forger);

    // The victim was not disturbed: what it says still counts.
    let Scene { rig, mut victim, respond, submission, answering, .. } = scene;
    victim.succeed(&respond, action::RESPOND).await;
    assert_eq!(victim.settle(&settled("answered", Outcome::Accept, Some(&submission))).await, None);
    assert_eq!(answering.await.unwrap().status, StatusCode::OK);
    assert_eq!(rig.get("/asks/answered").await.json()["settlement"]["outcome"], "accept");
    assert_eq!(victim.settle(&settled("open", Outcome::Cancel, None)).await, None);
    assert_eq!(
        rig.call(Method::GET, "/asks/open", &rig.file.admin_token, None).await.json()["state"],
        "settled"
    );
}

#[tokio::test]
async fn s9_an_instance_that_is_claimed_by_another_is_audited() {
    let scene = Scene::new().await;
    let before = scene.shown().await;
    let (instance, secret) = (scene.victim.instance.clone(), scene.victim.secret.clone());
    let other = scene.rig.token("holder", "other").await;
    for (token, secret) in [(&scene.rig.file.holder_token, "wrong"), (&other, &*secret)] {
        let (refused, warnings) = (scene.refused().await, scene.warnings());
        let mut thief = scene.rig.dial(token).await;
        assert!(thief.try_hello(Some((&instance, secret))).await.error.is_some());
        assert!(scene.audited(&refused).await.contains(&"not_owner".to_owned()));
        assert!(scene.warnings() > warnings);
        assert_eq!(scene.shown().await, before);
        let row = scene.rig.get("/audit?limit=1").await.json()["entries"][0].clone();
        assert_eq!((&row["what"], &row["instance"]), (&json!("not_owner"), &json!(instance)));
    }
    let audit = scene.rig.get("/audit?limit=1").await.json();
    let earlier = scene.rig.get(&format!("/audit?before={}", audit["next_before"])).await.json();
    let names = [&audit, &earlier].map(|page| page["entries"][0]["token_name"].clone());
    assert_eq!(names, ["other", "local"]);
    assert_eq!(earlier["next_before"], Value::Null);
}

#[tokio::test]
async fn s9_what_is_replayed_on_an_earlier_connection_changes_nothing() {
    let Scene { rig, mut victim, respond, submission, answering, .. } = Scene::new().await;
    let mut second = rig.dial(&rig.file.holder_token).await;
    second.hello(Some((&victim.instance, &victim.secret))).await;
    second.snapshot(&[in_session("open"), in_session("answered")], &[]).await;
    for (kind, id, action, payload) in [
        (FrameKind::Request, "x", action::ASK_SETTLED, accepted("open", None)),
        (FrameKind::Response, &*respond, action::RESPOND, json!({"success": true})),
    ] {
        victim.try_send(kind, id, action, &payload).await;
    }
    assert!(victim.receive().await.is_none(), "the earlier connection is closed");
    assert_eq!(rig.get("/asks/open").await.json()["state"], "open");
    // What became of the answer is asked for on the later connection.
    let (id, payload) = second.expect(action::VERDICT).await;
    assert_eq!(payload["submission_id"], submission.as_str());
    second.succeed(&id, action::VERDICT).await;
    answering.await.unwrap();
}
