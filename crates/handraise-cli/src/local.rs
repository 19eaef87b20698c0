//! The inbox of this machine: `inbox.json` in the data directory.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use anyhow::{Context as _, bail};
use handraise_server::InboxFile;

/// The largest `inbox.json` that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Our own commands, as they are typed for the inbox that this one is about: with the data directory that was named with a
/// flag.
#[derive(Debug, Clone)]
pub(crate) struct Commands(String);

impl Commands {
    /// Of the data directory that was named with a flag, or of the usual one.
    pub(crate) fn of(data_dir: Option<&str>) -> Self {
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | ',' | '@');
        Self(match data_dir {
            None => String::new(),
            Some(folder) if !folder.is_empty() && folder.chars().all(is_plain) => {
                format!(" --data-dir {folder}")
            }
            Some(folder) => format!(" --data-dir '{}'", folder.replace('\'', r"'\''")),
        })
    }

    /// `handraise` with these words, in the quotes of a remedy.
    pub(crate) fn quoted(&self, words: &str) -> String {
        format!("`handraise {words}{}`", self.0)
    }
}

/// Reads `inbox.json`; `None` when no inbox has written one.
///
/// # Errors
/// When it is there and cannot be trusted or read.
pub(crate) fn read(data_dir: &Path, commands: &Commands) -> anyhow::Result<Option<InboxFile>> {
    let path = data_dir.join("inbox.json");
    let shown = path.display();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| {
                format!(
                    "cannot read {shown}; let this user read it, or name your own inbox with --data-dir DIR"
                )
            });
        }
    };
    let metadata = file.metadata().with_context(|| format!("cannot examine {shown}"))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!(
            "{shown} belongs to another user, so its inbox is not trusted; name your own with --data-dir DIR"
        );
    }
    if metadata.mode() & 0o077 != 0 {
        bail!(
            "{shown} holds tokens and others may read or write it; chmod 600 it and restart {}",
            commands.quoted("up")
        );
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text).with_context(|| {
        format!("cannot read {shown}; move it away and restart {}", commands.quoted("up"))
    })?;
    let inbox = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not what an inbox writes; restart {}", commands.quoted("up")))?;
    Ok(Some(inbox))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_inbox_wrote_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("inbox.json");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let problem = || format!("{:#}", read(folder.path(), &Commands::of(None)).unwrap_err());
        assert!(problem().contains("is not what an inbox writes; restart `handraise up`"), "{}", problem());
        std::fs::remove_file(&file).unwrap();
        std::fs::DirBuilder::new().create(&file).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert!(problem().contains("move it away and restart `handraise up`"), "{}", problem());
    }

    #[test]
    fn the_command_that_starts_an_inbox_can_be_pasted_into_a_shell() {
        let up = |data_dir| Commands::of(data_dir).quoted("up");
        assert_eq!(up(None), "`handraise up`");
        assert_eq!(up(Some("/srv/h-1")), "`handraise up --data-dir /srv/h-1`");
        assert_eq!(up(Some("it's mine")), r"`handraise up --data-dir 'it'\''s mine'`");
    }
}
