//! Records: once each, in the name of who sent them, of bounded number.

use handraise_api::{
    record::Record,
    words::{Declared, Era, HolderKind, Outcome, Provenance, Rail},
};
use handraise_store::{DATABASE_FILE, NewRecord, RecordFilter, Retention, Store};
use jiff::SignedDuration;

use crate::support::{Rig, announce, ask, at, instance, rig, submission};

fn record(seq: u64, second: i64) -> NewRecord {
    let record = Record {
        declared: Declared::None,
        era: Era::Mrtr,
        rail: Rail::Inbox,
        outcome: Outcome::Accept,
        provenance: Provenance::Human,
        latency_ms: Some(3_000),
        tool: Some("tapOn".into()),
        refusal: None,
        client: Some("some client".into()),
        protocol_version: None,
        reason: None,
        ask: Some("answered".into()),
    };
    NewRecord { seq, at: at(second).wall, record }
}

async fn append(store: &Store, instance: &str, token: &str, records: &[NewRecord]) {
    store.append_records(instance, HolderKind::Gateway, (token, token), records).await.unwrap();
}

async fn all(store: &Store) -> Vec<handraise_api::record::RecordEntry> {
    store.records(&RecordFilter::default(), None, 500).await.unwrap().0
}

#[tokio::test]
async fn s15_a_record_says_human_where_a_person_has_answered_that_ask_of_that_holder_and_nowhere_else() {
    let Rig { store, dir: _dir, .. } = rig().await;
    for holder in ["ours", "theirs"] {
        instance(&store, holder).await;
    }
    announce(&store, at(0), "ours", &ask("answered", None)).await;
    announce(&store, at(0), "ours", &ask("open", None)).await;
    store.submit(at(1), &[submission("s", "answered")]).await.unwrap();
    let of = |seq, ask: Option<&str>| {
        let record = record(seq, 2);
        NewRecord { record: Record { ask: ask.map(Into::into), ..record.record }, ..record }
    };
    let said = [of(1, Some("answered")), of(2, Some("open")), of(3, None), of(4, Some("nowhere"))];
    append(&store, "ours", "token", &said).await;
    append(&store, "theirs", "token", &[of(1, Some("answered"))]).await;
    let kept = all(&store).await;
    let human = |entry: &&handraise_api::record::RecordEntry| entry.record.provenance == Provenance::Human;
    assert_eq!(kept.len(), 5);
    let human: Vec<_> = kept.iter().filter(human).map(|entry| (&*entry.holder.instance, entry.id)).collect();
    assert_eq!(human, [("ours", 1)]);
    assert!(kept.iter().all(|entry| entry.id == 1 || entry.record.provenance == Provenance::Client));
}

#[tokio::test]
async fn s37_a_record_is_kept_once_and_a_flood_of_one_token_buries_nobody_elses() {
    let Rig { store, dir, .. } = rig().await;
    instance(&store, "i").await;
    append(&store, "i", "token", &[record(1, 1), record(2, 2)]).await;
    append(&store, "i", "token", &[record(2, 9), record(3, 3)]).await;
    let seconds = |kept: &[handraise_api::record::RecordEntry]| {
        kept.iter().map(|entry| entry.at.as_second() - at(0).wall.as_second()).collect::<Vec<_>>()
    };
    assert_eq!(seconds(&all(&store).await), [3, 2, 1]);

    // As if there were a hundred thousand.
    let database = rusqlite::Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    database.execute("UPDATE holdings SET records = 100000 WHERE token = 'token'", ()).unwrap();
    append(&store, "i", "token", &[record(4, 4)]).await;
    append(&store, "other", "other", &[record(1, 5)]).await;
    assert_eq!(seconds(&all(&store).await), [5, 4, 3, 2]);
    let counted: i64 = database
        .query_row("SELECT records FROM holdings WHERE token = 'token'", (), |row| row.get(0))
        .unwrap();
    assert_eq!(counted, 100_000);

    let keep = Retention { records: SignedDuration::from_secs(6), ..Retention::default() };
    while store.prune(at(10), keep).await.unwrap() {}
    assert_eq!(seconds(&all(&store).await), [5, 4]);
}
