//! Records from a holder to an inbox that goes away in between.

use handraise_api::{
    record::Record,
    words::{Declared, Era, Outcome, Provenance, Rail},
};
use handraise_transport::clock::ManualClock;
use tokio::runtime::Runtime;

use crate::{
    presence::holder,
    support::{Home, Up, wait_for},
};

fn record(tool: &str) -> Record {
    Record {
        declared: Declared::Form,
        era: Era::Push,
        rail: Rail::Form,
        outcome: Outcome::NotOffered,
        provenance: Provenance::System,
        latency_ms: None,
        tool: Some(tool.into()),
        refusal: Some("ambiguous_device_target".into()),
        client: Some("some client".into()),
        protocol_version: Some("2025-06-18".into()),
        reason: Some("too-many-candidates".into()),
        ask: None,
    }
}

fn tools(up: &Up) -> Vec<String> {
    let records = up.get("/records?limit=500")["records"].as_array().cloned().unwrap();
    records.iter().map(|record| record["tool"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn records_come_once_each_whatever_becomes_of_the_connection() {
    let home = Home::new();
    let up = Up::start(&home);
    let runtime = Runtime::new().unwrap();
    let holder = holder(&home, &runtime, &ManualClock::new());
    for n in 0..150 {
        holder.record(record(&format!("before-{n}")));
    }
    wait_for("some of them", || (tools(&up).len() >= 64).then_some(()));
    up.stop();
    for n in 0..150 {
        holder.record(record(&format!("during-{n}")));
    }
    let up = Up::start(&home);
    runtime.block_on(holder.told());
    let mut kept = tools(&up);
    assert_eq!((kept.len(), kept.first().unwrap().as_str()), (300, "during-149"));
    kept.sort_unstable();
    kept.dedup();
    assert_eq!((kept.len(), holder.records_dropped()), (300, 0));
    runtime.block_on(holder.shutdown());
}
