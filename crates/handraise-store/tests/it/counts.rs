//! What is counted beside the rows: it equals a recount after any life, and it bounds what a holder may have (S37).

use handraise_api::{
    frame::{AnnouncedAsk, SessionUpdated},
    session::{Author, Message, MessageKind, SessionState},
    words::{Outcome, Source},
};
use handraise_store::{
    Announced, Appended, Bounds, Claim, DATABASE_FILE, Full, Hello, Retention, Store, Verdict,
};
use jiff::SignedDuration;
use proptest::prelude::*;
use sqlx::{Connection as _, SqliteConnection};

use crate::support::{Rig, announce, ask, at, block_on, content, ending, instance, rig, submission};

/// Every count that is kept, beside the same counted anew, one line each.
const RECOUNT: &str = "
    SELECT 'instance ' || i.id || ' ' || i.open_asks || ' ' || i.open_bytes,
        'instance ' || i.id || ' ' || COUNT(a.id) || ' ' || COALESCE(SUM(a.bytes), 0)
        FROM instances i LEFT JOIN asks a ON a.instance = i.id AND a.state <> 'settled' GROUP BY i.id
    UNION ALL SELECT 'session ' || e.id || ' ' || e.waiting, 'session ' || e.id || ' ' || COUNT(a.id)
        FROM sessions e LEFT JOIN asks a ON a.session_id = e.id AND a.state <> 'settled' GROUP BY e.id
    UNION ALL SELECT 'token ' || h.token || ' ' || h.instances || ' ' || h.sessions || ' ' || h.asks || ' '
        || h.bytes || ' ' || h.open_asks,
        'token ' || h.token || ' ' || (SELECT COUNT(*) FROM instances WHERE token = h.token) || ' '
        || (SELECT COUNT(*) FROM sessions WHERE token = h.token) || ' '
        || (SELECT COUNT(*) FROM asks WHERE token = h.token) || ' '
        || ((SELECT COALESCE(SUM(bytes), 0) FROM asks WHERE token = h.token)
            + (SELECT COALESCE(SUM(bytes), 0) FROM sessions WHERE token = h.token)) || ' '
        || (SELECT COUNT(*) FROM asks WHERE token = h.token AND state <> 'settled')
        FROM holdings h
    UNION ALL SELECT 'tokens ' || (SELECT COUNT(*) FROM holdings),
        'tokens ' || COUNT(DISTINCT token) FROM (SELECT token FROM instances UNION ALL SELECT token FROM asks
        UNION ALL SELECT token FROM sessions)";

async fn raw(rig: &Rig) -> SqliteConnection {
    let file = rig.dir.path().join(DATABASE_FILE);
    SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap()
}

async fn recount(raw: &mut SqliteConnection) -> (Vec<String>, Vec<String>) {
    let lines: Vec<(String, String)> = sqlx::query_as(RECOUNT).fetch_all(raw).await.unwrap();
    lines.into_iter().unzip()
}

const HOLDERS: usize = 3;
const ASKS: usize = 5;
const SESSIONS: usize = 2;

fn holder(n: usize) -> String {
    format!("h{n}")
}

/// Two holders come with one token.
async fn holders(store: &Store) {
    for n in 0..HOLDERS {
        let token = ["shared", "shared", "own"][n];
        let hello =
            Hello { token, kind: handraise_api::words::HolderKind::Agent, version: "0", host: "host" };
        assert!(store.add_instance(&holder(n), "hash", hello, &Bounds::NONE).await.unwrap());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Open { holder: usize, ask: usize, session: Option<usize>, long: bool },
    Submit { ask: usize, delivered: bool },
    Settle { ask: usize },
    Session { holder: usize, session: usize },
    Message { holder: usize, session: usize, seq: u64, long: usize },
    Lose { holder: usize },
    Prune { asks: bool, transcripts: bool, instances: bool },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..HOLDERS, 0..ASKS, prop::option::of(0..SESSIONS), any::<bool>())
            .prop_map(|(holder, ask, session, long)| Step::Open { holder, ask, session, long }),
        2 => (0..ASKS, any::<bool>()).prop_map(|(ask, delivered)| Step::Submit { ask, delivered }),
        2 => (0..ASKS).prop_map(|ask| Step::Settle { ask }),
        1 => (0..HOLDERS, 0..SESSIONS).prop_map(|(holder, session)| Step::Session { holder, session }),
        2 => (0..HOLDERS, 0..SESSIONS, 0..9u64, prop_oneof![10 => 0..2usize, 1 => Just(2)])
            .prop_map(|(holder, session, seq, long)| Step::Message { holder, session, seq, long }),
        1 => (0..HOLDERS).prop_map(|holder| Step::Lose { holder }),
        1 => any::<[bool; 3]>()
            .prop_map(|[asks, transcripts, instances]| Step::Prune { asks, transcripts, instances }),
        1 => Just(Step::Restart),
    ]
}

