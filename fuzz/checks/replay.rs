//! The committed corpus of a target, through its check.

use std::path::Path;

/// Checks each file of a target's corpus, of which there are some.
#[track_caller]
pub(crate) fn replay(target: &str, check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        // The name of what fails stands before the failure.
        eprintln!("{}", path.display());
        check(&std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count >= 5, "{count} files in {}", folder.display());
}
