//! A copy of the database while somebody writes.

use handraise_store::{DATABASE_FILE, Store, back_up};

use crate::support::{announce, ask, at, instance, rig};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_whole_while_somebody_writes_and_holds_what_was_committed_before() {
    let rig = rig().await;
    instance(&rig.store, "one").await;
    for n in 0..200 {
        announce(&rig.store, at(0), "one", &ask(&format!("before-{n}"), None)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let store = rig.store.clone();
    let writing = tokio::spawn(async move {
        let mut n = 0_i64;
        while stopped.try_recv().is_err() {
            announce(&store, at(1), "one", &ask(&format!("while-{n}"), None)).await;
            n += 1;
        }
        n
    });
    let mut before = 200;
    for turn in 0..5 {
        let copy = folder.path().join(format!("copy-{turn}"));
        std::fs::write(&copy, "").unwrap();
        let data_dir = rig.dir.path().to_owned();
        let contents = tokio::task::spawn_blocking(move || back_up(&data_dir, &copy)).await.unwrap();
        let contents = contents.unwrap().unwrap();
        assert!(contents.asks >= before, "{contents:?} after {before}");
        before = contents.asks;
    }
    stop.send(()).unwrap();
    let written = writing.await.unwrap();
    assert!(before <= 200 + written);

    // A copy is a database like any other.
    let data_dir = folder.path().join("restored");
    handraise_store::prepare(&data_dir).unwrap();
    std::fs::copy(folder.path().join("copy-4"), data_dir.join(DATABASE_FILE)).unwrap();
    let (restored, _) = Store::open(&data_dir, "boot", at(2)).await.unwrap();
    for n in [0, 199] {
        assert!(restored.ask(&format!("before-{n}")).await.unwrap().is_some(), "before-{n}");
    }
}

#[tokio::test]
async fn where_there_is_nothing_to_copy_or_no_room_for_it_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(back_up(folder.path(), &folder.path().join("copy")).unwrap(), None);
    let rig = rig().await;
    let nowhere = back_up(rig.dir.path(), &folder.path().join("nowhere/copy")).unwrap_err().to_string();
    assert!(nowhere.contains("nowhere/copy cannot be read or written"), "{nowhere}");
    let full = back_up(rig.dir.path(), std::path::Path::new("/dev/full")).unwrap_err().to_string();
    assert!(full.contains("/dev/full"), "{full}");
}

#[tokio::test]
async fn what_cannot_be_read_is_not_called_absent_and_is_named_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let copy = folder.path().join("copy");
    let unread = back_up(&file, &copy).unwrap_err().to_string();
    assert!(unread.contains("file/handraise.db cannot be read"), "{unread}");
    std::fs::write(folder.path().join(DATABASE_FILE), "").unwrap();
    let empty = back_up(folder.path(), &copy).unwrap_err().to_string();
    assert!(empty.contains("/handraise.db is damaged or no handraise database"), "{empty}");
    assert!(!copy.exists());
}

#[tokio::test]
async fn a_database_of_a_newer_handraise_is_copied_and_told_as_one() {
    let rig = rig().await;
    let folder = tempfile::tempdir().unwrap();
    let copied = |name: &str| back_up(rig.dir.path(), &folder.path().join(name)).unwrap().unwrap();
    assert!(!copied("own").is_newer);
    let database = rusqlite::Connection::open(rig.dir.path().join(DATABASE_FILE)).unwrap();
    database.execute("UPDATE _sqlx_migrations SET version = 99 WHERE version = 1", []).unwrap();
    let newer = copied("newer");
    assert_eq!((newer.schema, newer.is_newer), (99, true));
}
