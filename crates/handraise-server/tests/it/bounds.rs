//! What one token, one holder or a stranger may take, so that the others are still served (S37).

use std::{sync::Arc, time::Duration};

use handraise_api::{error::ErrorCode, frame::action, session::SessionState, words::Outcome};
use handraise_server::Caps;
use handraise_transport::clock::ManualClock;
use http::{Method, StatusCode};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::rig::{Rig, ask, rig_with, settled, within};

async fn counted(rig: &Rig, what: &str) -> u64 {
    let text = String::from_utf8(rig.get("/!/metrics").await.bytes.to_vec()).unwrap();
    let line = format!("handraise_refused_total{{what=\"{what}\"}} ");
    text.lines().find_map(|known| known.strip_prefix(&line)).unwrap().parse().unwrap()
}

#[tokio::test]
async fn s37_a_token_and_its_pages_have_a_share_of_the_streams() {
    let rig = rig_with(|settings| settings.caps.token_event_streams = 2).await;
    let viewer = rig.token("viewer", "reader").await;
    let page = rig.call(Method::POST, "/login", "", Some(json!({"secret": viewer}))).await.json();
    let page = page["token"].as_str().unwrap();
    let first = rig.events(&viewer, None).await;
    let _second = rig.events(page, None).await;
    for token in [viewer.as_str(), page] {
        let refused = rig.call(Method::GET, "/events", token, None).await;
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (StatusCode::TOO_MANY_REQUESTS, "LIMIT_EXCEEDED")
        );
        assert_eq!(refused.headers["retry-after"], "15");
    }
    assert_eq!(counted(&rig, "token_event_streams").await, 2);
    let mut others = rig.events(&rig.file.admin_token, None).await;
    others.until("snapshot").await;
    drop(first);
    within(async {
        while rig.call(Method::HEAD, "/events", page, None).await.status != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn s37_a_token_has_a_share_of_the_connections_and_hears_when_an_idle_one_is_gone() {
    let rig = rig_with(|settings| settings.caps = Caps { connections: 4, ..Caps::default() }).await;
    let viewer = rig.token("viewer", "reader").await;
    let _streams = [rig.events(&viewer, None).await, rig.events(&viewer, None).await];
    let refused = rig.call(Method::GET, "/asks", &viewer, None).await;
    assert_eq!((refused.status, refused.code().as_str()), (StatusCode::TOO_MANY_REQUESTS, "LIMIT_EXCEEDED"));
    assert_eq!(refused.headers["retry-after"], "30");
    assert_eq!(counted(&rig, "token_connections").await, 1);
}

#[tokio::test]
async fn s37_holders_of_one_token_have_bounded_room_together() {
    let rig = rig_with(|settings| {
        settings.limits.session_open_asks = 2;
        settings.caps.token_open_asks = 3;
        settings.caps.token_asks = 4;
        settings.caps.token_sessions = 1;
        settings.caps.token_instances = 3;
    })
    .await;
    let (mut first, mut second) = (rig.holder().await, rig.holder().await);
    let in_session = |id: &str, session: &str| {
        let mut asked = ask(id);
        asked.content.session_id = Some(session.into());
        asked
    };
    first.opens(&in_session("a", "one")).await;
    first.opens(&in_session("b", "one")).await;
    let refused = first.open(&in_session("c", "one")).await.unwrap();
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert!(refused.message.contains("session has 2 asks open"), "{refused}");
    let refused = second.open(&in_session("c", "two")).await.unwrap();
    assert!(refused.message.contains("1 sessions of this token"), "{refused}");
    let said = json!({"session_id": "two", "agent": "a", "title": null, "cwd": null, "state": "idle", "stop_reason": null});
    let refused = second.request(action::SESSION_UPDATED, &said).await.error.unwrap();
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    second.opens(&ask("c")).await;
    let refused = second.open(&ask("d")).await.unwrap();
    assert!(refused.message.contains("this token have 3 asks open"), "{refused}");
    assert_eq!(first.settle(&settled("a", Outcome::Cancel, None)).await, None);
    second.opens(&ask("d")).await;
    assert_eq!(first.settle(&settled("b", Outcome::Cancel, None)).await, None);
    let refused = second.open(&ask("e")).await.unwrap();
    assert!(refused.message.contains("4 asks of this token are kept"), "{refused}");
    // What is known is heard again all the same, and others are not held up.
    second.opens(&ask("d")).await;
    let other = rig.token("holder", "other").await;
    let mut other = rig.dial(&other).await;
    other.hello(None).await;
    other.opens(&in_session("f", "three")).await;

    let _third = rig.holder().await;
    let refused = rig.dial(&rig.file.holder_token).await.try_hello(None).await.error.unwrap();
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    let counts = ["holder_asks", "token_sessions", "token_asks", "token_instances"];
    let mut found = Vec::new();
    for what in counts {
        found.push(counted(&rig, what).await);
    }
    assert_eq!(found, [1, 2, 2, 1]);
}

#[tokio::test]
async fn s37_transcripts_count_as_what_a_token_keeps() {
    let rig = rig_with(|settings| settings.caps.token_bytes = 2_000).await;
    let mut holder = rig.holder().await;
    holder.session("one", SessionState::Running).await;
    let entry = |seq: u64| {
        json!({"message": {
            "seq": seq, "session_id": "one", "at": "2026-01-01T00:00:00Z", "type": "agent_text", "author": "agent",
            "text": "x".repeat(1_000), "continues": false, "requests_input": false, "metadata": {}
        }})
    };
    assert!(holder.request(action::SESSION_MESSAGE, &entry(0)).await.error.is_none());
    let refused = holder.request(action::SESSION_MESSAGE, &entry(1)).await.error.unwrap();
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    let mut large = ask("a");
    large.content.message = "x".repeat(1_000);
    assert_eq!(holder.open(&large).await.unwrap().code, ErrorCode::LimitExceeded);
    assert_eq!(counted(&rig, "token_bytes").await, 2);
}

#[tokio::test]
async fn s37_the_inbox_counts_itself_how_fast_asks_come() {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| {
        settings.clock = Arc::new(clock.clone());
        settings.limits.open_asks = 2;
        settings.limits.asks_per_second = 1;
    })
    .await;
    let mut holder = rig.holder().await;
    for id in ["a", "b"] {
        holder.opens(&ask(id)).await;
        assert_eq!(holder.settle(&settled(id, Outcome::Cancel, None)).await, None);
    }
    let refused = holder.open(&ask("c")).await.unwrap();
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert_eq!(counted(&rig, "holder_rate").await, 1);
    clock.advance(Duration::from_secs(1));
    holder.opens(&ask("c")).await;
}

/// Whether the other side has closed the connection, which says nothing else.
async fn is_closed(stream: &mut TcpStream) -> bool {
    !matches!(within(stream.read(&mut [0; 64])).await, Ok(1..))
}

#[tokio::test]
async fn s37_connections_that_say_nothing_keep_nobody_out() {
    let rig = rig_with(|settings| {
        settings.caps = Caps { connections: 16, strangers: 4, ..Caps::default() };
    })
    .await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    events.until("snapshot").await;
    let mut holder = rig.holder().await;
    let mut half_open = Vec::new();
    for _ in 0..40 {
        let mut stream = TcpStream::connect(rig.ready.address).await.unwrap();
        stream.write_all(b"GET /api/v1/asks HTTP/1.1\r\nHost: loc").await.unwrap();
        half_open.push(stream);
    }
    // Who sends a request is answered, whoever was there before and is known stays.
    assert_eq!(rig.get("/asks").await.status, StatusCode::OK);
    holder.opens(&ask("a")).await;
    assert_eq!(events.until("ask.opened").await.data["id"], "a");
    assert!(is_closed(&mut half_open[0]).await);
    assert!(counted(&rig, "strangers").await >= 36);
    assert_eq!(counted(&rig, "connections").await, 0);
}

#[tokio::test]
async fn s37_a_connection_has_little_time_for_its_first_request() {
    let rig = rig_with(|settings| settings.timing.first_head = Duration::from_millis(20)).await;
    let mut events = rig.events(&rig.file.admin_token, None).await;
    let mut stream = TcpStream::connect(rig.ready.address).await.unwrap();
    stream.write_all(b"GET /").await.unwrap();
    assert!(is_closed(&mut stream).await);
    events.until("snapshot").await;
    let mut holder = rig.holder().await;
    holder.opens(&ask("a")).await;
    assert_eq!(events.until("ask.opened").await.data["id"], "a", "who has asked stays");
}
