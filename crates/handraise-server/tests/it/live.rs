//! Live events: in order, once, resumable, bounded.

use std::time::Duration;

use handraise_api::{session::SessionState, words::Outcome};
use http::{Method, StatusCode};
use serde_json::json;

use crate::rig::{ask, rig, rig_with, settled, start, within};

#[tokio::test]
async fn f9_a_notification_comes_exactly_once_per_ask() {
    let rig = rig().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    assert_eq!(events.until("snapshot").await.data["open"], 0);
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    let mut asked = ask("a");
    asked.content.session_id = Some("one".into());
    holder.opens(&asked).await;
    // Announced again, and again after a reconnect.
    holder.opens(&asked).await;
    let (instance, secret) = holder.die();
    let mut holder = rig.dial(&rig.file.holder_token).await;
    holder.hello(Some((&instance, &secret))).await;
    holder.snapshot(std::slice::from_ref(&asked), &[]).await;
    holder.opens(&ask("last")).await;
    let mut requested = Vec::new();
    while requested.last() != Some(&json!("last")) {
        requested.push(events.until("session.clarification_requested").await.data["id"].clone());
    }
    assert_eq!(requested, ["a", "last"]);
}

#[tokio::test]
async fn ids_rise_and_a_stream_resumes_where_it_stopped() {
    let rig = rig().await;
    let token = &rig.file.admin_token;
    let mut holder = rig.holder().await;
    let mut events = rig.events(token, None).await;
    events.until("snapshot").await;
    holder.opens(&ask("a")).await;
    let first = events.until("ask.opened").await;
    let last = events.until("session.clarification_requested").await;
    assert!(last.id > first.id);
    drop(events);
    holder.opens(&ask("b")).await;
    assert_eq!(holder.settle(&settled("a", Outcome::Timeout, None)).await, None);
    let mut resumed = rig.events(token, Some(&last.id.to_string())).await;
    let mut names = Vec::new();
    while !names.contains(&"ask.settled".to_owned()) {
        let event = resumed.next().await.unwrap();
        assert!(event.id > last.id);
        names.push(event.name);
    }
    assert!(names.contains(&"ask.opened".to_owned()) && !names.contains(&"snapshot".to_owned()), "{names:?}");
    // What is not kept, or was never given out, begins anew.
    for odd in ["1", "18446744073709551615", "x", ""] {
        let mut fresh = rig.events(token, Some(odd)).await;
        assert_eq!(fresh.next().await.unwrap().name, "snapshot", "{odd:?}");
    }
}

#[tokio::test]
async fn f9_a_stream_that_resumes_is_not_notified_of_what_has_ended_meanwhile() {
    let rig = rig().await;
    let token = &rig.file.admin_token;
    let mut holder = rig.holder().await;
    let mut events = rig.events(token, None).await;
    let last = events.until("snapshot").await.id;
    drop(events);
    for id in ["ended", "open"] {
        holder.opens(&ask(id)).await;
    }
    assert_eq!(holder.settle(&settled("ended", Outcome::Timeout, None)).await, None);
    let mut resumed = rig.events(token, Some(&last.to_string())).await;
    let mut told = Vec::new();
    while told.last().is_none_or(|(name, _)| name != "ask.settled") {
        let event = resumed.next().await.unwrap();
        told.push((event.name, event.data["id"].as_str().unwrap_or_default().to_owned()));
    }
    let told: Vec<_> = told.iter().map(|(name, id)| (name.as_str(), id.as_str())).collect();
    assert_eq!(
        told,
        [("ask.opened", "open"), ("session.clarification_requested", "open"), ("ask.settled", "ended")]
    );
}

#[tokio::test]
async fn ids_go_on_rising_after_a_restart() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    holder.opens(&ask("a")).await;
    let last = events.until("session.clarification_requested").await.id;
    let dir = rig.stop().await;
    assert!(events.next().await.is_none());
    let rig = start(dir, |_| {}).await;
    let mut events = rig.events(&rig.file.admin_token, Some(&last.to_string())).await;
    let snapshot = events.next().await.unwrap();
    assert_eq!(snapshot.name, "snapshot");
    assert!(snapshot.id > last);
}

#[tokio::test]
async fn a_stream_that_fell_behind_begins_anew() {
    let rig = rig_with(|settings| settings.caps.kept_events = 3).await;
    let mut holder = rig.holder().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let first = events.until("snapshot").await.id;
    for n in 0..5 {
        holder.opens(&ask(&format!("a{n}"))).await;
    }
    let mut late = rig.events(&rig.file.admin_token, Some(&first.to_string())).await;
    let snapshot = late.next().await.unwrap();
    assert_eq!((snapshot.name.as_str(), &snapshot.data["open"]), ("snapshot", &json!(5)));
}

#[tokio::test]
async fn many_events_come_in_few_frames_and_end_with_the_truth() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    events.until("snapshot").await;
    for n in 0..200 {
        let id = format!("a{n}");
        holder.opens(&ask(&id)).await;
        assert_eq!(holder.settle(&settled(&id, Outcome::Cancel, None)).await, None);
    }
    let mut read = 0;
    within(async {
        loop {
            let event = events.next().await.unwrap();
            read += 1;
            if event.name == "ask.settled" && event.data["id"] == "a199" {
                break;
            }
        }
    })
    .await;
    assert!(read < 600, "{read} of 600 events were sent");
}

#[tokio::test]
async fn a_holder_with_many_asks_comes_and_goes_by_snapshot() {
    let rig = rig().await;
    let mut holder = rig.holder().await;
    let asks: Vec<_> = (0..150).map(|n| ask(&format!("a{n}"))).collect();
    for asked in &asks {
        holder.opens(asked).await;
    }
    let mut events = rig.events(&rig.file.admin_token, None).await;
    assert_eq!(events.until("snapshot").await.data["asks"][0]["holder_connected"], true);
    drop(holder.die());
    loop {
        let snapshot = events.until("snapshot").await;
        if snapshot.data["asks"][0]["holder_connected"] == false {
            assert_eq!(snapshot.data["open"], 150);
            assert_eq!(snapshot.data["asks"].as_array().unwrap().len(), 50);
            break;
        }
    }
}

#[tokio::test]
async fn s37_there_are_only_so_many_streams() {
    let rig = rig_with(|settings| settings.caps.event_streams = 2).await;
    let first = rig.events(&rig.file.admin_token, None).await;
    let _second = rig.events(&rig.file.admin_token, None).await;
    let refused = rig.get("/events").await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "LIMIT_EXCEEDED"));
    assert_eq!(refused.headers["retry-after"], "15");
    drop(first);
    within(async {
        while rig.call(Method::HEAD, "/events", &rig.file.admin_token, None).await.status != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_event_stream_says_what_it_is() {
    let rig = rig().await;
    let head = rig.call(Method::HEAD, "/events", &rig.file.admin_token, None).await;
    assert_eq!(head.headers["content-type"], "text/event-stream");
    assert_eq!(head.headers["cache-control"], "no-store");
}
