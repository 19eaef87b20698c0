//! The folder of spent confirmations: whether guarded calls can run.

use std::path::Path;

use handraise_config::Settings;
use handraise_spent::Store;
use rustix::fs::Access;

use super::{Finding, directory, fine, note, wrong};
use crate::confirm;

/// What is to be said of it; nothing where nothing is guarded.
pub(super) fn look(settings: &Settings) -> Option<Finding> {
    if settings.confirms.is_empty() {
        return None;
    }
    let Some((base, inner)) = confirm::folder(settings) else {
        return Some(note(
            "confirmations: there is no data directory; what has confirmed a call is remembered by its gateway only",
        ));
    };
    let none_run = |why: String| Some(wrong(format!("confirmations: {why}; guarded calls do not run")));
    match Store::existing(&base, &inner) {
        Ok(Some(path)) => match directory::write(&path) {
            Ok(()) => Some(fine(format!("confirmations: {} keeps what is spent", path.display()))),
            Err(error) => none_run(format!("nothing can be written in {}: {error}", path.display())),
        },
        Ok(None) if can_be_made(&base) => {
            let path = inner.iter().fold(base, |path, name| path.join(name));
            Some(note(format!(
                "confirmations: {} is not there yet; handraise mcp makes it when it starts. Gateways that run already \
                 refuse guarded calls without it",
                path.display()
            )))
        }
        Ok(None) => none_run(format!("{} cannot be made, or nothing can be made in it", base.display())),
        Err(error) => none_run(error.to_string()),
    }
}

/// Whether this user could make the folder: whether what is there of the way to it may be written to.
fn can_be_made(base: &Path) -> bool {
    let there = base.ancestors().find(|folder| folder.exists());
    let there = there.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let may = Access::WRITE_OK | Access::EXEC_OK;
    there.is_some_and(|there| there.is_dir() && rustix::fs::access(there, may).is_ok())
}
