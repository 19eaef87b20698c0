//! Opening: files, modes, versions, runs.

use std::os::unix::fs::PermissionsExt as _;

use handraise_api::words::HolderKind;
use handraise_store::{Announcement, Bounds, DATABASE_FILE, Fault, Store, StoreError};
use sqlx::{Connection as _, SqliteConnection};

use crate::support::{announce, ask, at, instance, rig};

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn the_directory_is_0700_and_every_file_in_it_0600() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("deep/er");
    let (store, _) = Store::open(&data, "boot", at(0)).await.unwrap();
    store.set_flag("elicitation", Some(true)).await.unwrap();
    assert_eq!(mode(&data), 0o700);
    let files: Vec<_> = data.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "the log and its index are there: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_file_in_its_place_is_said_to_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let refused = Store::open(&path, "boot", at(0)).await.unwrap_err().to_string();
        assert!(
            refused.contains("a file where a directory is needed; name another with --data-dir"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_directory_that_others_filled_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let shared = dir.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::write(shared.join("theirs"), "x").unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Store::open(&shared, "boot", at(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::OpenDirectory { mode: 0o755, .. }), "{refused}");
    assert!(refused.to_string().contains("chmod 700"), "{refused}");
    assert_eq!(mode(&shared), 0o755);
    assert!(!shared.join(DATABASE_FILE).exists());
}

#[tokio::test]
async fn an_empty_directory_of_ours_is_closed_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    Store::open(&data, "boot", at(0)).await.unwrap();
    assert_eq!(mode(&data), 0o700);
}

#[tokio::test]
async fn a_newer_database_is_refused_with_both_versions() {
    let rig = rig().await;
    rig.store.close().await;
    let file = rig.dir.path().join(DATABASE_FILE);
    let mut raw = SqliteConnection::connect(&format!("sqlite://{}", file.display())).await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (999, 'later', TRUE, x'00', 1)",
    )
    .execute(&mut raw)
    .await
    .unwrap();
    raw.close().await.unwrap();
    let refused = Store::open(rig.dir.path(), "boot", at(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Newer { found: 999, known: 8, .. }), "{refused:?}");
    assert!(refused.to_string().contains("newer handraise"), "{refused}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE_FILE), "this is no database, but long enough".repeat(100))
        .unwrap();
    let refused = Store::open(dir.path(), "boot", at(0)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Database { fault: Fault::Damaged, .. }), "{refused:?}");
    assert!(refused.to_string().contains(DATABASE_FILE), "{refused}");
}

#[tokio::test]
async fn deadlines_and_losses_carry_over_a_reboot_by_the_wall_clock() {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    announce(&rig.store, at(0), "i", &ask("soon", Some(60_000))).await;
    announce(&rig.store, at(0), "i", &ask("late", Some(600_000))).await;
    announce(&rig.store, at(0), "i", &ask("never", None)).await;
    rig.store.close().await;

    // 100 s later by the wall clock, on a machine that booted one second ago.
    let mut now = at(100);
    now.boot = handraise_core::Moment::from_millis(1_000);
    let (store, run) = Store::open(rig.dir.path(), "another boot", now).await.unwrap();
    assert_eq!((rig.run, run), (1, 2));
    let overdue = |boot| {
        let store = store.clone();
        let mut then = now;
        then.boot = handraise_core::Moment::from_millis(boot);
        async move {
            let rows = store.overdue(then, 10).await.unwrap();
            rows.into_iter().map(|(ask, _)| ask.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(overdue(1_000).await, ["soon"]);
    assert_eq!(overdue(500_999).await, ["soon"]);
    assert_eq!(overdue(501_000).await, ["soon", "late"]);
    // The holder of an earlier run counts as lost since this start.
    let orphans = store.orphaned(now, 10).await.unwrap();
    assert_eq!(orphans.len(), 3);
}

#[tokio::test]
async fn a_session_that_nobody_claimed_ends_with_the_run_that_started_it() {
    let rig = rig().await;
    let new = handraise_store::NewSession { id: "s", agent: "a", cwd: None, holder_token: "local" };
    rig.store.add_session(at(0), new).await.unwrap();
    rig.store.close().await;
    let (store, _) = Store::open(rig.dir.path(), "boot", at(1)).await.unwrap();
    let (session, _) = store.session("s").await.unwrap().unwrap();
    assert_eq!(session.state, handraise_api::session::SessionState::Ended);
}

/// Opens asks of a megabyte each.
async fn announce_large(store: &Store, numbers: std::ops::Range<usize>) {
    let mut ask = ask("", None);
    ask.content.message = "x".repeat(1_000_000);
    let content = serde_json::to_string(&ask.content).unwrap();
    for n in numbers {
        ask.id = format!("large{n}");
        let (kind, holder_token) = (HolderKind::Agent, "laptop");
        let new = Announcement {
            instance: "i",
            kind,
            holder_token,
            holder_owner: None,
            ask: &ask,
            content: &content,
        };
        store.announce(at(0), &new, &Bounds::NONE).await.unwrap();
    }
}

#[tokio::test]
async fn a_long_log_is_moved_into_the_file_and_a_short_one_is_left() {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    let size = || rig.dir.path().join(DATABASE_FILE).metadata().unwrap().len();
    let before = size();
    announce(&rig.store, at(0), "i", &ask("small", None)).await;
    rig.store.checkpoint().await.unwrap();
    assert_eq!(size(), before, "after each move somebody waits for a sync");
    announce_large(&rig.store, 0..40).await;
    assert_eq!(size(), before, "whoever writes does not do it");
    rig.store.checkpoint().await.unwrap();
    assert!(size() > before + 40_000_000);
}

#[tokio::test]
async fn a_log_that_has_become_too_long_begins_anew() {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    let log = || rig.dir.path().join(format!("{DATABASE_FILE}-wal")).metadata().unwrap().len();
    announce_large(&rig.store, 0..140).await;
    assert!(log() > 128 * 1024 * 1024);
    rig.store.checkpoint().await.unwrap();
    assert!(log() <= 64 * 1024 * 1024, "{} bytes", log());
    // Over the beginning, not behind the end.
    let before = log();
    announce_large(&rig.store, 140..150).await;
    assert_eq!(log(), before);
    assert_eq!(rig.store.count_open().await.unwrap(), 150);
}

#[tokio::test]
async fn the_log_is_bounded_also_when_nobody_tidies_up() {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    announce_large(&rig.store, 0..220).await;
    let log = rig.dir.path().join(format!("{DATABASE_FILE}-wal")).metadata().unwrap().len();
    assert!(log < 200 * 1024 * 1024, "{log} bytes");
}

#[tokio::test]
async fn a_restart_on_the_same_boot_keeps_deadlines_whatever_the_wall_clock_says() {
    let rig = rig().await;
    instance(&rig.store, "i").await;
    announce(&rig.store, at(0), "i", &ask("a", Some(60_000))).await;
    rig.store.close().await;
    let mut now = at(10);
    now.wall = at(7200).wall;
    let (store, _) = Store::open(rig.dir.path(), "boot", now).await.unwrap();
    assert!(store.overdue(at(59), 10).await.unwrap().is_empty());
    assert_eq!(store.overdue(at(60), 10).await.unwrap().len(), 1);
}
