//! Records over the holder stream, and `GET /records`.

use std::sync::Arc;

use handraise_api::{error::ErrorCode, frame::action};
use handraise_transport::clock::ManualClock;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::rig::{Holder, Rig, rig, rig_with};

fn record(seq: u64, more: &Value) -> Value {
    let mut record = json!({"seq": seq, "declared": "form", "era": "push", "rail": "form", "outcome": "decline",
        "provenance": "client", "latencyMs": 1200, "tool": "tapOn", "client": "some client"});
    record.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    record
}

/// Appends records, which must be taken.
async fn append(holder: &mut Holder, records: &[Value]) {
    let taken = holder.request(action::RECORDS_APPEND, &json!({"records": records})).await;
    assert!(taken.error.is_none(), "{:?}", taken.error);
}

/// The tools of the records that a query yields.
async fn tools(rig: &Rig, query: &str) -> Vec<String> {
    let list = rig.get(&format!("/records{query}")).await;
    assert_eq!(list.status, StatusCode::OK, "{}", list.json());
    let records = list.json()["records"].as_array().cloned().unwrap();
    records.iter().map(|record| record["tool"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn s9_records_are_kept_in_the_name_of_who_sends_them_and_say_nothing_else() {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| settings.clock = Arc::new(clock.clone())).await;
    let mut holder = rig.dial(&rig.token("holder", "laptop").await).await;
    holder.hello(None).await;
    holder.snapshot(&[], &[]).await;
    // What is no field of a record is not kept, and nobody speaks for another.
    let forged = json!({"ago_ms": 90_000, "holder": {"kind": "agent", "token": "other", "instance": "x"}, "id": 77,
        "token": "other", "arguments": {"password": "hunter2"}, "provenance": "human", "protocolVersion": "v".repeat(500)});
    append(&mut holder, &[record(1, &forged)]).await;
    let viewer = rig.token("viewer", "wall").await;
    let list = rig.call(Method::GET, "/records", &viewer, None).await;
    let text = String::from_utf8_lossy(&list.bytes).into_owned();
    assert!(!text.contains("hunter2") && !text.contains("other"), "{text}");
    let expected = json!({"records": [{
        "id": 1, "at": "2025-12-31T23:58:30Z",
        "holder": {"kind": "agent", "token": "laptop", "instance": holder.instance},
        "declared": "form", "era": "push", "rail": "form", "outcome": "decline", "provenance": "client",
        "latencyMs": 1200, "tool": "tapOn", "client": "some client", "protocolVersion": "v".repeat(128),
    }], "next_cursor": null});
    assert_eq!(list.json(), expected);
}

#[tokio::test]
async fn records_are_filtered_and_paged_the_latest_first() {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| settings.clock = Arc::new(clock.clone())).await;
    let mut holder = rig.holder().await;
    let all: Vec<Value> = [
        json!({"tool": "a", "ago_ms": 4000, "era": "acp", "client": "one"}),
        json!({"tool": "b", "ago_ms": 3000, "rail": "inbox", "refusal": "ambiguous"}),
        json!({"tool": "c", "ago_ms": 2000, "outcome": "accept", "client": "one"}),
        json!({"tool": "d", "ago_ms": 1000, "provenance": "not_shown", "declared": "none"}),
    ]
    .iter()
    .zip(1..)
    .map(|(more, seq)| record(seq, more))
    .collect();
    append(&mut holder, &all).await;
    for (query, wanted) in [
        ("", &["d", "c", "b", "a"][..]),
        ("?client=one", &["c", "a"]),
        ("?client=one&era=acp", &["a"]),
        ("?rail=inbox", &["b"]),
        ("?refusal=ambiguous", &["b"]),
        ("?outcome=accept", &["c"]),
        ("?provenance=not_shown", &["d"]),
        ("?declared=none", &["d"]),
        ("?tool=c", &["c"]),
        ("?token=nobody", &[]),
        ("?since=2025-12-31T23:59:57Z&until=2025-12-31T23:59:59Z", &["c", "b"]),
    ] {
        assert_eq!(tools(&rig, query).await, wanted, "{query}");
    }
    let page = rig.get("/records?limit=3").await.json();
    assert_eq!(page["records"].as_array().unwrap().len(), 3);
    let rest = format!("?limit=3&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(tools(&rig, &rest).await, ["a"]);
    assert_eq!(rig.get("/records?limit=4").await.json()["next_cursor"], Value::Null);
    for bad in ["?era=later", "?cursor=x", "?since=yesterday", "?limit=0", "?who=me"] {
        assert_eq!(rig.get(&format!("/records{bad}")).await.status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn s37_what_is_too_much_or_makes_no_sense_is_counted_and_keeps_nothing_else_out() {
    let clock = ManualClock::new();
    let rig = rig_with(|settings| settings.clock = Arc::new(clock.clone())).await;
    let mut holder = rig.holder().await;
    let strange = json!({"seq": 2, "era": "of a later version"});
    let payload = json!({"records": [record(1, &json!({})), strange, record(3, &json!({}))], "dropped": 5});
    assert!(holder.request(action::RECORDS_APPEND, &payload).await.error.is_none());
    // The same again, as after a connection that broke before the word that they came.
    append(&mut holder, &[record(1, &json!({})), record(3, &json!({}))]).await;
    assert_eq!(tools(&rig, "").await.len(), 2);
    let many: Vec<Value> = (10..75).map(|seq| record(seq, &json!({}))).collect();
    let refused = holder.request(action::RECORDS_APPEND, &json!({"records": many})).await;
    assert_eq!(refused.error.unwrap().code, ErrorCode::BadRequest);

    // Ten thousand at once are taken, and no more until time passes. The same ones: nothing is written again.
    let batch: Vec<Value> = (100..164).map(|seq| record(seq, &json!({}))).collect();
    let mut taken = 0;
    let refused = loop {
        match holder.request(action::RECORDS_APPEND, &json!({"records": batch})).await.error {
            None => taken += 64,
            Some(error) => break error,
        }
    };
    assert_eq!(refused.code, ErrorCode::LimitExceeded);
    assert!((9_900..=10_000).contains(&taken), "{taken}");
    clock.advance(std::time::Duration::from_secs(1));
    append(&mut holder, &batch).await;
    let metrics = rig.get("/!/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.bytes).into_owned();
    assert!(metrics.contains("handraise_records_dropped_total 70\n"), "{metrics}");
    assert!(metrics.contains("handraise_refused_total{what=\"holder_records\"} 1\n"), "{metrics}");
    assert!(metrics.contains(&format!("handraise_records_total {}\n", 4 + taken + 64)), "{metrics}");
}

#[tokio::test]
async fn records_outlive_the_inbox() {
    let first = rig().await;
    append(&mut first.holder().await, &[record(1, &json!({"tool": "kept"}))]).await;
    let rig = crate::rig::start(first.stop().await, |_| {}).await;
    assert_eq!(tools(&rig, "").await, ["kept"]);
}
