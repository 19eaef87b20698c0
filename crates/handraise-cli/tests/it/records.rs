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
fn a_report_counts_the_records_of_the_inbox() {
    let home = Home::new();
    assert!(!home.run(&["report", "asks"]).status.success(), "no inbox has run");
    let up = Up::start(&home);
    let runtime = Runtime::new().unwrap();
    let holder = holder(&home, &runtime, &ManualClock::new());
    let ended =
        |outcome, provenance, latency_ms| Record { outcome, provenance, latency_ms, ..record("tapOn") };
    for _ in 0..700 {
        holder.record(ended(Outcome::Decline, Provenance::NotShown, Some(12)));
    }
    for _ in 0..3 {
        holder.record(ended(Outcome::Decline, Provenance::Client, Some(2_000)));
    }
    holder.record(Record { client: None, ..record("other") });
    runtime.block_on(holder.told());
    let report: serde_json::Value =
        serde_json::from_str(&home.stdout(&["report", "asks", "--format", "json"])).unwrap();
    let of = &report["groups"][0];
    assert_eq!((&of["client"], &of["tried"]), (&"some client".into(), &703.into()), "{report}");
    assert_eq!(
        (&of["never_shown"], &of["client_decline"], &of["p50_ms"]),
        (&700.into(), &3.into(), &12.into())
    );
    assert_eq!(report["all"]["not_asked"], 1);
    let csv = home
        .stdout(&["report", "asks", "--by", "tool", "--tool", "other", "--since", "1h", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 3, "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("\"other\",\"1\",\"0\""), "{csv}");
    drop(up);
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
