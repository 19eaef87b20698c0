//! Whether a command's program is there: looked for before anything is started, because the supervisor could only say so
//! in the log.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// There is no such program.
    #[error("no program is called {program:?}; {remedy}")]
    NotFound {
        /// What was named.
        program: String,
        /// What to do.
        remedy: &'static str,
    },
    /// It is there and is no program.
    #[error("{program:?} is no program that can be executed; check its permissions")]
    NotExecutable {
        /// What was named.
        program: String,
    },
}

/// Looks for the program of a command: its first word. Names without a slash are looked for in `search_path`.
///
/// # Errors
/// [`Missing`].
pub fn find(command: &[OsString], search_path: &[PathBuf]) -> Result<(), Missing> {
    let program = command.first().cloned().unwrap_or_default();
    let shown = program.to_string_lossy().into_owned();
    let program = Path::new(&program);
    let missing = |is_there: bool, remedy| {
        if is_there {
            Err(Missing::NotExecutable { program: shown.clone() })
        } else {
            Err(Missing::NotFound { program: shown.clone(), remedy })
        }
    };
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if shown.contains('/') {
        return if runs(program) { Ok(()) } else { missing(program.exists(), "check the path") };
    }
    if shown.is_empty() {
        return missing(false, "name the server's command after --");
    }
    let candidates = || search_path.iter().map(|folder| folder.join(program));
    if candidates().any(|path| runs(&path)) {
        return Ok(());
    }
    missing(
        candidates().any(|path| path.is_file()),
        "check its spelling, or give its path: PATH does not lead to it",
    )
}