fn updated(session: usize) -> SessionUpdated {
    SessionUpdated {
        session_id: format!("s{session}"),
        agent: "agent".into(),
        title: None,
        cwd: None,
        state: SessionState::Running,
        stop_reason: None,
        background: false,
    }
}

fn entry(session: &str, seq: u64, text: String) -> Message {
    Message {
        seq,
        session_id: session.into(),
        at: at(1).wall,
        kind: MessageKind::AgentText,
        author: Author::Agent,
        text,
        continues: false,
        requests_input: false,
        metadata: serde_json::Map::new(),
    }
}

fn asked(id: &str, session: Option<&str>, message: &str) -> AnnouncedAsk {
    AnnouncedAsk { content: content(session, Source::Elicitation, message), ..ask(id, None) }
}

async fn run(steps: Vec<Step>) {
    let mut rig = rig().await;
    holders(&rig.store).await;
    let mut submissions = 0;
    for (n, step) in steps.into_iter().enumerate() {
        let now = at(i64::try_from(n).unwrap() + 1);
        let store = &rig.store;
        match step {
            Step::Open { holder: h, ask, session, long } => {
                if store.instance(&holder(h)).await.unwrap().is_none() {
                    continue;
                }
                let session = session.map(|session| format!("s{session}"));
                let words = if long { "Pick a colour for the whole house" } else { "Pick" };
                announce(store, now, &holder(h), &asked(&format!("a{ask}"), session.as_deref(), words)).await;
            }
            Step::Submit { ask, delivered } => {
                let new = submission(&format!("x{submissions}"), &format!("a{ask}"));
                if store.submit(now, std::slice::from_ref(&new)).await.is_ok() && delivered {
                    let ending = new.delivered(now.wall);
                    store.reply(now, &new.id, Verdict::Delivered, Some(&ending)).await.unwrap();
                }
                submissions += 1;
            }
            Step::Settle { ask } => {
                store.settle(&format!("a{ask}"), None, &ending(now, Outcome::Timeout, None)).await.unwrap();
            }
            Step::Session { holder: h, session } => {
                store
                    .update_session(now, &holder(h), "laptop", &updated(session), &Bounds::NONE)
                    .await
                    .unwrap();
            }
            Step::Message { holder: h, session, seq, long } => {
                // Of three such a transcript loses its oldest.
                let text = "x".repeat([10, 1_000, 6 * 1024 * 1024][long]);
                let entry = entry(&format!("s{session}"), seq, text);
                store.append_message(now, &holder(h), &entry, &Bounds::NONE).await.unwrap();
            }
            Step::Lose { holder: h } => store.lose_instance(now, &holder(h), 1).await.unwrap(),
            Step::Prune { asks, transcripts, instances } => {
                let age = |gone| SignedDuration::from_secs(if gone { 0 } else { 1_000_000 });
                let keep = Retention {
                    asks: age(asks),
                    transcripts: age(transcripts),
                    instances: age(instances),
                    ..Retention::default()
                };
                store.prune(at(i64::try_from(n).unwrap() + 2), keep).await.unwrap();
            }
            Step::Restart => {
                store.close().await;
                rig.store = Store::open(rig.dir.path(), "boot", now).await.unwrap().0;
            }
        }
    }
    let open: i64 = {
        let mut raw = raw(&rig).await;
        let (kept, counted) = recount(&mut raw).await;
        assert_eq!(kept, counted);
        sqlx::query_scalar("SELECT COUNT(*) FROM asks WHERE state <> 'settled'")
            .fetch_one(&mut raw)
            .await
            .unwrap()
    };
    assert_eq!(rig.store.count_open().await.unwrap(), u64::try_from(open).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_counts_equal_a_recount_after_any_life(steps in prop::collection::vec(step(), 1..40)) {
        block_on(run(steps));
    }
}

#[tokio::test]
async fn rows_of_before_the_counts_are_counted_when_the_database_is_opened() {
    let rig = rig().await;
    holders(&rig.store).await;
    for n in 0..4 {
        announce(&rig.store, at(0), "h0", &asked(&format!("a{n}"), Some("s"), "Pick")).await;
    }
    announce(&rig.store, at(0), "h2", &asked("b", None, "Pick")).await;
    rig.store.settle("a1", None, &ending(at(1), Outcome::Timeout, None)).await.unwrap();
    rig.store.close().await;
    let mut connection = raw(&rig).await;
    let triggers: Vec<String> = sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    let mut back = String::from(
        "DROP TABLE holdings; ALTER TABLE instances DROP COLUMN open_asks; \
         ALTER TABLE instances DROP COLUMN open_bytes; ALTER TABLE sessions DROP COLUMN waiting; \
         ALTER TABLE sessions DROP COLUMN token; ALTER TABLE asks DROP COLUMN token; \
         ALTER TABLE sessions DROP COLUMN background; ALTER TABLE asks DROP COLUMN holder_owner; \
         DROP TABLE audit; DROP TABLE records; CREATE INDEX asks_open_by_due ON asks (due) WHERE state = 'open'; \
         CREATE INDEX sessions_by_update ON sessions (updated_at); DROP TABLE outbox; \
         CREATE TABLE outbox (id BIGINT PRIMARY KEY NOT NULL, kind TEXT NOT NULL, ask TEXT NOT NULL, \
         at BIGINT NOT NULL); DELETE FROM _sqlx_migrations WHERE version > 1; ",
    );
    for trigger in &triggers {
        back.insert_str(0, &format!("DROP TRIGGER {trigger}; "));
    }
    sqlx::raw_sql(sqlx::AssertSqlSafe(back)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let store = Store::open(rig.dir.path(), "boot", at(2)).await.unwrap().0;
    assert_eq!(store.count_open().await.unwrap(), 4);
    announce(&store, at(3), "h1", &asked("c", None, "Pick")).await;
    let mut connection = raw(&rig).await;
    let (kept, counted) = recount(&mut connection).await;
    assert_eq!(kept, counted);
    assert!(kept.iter().any(|line| line.starts_with("token shared 2 1 5 ")), "{kept:?}");
}

/// What opening an ask comes to within bounds.
async fn open(store: &Store, holder: &str, asked: &AnnouncedAsk, bounds: &Bounds) -> Option<Full> {
    let content = serde_json::to_string(&asked.content).unwrap();
    let new = handraise_store::Announcement {
        instance: holder,
        kind: handraise_api::words::HolderKind::Agent,
        holder_token: "laptop",
        holder_owner: None,
        ask: asked,
        content: &content,
    };
    match store.announce(at(1), &new, bounds).await.unwrap() {
        Announced::Full(full) => Some(full),
        Announced::Opened { .. } | Announced::Known(_) => None,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn s37_every_bound_of_a_holder_is_named_and_gives_way_again() {
    let size = u64::try_from(serde_json::to_vec(&asked("x", None, "Pick").content).unwrap().len()).unwrap();
    let in_session = size + u64::try_from(r#""s0""#.len() - "null".len()).unwrap();
    let none = Bounds::NONE;
    for (bounds, full) in [
        (Bounds { open_asks: 1, ..none }, Full::OpenAsks),
        (Bounds { open_bytes: 2 * size - 1, ..none }, Full::OpenBytes),
        (Bounds { token_open_asks: 1, ..none }, Full::TokenOpenAsks),
        (Bounds { session_open_asks: 1, ..none }, Full::SessionOpenAsks),
    ] {
        let rig = rig().await;
        let store = &rig.store;
        holders(store).await;
        let session = (full == Full::SessionOpenAsks).then_some("s0");
        assert_eq!(open(store, "h0", &asked("a", session, "Pick"), &bounds).await, None, "{full:?}");
        assert_eq!(open(store, "h0", &asked("b", session, "Pick"), &bounds).await, Some(full));
        // One that is known is not one more.
        assert_eq!(open(store, "h0", &asked("a", session, "Pick"), &bounds).await, None, "{full:?}");
        assert_eq!(store.ask("b").await.unwrap(), None);
        let (same, other) = (open(store, "h1", &asked("c", None, "Pick"), &bounds).await, "h2");
        assert_eq!(same, (full == Full::TokenOpenAsks).then_some(full), "another holder with that token");
        assert_eq!(open(store, other, &asked("d", None, "Pick"), &bounds).await, None, "{full:?}");
        store.settle("a", None, &ending(at(2), Outcome::Timeout, None)).await.unwrap();
        if full != Full::TokenOpenAsks {
            assert_eq!(open(store, "h0", &asked("b", session, "Pick"), &bounds).await, None, "{full:?}");
        }
    }
    for (bounds, full) in [
        (Bounds { token_asks: 1, ..none }, Full::TokenAsks),
        (Bounds { token_bytes: 2 * in_session - 1, ..none }, Full::TokenBytes),
        (Bounds { token_sessions: 1, ..none }, Full::TokenSessions),
    ] {
        let rig = rig().await;
        let store = &rig.store;
        holders(store).await;
        let session = (full == Full::TokenSessions).then_some("s0");
        assert_eq!(open(store, "h0", &asked("a", session, "Pick"), &bounds).await, None, "{full:?}");
        store.settle("a", None, &ending(at(2), Outcome::Timeout, None)).await.unwrap();
        let one_more = asked("b", session.map(|_| "s1"), "Pick");
        assert_eq!(open(store, "h1", &one_more, &bounds).await, Some(full), "ended asks count too");
        let gone = SignedDuration::ZERO;
        let keep = Retention { asks: gone, transcripts: gone, instances: gone, ..Retention::default() };
        store.prune(at(3), keep).await.unwrap();
        assert_eq!(open(store, "h1", &one_more, &bounds).await, None, "{full:?} after forgetting");
    }
}

#[tokio::test]
async fn s37_sessions_transcripts_and_instances_of_a_token_are_bounded() {
    let rig = rig().await;
    let store = &rig.store;
    holders(store).await;
    instance(store, "i").await;
    let bounds = Bounds { token_sessions: 1, token_bytes: 1_000, token_instances: 2, ..Bounds::NONE };
    let say = async |holder: &str, session: usize| {
        store.update_session(at(1), holder, "laptop", &updated(session), &bounds).await.unwrap()
    };
    assert_eq!(say("h0", 0).await, Claim::Ours);
    assert_eq!(say("h0", 0).await, Claim::Ours);
    assert_eq!(say("h1", 1).await, Claim::Full);
    assert_eq!(say("h2", 2).await, Claim::Ours);
    let append = async |seq: u64, text: String| {
        store.append_message(at(1), "h0", &entry("s0", seq, text), &bounds).await.unwrap()
    };
    assert!(matches!(append(0, "x".repeat(700)).await, Appended::New(_)));
    assert_eq!(append(1, "x".repeat(700)).await, Appended::Full);
    assert_eq!(append(0, "x".repeat(700)).await, Appended::Known);
    let hello =
        Hello { token: "shared", kind: handraise_api::words::HolderKind::Agent, version: "0", host: "host" };
    assert!(!store.add_instance("h9", "hash", hello, &bounds).await.unwrap());
    assert_eq!(store.instance("h9").await.unwrap(), None);
    assert!(store.add_instance("h8", "hash", Hello { token: "new", ..hello }, &bounds).await.unwrap());
}
