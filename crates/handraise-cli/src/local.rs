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

/// How an inbox is started in the data directory that was named with a flag, or in the usual one.
pub(crate) fn up(data_dir: Option<&str>) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | ',' | '@');
    match data_dir {
        None => "handraise up".to_owned(),
        Some(folder) if !folder.is_empty() && folder.chars().all(is_plain) => {
            format!("handraise up --data-dir {folder}")
        }
        Some(folder) => format!("handraise up --data-dir '{}'", folder.replace('\'', r"'\''")),
    }
}

/// Reads `inbox.json`; `None` when no inbox has written one.
///
/// # Errors
/// When it is there and cannot be trusted or read.
pub(crate) fn read(data_dir: &Path) -> anyhow::Result<Option<InboxFile>> {
    let path = data_dir.join("inbox.json");
    let shown = path.display();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    let metadata = file.metadata().with_context(|| format!("cannot examine {shown}"))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!(
            "{shown} belongs to another user, so its inbox is not trusted; name your own with --data-dir DIR"
        );
    }
    if metadata.mode() & 0o077 != 0 {
        bail!(
            "{shown} holds tokens and others may read or write it; chmod 600 it and restart `handraise up`"
        );
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).with_context(|| format!("cannot read {shown}"))?;
    let inbox = serde_json::from_str(&text)
        .with_context(|| format!("{shown} is not what `handraise up` writes; restart `handraise up`"))?;
    Ok(Some(inbox))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_starts_an_inbox_can_be_pasted_into_a_shell() {
        assert_eq!(up(None), "handraise up");
        assert_eq!(up(Some("/srv/h-1")), "handraise up --data-dir /srv/h-1");
        assert_eq!(up(Some("it's mine")), r"handraise up --data-dir 'it'\''s mine'");
    }
}
