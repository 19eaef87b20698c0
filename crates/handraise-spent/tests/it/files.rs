//! The folder and its files.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use handraise_spent::{OpenError, Store, Was};

const INNER: &[&str] = &["confirm", "spent"];
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn s5_a_claim_counts_once_and_is_a_private_file() {
    let base = tempfile::tempdir().unwrap();
    let store = Store::files(&base.path().join("data"), INNER).unwrap();
    assert_eq!(store.look([1; 16], 5), Was::Unspent);
    assert_eq!(store.claim([1; 16], 1_000, 5), Was::Unspent);
    assert_eq!(store.claim([1; 16], 1_000, 5), Was::Spent);
    assert_eq!(store.look([1; 16], 5), Was::Spent);
    assert_eq!(store.claim([2; 16], 1_000, 5), Was::Unspent);
    let folder = base.path().join("data/confirm/spent");
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    let file = folder.join("01".repeat(16));
    assert_eq!((mode(&file), std::fs::read_to_string(&file).unwrap().as_str()), (0o600, "1000"));
    // Another process, later.
    let other = Store::files(&base.path().join("data"), INNER).unwrap();
    assert_eq!(other.claim([1; 16], 1_000, 6), Was::Spent);
}

#[test]
fn s5_folders_that_it_makes_are_private_and_others_stay_as_they_are() {
    let base = tempfile::tempdir().unwrap();
    std::fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
    Store::files(&base.path().join("share/handraise"), INNER).unwrap();
    let modes = ["", "share", "share/handraise"].map(|folder| mode(&base.path().join(folder)));
    assert_eq!(modes, [0o755, 0o700, 0o700]);
}

#[test]
fn s5_files_that_somebody_removes_arm_nothing_again_in_the_process_that_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::files(folder.path(), &["spent"]).unwrap();
    assert_eq!(store.claim([1; 16], 10_000, 0), Was::Unspent);
    for entry in std::fs::read_dir(folder.path().join("spent")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(store.look([1; 16], 0), Was::Spent);
    assert_eq!(store.claim([1; 16], 10_000, 0), Was::Spent);
    assert_eq!(store.claim([2; 16], 10_000, 0), Was::Unspent);
}

#[test]
fn a_nonce_is_forgotten_a_day_after_its_end() {
    let base = tempfile::tempdir().unwrap();
    let store = Store::files(base.path(), INNER).unwrap();
    assert_eq!(store.claim([1; 16], 1_000, 5), Was::Unspent);
    assert_eq!(store.claim([2; 16], 2_000_000, 5), Was::Unspent);
    let folder = base.path().join("confirm/spent");
    std::fs::write(folder.join("README"), "1").unwrap();
    std::fs::write(folder.join("03".repeat(16)), "").unwrap();
    assert_eq!(store.look([1; 16], 999 + DAY_MS), Was::Spent);
    // The folder is looked through once a minute.
    assert_eq!(store.look([9; 16], 1_000 + DAY_MS + 60_000), Was::Unspent);
    assert_eq!(store.look([1; 16], 1_001 + DAY_MS + 60_000), Was::Unspent);
    assert_eq!(store.look([2; 16], 1_001 + DAY_MS + 60_000), Was::Spent);
    // What tells no end, and what is no nonce, stays.
    assert_eq!(store.look([3; 16], u64::MAX), Was::Spent);
    assert!(folder.join("README").exists());
}

#[test]
fn s5_a_folder_that_cannot_be_trusted_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), base.path().join("confirm")).unwrap();
    assert!(matches!(Store::files(base.path(), INNER), Err(OpenError::Io { .. })), "a link");

    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("confirm"), "").unwrap();
    assert!(matches!(Store::files(base.path(), INNER), Err(OpenError::Io { .. })), "a file");

    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("confirm/spent");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(base.path().join("confirm"), Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
    let error = Store::files(base.path(), INNER).unwrap_err();
    assert!(matches!(error, OpenError::Open { .. }), "{error}");
    assert!(error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn s5_what_cannot_be_looked_up_or_claimed_is_unknown() {
    let base = tempfile::tempdir().unwrap();
    let store = Store::files(base.path(), INNER).unwrap();
    assert_eq!(store.claim([1; 16], 1_000, 5), Was::Unspent);
    let folder = base.path().join("confirm/spent");
    let aside = base.path().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    // A folder that is gone is no empty one.
    assert_eq!((store.look([1; 16], 5), store.claim([2; 16], 1_000, 5)), (Was::Unknown, Was::Unknown));
    symlink(&aside, &folder).unwrap();
    assert_eq!((store.look([1; 16], 5), store.claim([2; 16], 1_000, 5)), (Was::Unknown, Was::Unknown));
    std::fs::remove_file(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    assert_eq!((store.look([1; 16], 5), store.claim([2; 16], 1_000, 5)), (Was::Unknown, Was::Unknown));
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    assert_eq!((store.look([1; 16], 5), store.claim([2; 16], 1_000, 5)), (Was::Unknown, Was::Unknown));
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    assert_eq!((store.look([1; 16], 5), store.claim([2; 16], 1_000, 5)), (Was::Spent, Was::Unspent));
    let closed = Store::closed();
    assert_eq!((closed.look([1; 16], 5), closed.claim([2; 16], 1_000, 5)), (Was::Unknown, Was::Unknown));
}

#[test]
fn s5_a_folder_that_can_keep_no_claim_any_more_says_so() {
    let base = tempfile::tempdir().unwrap();
    assert_eq!(Store::existing(base.path(), INNER).unwrap(), None);
    let store = Store::files(base.path(), INNER).unwrap();
    let folder = base.path().join("confirm/spent");
    assert_eq!(Store::existing(base.path(), INNER).unwrap(), Some(folder.clone()));
    store.check().unwrap();
    let close = |mode| std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
    close(0o500);
    assert!(matches!(store.check(), Err(OpenError::Fixed { .. } | OpenError::Io { .. })), "read-only");
    assert!(Store::existing(base.path(), INNER).is_err());
    close(0o755);
    assert!(matches!(store.check(), Err(OpenError::Open { .. })), "open to others");
    close(0o700);
    std::fs::rename(&folder, base.path().join("aside")).unwrap();
    assert!(matches!(store.check(), Err(OpenError::Gone { .. })), "gone");
    assert_eq!(Store::existing(base.path(), INNER).unwrap(), None);
    symlink(base.path().join("aside"), &folder).unwrap();
    assert!(store.check().is_err() && Store::existing(base.path(), INNER).is_err(), "a link");
    assert!(std::fs::read_dir(base.path().join("aside")).unwrap().next().is_none(), "nothing was written");
    assert!(Store::memory().check().is_ok());
}
