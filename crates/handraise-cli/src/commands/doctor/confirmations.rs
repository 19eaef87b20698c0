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
    let folder = inner.iter().fold(base.clone(), |path, name| path.join(name));
    let none_run = |why: String| Some(wrong(format!("confirmations: {why}; guarded calls do not run")));
    match Store::existing(&base, &inner) {
        Ok(Some(path)) => match directory::write(&path) {
            Ok(()) => Some(fine(format!("confirmations: {} keeps what is spent", path.display()))),
            Err(error) => none_run(format!("nothing can be written in {}: {error}", path.display())),
        },
        Ok(None) => match cannot_be_made(&folder) {
            None => Some(note(format!(
                "confirmations: {} is not there yet; handraise mcp makes it when it starts. Gateways that run already \
                 refuse guarded calls without it",
                folder.display()
            ))),
            Some(there) => none_run(format!(
                "{} cannot be made: nothing can be made in {}",
                folder.display(),
                there.display()
            )),
        },
        Err(error) => none_run(error.to_string()),
    }
}

/// What keeps this user from making the folder: the deepest folder of the way to it that is there, where it may not be
/// written to.
fn cannot_be_made(folder: &Path) -> Option<&Path> {
    // The last of them is the one we are in, or the root.
    let there = folder.ancestors().find(|folder| folder.as_os_str().is_empty() || folder.exists())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let may = Access::WRITE_OK | Access::EXEC_OK;
    (!there.is_dir() || rustix::fs::access(there, may).is_err()).then_some(there)
}
