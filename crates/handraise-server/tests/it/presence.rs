//! What holders are told of who could answer (mcp.md, section 7).

use std::{sync::Arc, time::Duration};

use handraise_api::frame::{Presence, action};
use handraise_transport::clock::ManualClock;
use http::{Method, StatusCode};
use serde_json::json;

use crate::rig::{Events, Holder, Rig, rig_with};

async fn rig(clock: &ManualClock) -> Rig {
    rig_with(|settings| settings.clock = Arc::new(clock.clone())).await
}

/// What a holder that dials now is welcomed with.
async fn welcomed(rig: &Rig) -> (Holder, Presence) {
    let mut holder = rig.dial(&rig.file.holder_token).await;
    let operators = holder.hello(None).await.operators.expect("this inbox says who is there");
    (holder, operators)
}

/// A stream that has begun.
async fn stream(rig: &Rig, token: &str) -> Events {
    let mut events = rig.events(token, None).await;
    events.until("snapshot").await;
    events
}

#[tokio::test]
async fn a_holder_hears_when_the_first_operator_comes_and_the_last_one_leaves() {
    let clock = ManualClock::new();
    let rig = rig(&clock).await;
    let (mut holder, operators) = welcomed(&rig).await;
    assert_eq!(operators, Presence { live: false, ago_ms: None });

    // Nobody who only reads: the first that is heard of is the page.
    let _viewer = stream(&rig, &rig.token("viewer", "wall").await).await;
    let page = stream(&rig, &rig.page("Ada").await).await;
    assert_eq!(holder.hears(action::OPERATORS_PRESENCE).await, json!({"live": true}));
    let watching = stream(&rig, &rig.file.admin_token).await;
    assert_eq!(welcomed(&rig).await.1, Presence { live: true, ago_ms: None });

    // One of two goes: the next that is heard is that the other one went as well.
    drop(page);
    clock.advance(Duration::from_secs(60));
    drop(watching);
    assert_eq!(holder.hears(action::OPERATORS_PRESENCE).await, json!({"live": false, "ago_ms": 0}));
    clock.advance(Duration::from_secs(90));
    // By the clock that runs through suspend and never steps.
    clock.step_wall(jiff::SignedDuration::from_hours(5));
    assert_eq!(welcomed(&rig).await.1, Presence { live: false, ago_ms: Some(90_000) });
}

#[tokio::test]
async fn s34_a_surface_is_gone_within_a_second_of_its_token() {
    let rig = rig(&ManualClock::new()).await;
    let made = rig.post("/tokens", json!({"scope": "operator", "name": "Ada"})).await.json();
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let page = rig.call(Method::POST, "/login", "", Some(json!({"secret": token}))).await.json();
    let _page = stream(&rig, page["token"].as_str().unwrap()).await;
    let _bearer = stream(&rig, token).await;
    let (mut holder, operators) = welcomed(&rig).await;
    assert!(operators.live);
    let revoked = rig.call(Method::DELETE, &format!("/tokens/{id}"), &rig.file.admin_token, None).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    let told = tokio::time::timeout(Duration::from_secs(1), holder.hears(action::OPERATORS_PRESENCE)).await;
    assert_eq!(told.expect("within a second")["live"], false);
}
