//! What time ends: deadlines of silent holders, lost holders; and what a step of the wall clock does not end.

use std::{sync::Arc, time::Duration};

use handraise_api::{frame::action, session::SessionState};
use handraise_transport::clock::ManualClock;
use jiff::SignedDuration;

use crate::rig::{Rig, ask, rig_with, start};

async fn timed() -> (Rig, ManualClock) {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| {
        settings.clock = Arc::new(clock.clone());
        settings.timing.sweep = Duration::from_millis(5);
    })
    .await;
    (rig, clock)
}

#[tokio::test]
async fn a_lost_holders_ask_ends_after_its_deadline_as_timeout_by_the_system() {
    let (rig, clock) = timed().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let mut endless = ask("endless");
    endless.deadline_ms = None;
    holder.opens(&endless).await;
    let (instance, secret) = holder.die();
    rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    // A step of the wall clock ends nothing.
    clock.step_wall(SignedDuration::from_hours(2));
    clock.advance(Duration::from_secs(659));
    rig.until("/asks/a", |ask| ask["state"] == "open").await;
    clock.advance(Duration::from_secs(2));
    let ended = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    let how = &ended["settlement"];
    assert_eq!((&how["outcome"], &how["provenance"]), (&"timeout".into(), &"system".into()));
    assert_eq!((&how["wire"], &how["reason"]), (&serde_json::Value::Null, &"holder_silent".into()));
    assert_eq!(rig.get("/asks/endless").await.json()["state"], "open");
    // The id never reopens, whatever its holder believes.
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(&[ask("a"), endless], &[]).await;
    assert_eq!(rig.get("/asks/a").await.json()["state"], "settled");
    assert_eq!(rig.get("/asks/endless").await.json()["holder_connected"], true);
}

#[tokio::test]
async fn a_lost_holder_is_given_up_after_a_day() {
    let (rig, clock) = timed().await;
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    let mut endless = ask("a");
    endless.deadline_ms = None;
    endless.content.session_id = Some("one".into());
    holder.opens(&endless).await;
    drop(holder.die());
    rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    clock.advance(Duration::from_secs(24 * 60 * 60));
    let ended = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    assert_eq!(ended["settlement"]["outcome"], "withdrawn");
    assert_eq!(ended["settlement"]["reason"], "holder_lost");
    rig.until("/sessions/one", |session| session["state"] == "ended").await;
}

#[tokio::test]
async fn an_answer_whose_verdict_never_comes_ends_as_error_not_as_timeout() {
    let (rig, clock) = timed().await;
    let rig = Arc::new(rig);
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let answering = tokio::spawn({
        let rig = Arc::clone(&rig);
        async move { rig.answer(&rig.file.admin_token, "a", "Postgres").await }
    });
    holder.expect(action::RESPOND).await;
    drop(holder.die());
    assert_eq!(answering.await.unwrap().code(), "VERDICT_UNKNOWN");
    // Past its deadline it may still have been delivered.
    clock.advance(Duration::from_secs(60 * 60));
    rig.until("/asks/a", |ask| ask["holder_connected"] == false && ask["state"] == "sent").await;
    clock.advance(Duration::from_secs(24 * 60 * 60));
    let ended = rig.until("/asks/a", |ask| ask["state"] == "settled").await;
    assert_eq!(
        (&ended["settlement"]["outcome"], &ended["settlement"]["reason"]),
        (&"error".into(), &"verdict_unknown".into())
    );
}

#[tokio::test]
async fn deadlines_go_on_over_a_restart() {
    let (rig, clock) = timed().await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    let dir = rig.stop().await;
    clock.advance(Duration::from_secs(300));
    let again = clock.clone();
    let rig = start(dir, |settings| {
        settings.clock = Arc::new(again);
        settings.timing.sweep = Duration::from_millis(5);
    })
    .await;
    clock.advance(Duration::from_secs(300 + 59));
    rig.until("/asks/a", |ask| ask["state"] == "open").await;
    clock.advance(Duration::from_secs(2));
    rig.until("/asks/a", |ask| ask["state"] == "settled").await;
}

#[tokio::test]
async fn a_silent_holder_connection_is_lost() {
    let rig = rig_with(|settings| settings.timing.holder_silence = Duration::from_millis(100)).await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    // It does not read either, so it answers no ping.
    let lost = rig.until("/asks/a", |ask| ask["holder_connected"] == false).await;
    assert_eq!(lost["state"], "open");
}
