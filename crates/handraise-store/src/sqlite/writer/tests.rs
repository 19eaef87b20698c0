//! Groups, failures within them, and transactions that nobody ends, on a real file.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
    time::Duration,
};

use sqlx::{
    ConnectOptions as _, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::statement::Sql;

const BUSY: Duration = Duration::from_secs(5);
const ADD: Sql = &["INSERT INTO notes (id, by_whom) VALUES ($1, $2)"];
/// The second fails when there is a note of that name already.
const ADD_TWO: Sql = &[
    "INSERT INTO notes (id, by_whom) VALUES ('first of ' || $1, $2)",
    "INSERT INTO notes (id, by_whom) SELECT $1, $2 WHERE changes() = 1",
];

fn note(sql: Sql, id: &str) -> Statement {
    Statement::new(sql).bind(id).bind("Ada")
}

struct Rig {
    writer: Writer,
    reader: SqliteConnection,
    dir: TempDir,
}

async fn rig() -> Rig {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(dir.path().join("notes.db"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(BUSY);
    let mut connection = options.connect().await.unwrap();
    sqlx::query("CREATE TABLE notes (id TEXT PRIMARY KEY NOT NULL, by_whom TEXT NOT NULL)")
        .execute(&mut connection)
        .await
        .unwrap();
    let own = hot::open(&dir.path().join("notes.db"), "PRAGMA synchronous = NORMAL").unwrap();
    Rig { writer: Writer::new(own, BUSY).unwrap(), reader: connection, dir }
}

impl Rig {
    async fn notes(&mut self) -> Vec<String> {
        sqlx::query_scalar("SELECT id FROM notes ORDER BY id").fetch_all(&mut self.reader).await.unwrap()
    }

    /// Wants all of these at once, while somebody else has the connection.
    async fn want_together(
        &self,
        wanted: &[(Sql, &'static str)],
    ) -> Vec<JoinHandle<Result<Outcome, Failure>>> {
        let begun = Arc::new(AtomicUsize::new(0));
        let held = self.writer.begin().await.unwrap();
        let writes: Vec<_> = wanted
            .iter()
            .map(|&(sql, id)| {
                let (writer, begun) = (self.writer.clone(), Arc::clone(&begun));
                tokio::spawn(async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    writer.write(note(sql, id)).await
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < wanted.len() {
            task::yield_now().await;
        }
        assert!(
            writes.iter().all(|write| !write.is_finished()),
            "nothing is acknowledged before it is committed"
        );
        held.commit().await.unwrap();
        writes
    }
}

/// How many transactions the write-ahead log holds: frames that say how large the database is after them.
fn commits(dir: &Path) -> usize {
    let log = std::fs::read(dir.join("notes.db-wal")).unwrap();
    let page = u32::from_be_bytes(log[8..12].try_into().unwrap()) as usize;
    log[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}

#[tokio::test]
async fn what_waits_is_committed_together_and_acknowledged_afterwards() {
    let mut rig = rig().await;
    let before = commits(rig.dir.path());
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for write in rig.want_together(&names.map(|name| (ADD, name))).await {
        assert_eq!(write.await.unwrap().unwrap().changed(0), 1);
    }
    assert_eq!(commits(rig.dir.path()) - before, 1);
    assert_eq!(rig.notes().await, names);
}

#[tokio::test]
async fn one_that_fails_neither_loses_nor_blocks_the_others_of_its_group() {
    let mut rig = rig().await;
    rig.writer.write(note(ADD, "taken")).await.unwrap();
    let wanted = [(ADD, "a"), (ADD_TWO, "taken"), (ADD_TWO, "b"), (ADD, "taken"), (ADD, "c")];
    let mut failed = Vec::new();
    for (write, (_, name)) in rig.want_together(&wanted).await.into_iter().zip(wanted) {
        match write.await.unwrap() {
            Ok(outcome) => assert_eq!(outcome.changed(0), 1),
            Err(Failure::Written(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                failed.push(name);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(failed, ["taken", "taken"]);
    assert_eq!(rig.notes().await, ["a", "b", "c", "first of b", "taken"], "of what failed nothing is kept");
}

#[tokio::test]
async fn several_of_one_caller_are_one_transaction_in_their_order_and_a_bad_one_fails_alone() {
    let mut rig = rig().await;
    let before = commits(rig.dir.path());
    let all = rig.writer.write_all(vec![note(ADD, "a"), note(ADD_TWO, "b")]).await.unwrap();
    assert!(all.iter().all(|one| one.as_ref().unwrap().changed(0) == 1));
    assert_eq!(commits(rig.dir.path()) - before, 1);
    let some = rig.writer.write_all(vec![note(ADD, "c"), note(ADD, "c"), note(ADD, "d")]).await.unwrap();
    assert_eq!(some.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert!(rig.writer.write_all(Vec::new()).await.unwrap().is_empty());
    assert_eq!(rig.notes().await, ["a", "b", "c", "d", "first of b"]);
    // Behind somebody who has the connection, and given up on: it is written all the same, once.
    let held = rig.writer.begin().await.unwrap();
    let mut given_up = Box::pin(rig.writer.write_all(vec![note(ADD, "e"), note(ADD, "f")]));
    assert!(given_up.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(given_up);
    held.commit().await.unwrap();
    rig.writer.write(note(ADD, "g")).await.unwrap();
    assert_eq!(rig.notes().await, ["a", "b", "c", "d", "e", "f", "first of b", "g"]);
    let too_many = (0..=MOST_WAITING).map(|_| note(ADD, "i")).collect();
    assert!(rig.writer.write_all(too_many).await.is_err());
    assert_eq!(rig.notes().await.len(), 8, "none of them, rather than some");
    let as_many_as_wait = (0..MOST_WAITING).map(|n| note(ADD, &format!("many {n}"))).collect();
    assert!(rig.writer.write_all(as_many_as_wait).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(rig.notes().await.len(), 8 + MOST_WAITING);
    rig.writer.close().await;
    assert!(rig.writer.write_all(vec![note(ADD, "h")]).await.is_err());
}

#[tokio::test]
async fn each_of_a_group_hears_of_its_own_rows() {
    const COUNT: Sql = &[
        "INSERT INTO notes (id, by_whom) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING",
        "SELECT $1, CAST(COUNT(*) AS TEXT) FROM notes",
    ];
    let rig = rig().await;
    let wanted = [(COUNT, "a"), (COUNT, "a"), (COUNT, "b")];
    let mut heard = Vec::new();
    for write in rig.want_together(&wanted).await {
        let mut outcome = write.await.unwrap().unwrap();
        let row: (String, String) = outcome.row(1).unwrap().unwrap();
        heard.push((outcome.changed(0), row.0, row.1));
    }
    let expected = [(1, "a", "1"), (0, "a", "1"), (1, "b", "2")];
    assert_eq!(heard, expected.map(|(changed, id, count)| (changed, id.to_owned(), count.to_owned())));
}

#[tokio::test]
async fn a_transaction_that_was_given_up_leaves_nothing_and_holds_nobody_up() {
    let mut rig = rig().await;
    let mut given_up = rig.writer.begin().await.unwrap();
    given_up.run(note(ADD, "a")).await.unwrap();
    drop(given_up);
    // Nobody of ours writes, and another program may.
    sqlx::query(ADD[0]).bind("b").bind("Grace").execute(&mut rig.reader).await.unwrap();
    let mut given_up = rig.writer.begin().await.unwrap();
    given_up.run(note(ADD, "c")).await.unwrap();
    drop(given_up);
    rig.writer.write(note(ADD, "d")).await.unwrap();
    rig.writer.begin().await.unwrap().commit().await.unwrap();
    assert_eq!(rig.notes().await, ["b", "d"]);
}

#[tokio::test]
async fn who_gives_up_waiting_holds_nobody_up_and_a_closed_writer_says_so() {
    let mut rig = rig().await;
    let held = rig.writer.begin().await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(1), rig.writer.write(note(ADD, "a")));
    assert!(given_up.await.is_err());
    held.commit().await.unwrap();
    rig.writer.write(note(ADD, "b")).await.unwrap();
    assert_eq!(rig.notes().await, ["a", "b"]);
    rig.writer.close().await;
    let late = rig.writer.write(note(ADD, "c")).await;
    assert!(matches!(late, Err(Failure::Driver(sqlx::Error::PoolClosed))), "{late:?}");
    assert!(matches!(rig.writer.begin().await, Err(Failure::Driver(sqlx::Error::PoolClosed))));
}

#[tokio::test]
async fn while_another_program_has_the_file_locked_writers_wait_and_nobodys_thread_stands_still() {
    let mut rig = rig().await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut rig.reader).await.unwrap();
    let writer = rig.writer.clone();
    let write = tokio::spawn(async move { writer.write(note(ADD, "a")).await });
    let writer = rig.writer.clone();
    let aside = tokio::spawn(async move { writer.write_aside(note(ADD, "b")).await });
    let writer = rig.writer.clone();
    let begun = tokio::spawn(async move { writer.begin().await?.commit().await });
    // This runtime has one thread: it would not come to this if that stood still.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!write.is_finished() && !aside.is_finished() && !begun.is_finished());
    sqlx::query("COMMIT").execute(&mut rig.reader).await.unwrap();
    write.await.unwrap().unwrap();
    aside.await.unwrap().unwrap();
    begun.await.unwrap().unwrap();
    assert_eq!(rig.notes().await, ["a", "b"]);
}

#[tokio::test]
async fn what_nobody_has_to_wait_for_is_written_by_whoever_wants_it() {
    let rig = rig().await;
    let mut write = std::pin::pin!(rig.writer.write(note(ADD, "a")));
    // One poll, and no other thread has a part in it.
    let written = write.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(written, Poll::Ready(Ok(_))), "{written:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_wrote_for_others_lets_them_go_on_before_it_writes_again() {
    // Long enough that somebody else comes meanwhile.
    const LONG: Sql =
        &["WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) \
        INSERT INTO notes (id, by_whom) SELECT $1 || MAX(i), $2 FROM n"];
    let rig = rig().await;
    let went_on = Arc::new(AtomicUsize::new(0));
    let first = {
        let (writer, went_on) = (rig.writer.clone(), Arc::clone(&went_on));
        tokio::spawn(async move {
            writer.write(note(LONG, "long ")).await.unwrap();
            went_on.load(Ordering::Acquire)
        })
    };
    // This is another thread than the one that the tasks share. Nobody but the first can have taken the connection: who
    // comes now is written for, and does not write for the first.
    while !rig.writer.0.desk.is_taken() {
        std::hint::spin_loop();
    }
    let mut waiting = Box::pin({
        let writer = rig.writer.clone();
        async move { writer.write(note(&["SELECT $1, $2"], "a")).await }
    });
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let other = tokio::spawn(async move {
        waiting.await.unwrap();
        went_on.store(1, Ordering::Release);
    });
    assert_eq!(first.await.unwrap(), 1, "whoever was written for meanwhile has gone on");
    other.await.unwrap();
}

#[tokio::test]
async fn who_is_waited_for_goes_ahead_of_what_came_before() {
    // What it is written after: how many notes there are.
    const COUNT: Sql =
        &["INSERT INTO notes (id, by_whom) VALUES ($1, $2)", "SELECT CAST(COUNT(*) AS TEXT), '' FROM notes"];
    let rig = rig().await;
    let held = rig.writer.begin().await.unwrap();
    let mut writes = Vec::new();
    for statement in [note(COUNT, "a"), note(COUNT, "b"), note(COUNT, "waited for").ahead()] {
        let writer = rig.writer.clone();
        writes.push(tokio::spawn(async move { writer.write(statement).await }));
        task::yield_now().await;
    }
    held.commit().await.unwrap();
    let mut counts = Vec::new();
    for write in writes {
        let (count, _): (String, String) = write.await.unwrap().unwrap().row(1).unwrap().unwrap();
        counts.push(count);
    }
    assert_eq!(counts, ["2", "3", "1"]);
}
