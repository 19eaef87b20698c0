//! `handraise backup`: a copy of the inbox's database, also while it runs.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use handraise_store::{Contents, DATABASE_FILE, back_up};
use handraise_transport::escape;

use crate::{Context, Exit, output, signals};

/// Copy the inbox's database while it runs
///
/// Writes a copy of the inbox's database into FILE (mode 0600), also while `handraise up` runs and writes: everything that was
/// committed at one moment, and nothing in halves. Nobody waits for it. The copy is read from end to end before it gets its
/// name. It holds everything that the inbox keeps: asks with their answers, sessions with their transcripts, tokens as hashes,
/// flags, the audit; not inbox.json, the config file, and what spent confirmations are kept in. To restore, stop `handraise up`,
/// put FILE into the data directory as handraise.db, remove handraise.db-wal and handraise.db-shm there, and start it again.
/// Tokens that were revoked after the copy was made are valid again then: look at `handraise token list`, and revoke them anew.
/// Exit status: 0 when the copy is there, 1 when it is not, or could not be reported.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise backup ~/backups/inbox.db\n  handraise backup --force /srv/backups/inbox.db --data-dir /srv/handraise"
)]
pub(crate) struct Arguments {
    /// Where the copy goes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace FILE if it is there and a regular file
    #[arg(long)]
    force: bool,
    /// The inbox's data directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    let data_dir = context.settings.data_dir()?.to_owned();
    let place = Place::of(&arguments.file, &data_dir, arguments.force)?;
    // Not its name yet: whoever finds the name finds a whole copy. In a folder of its own, because SQLite keeps a journal beside it.
    let unfinished = tempfile::Builder::new()
        .prefix(".handraise-backup-")
        .tempdir_in(&place.folder)
        .with_context(|| format!("cannot write into {}", place.folder.display()))?;
    let path = unfinished.path().join("copy.db");
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .with_context(|| format!("cannot write into {}", place.folder.display()))?;
    let contents = crate::block_on(async {
        let stopped = signals::shutdown_or_hangup()?;
        let copying = {
            let (data_dir, path) = (data_dir.clone(), path.clone());
            tokio::task::spawn_blocking(move || back_up(&data_dir, &path))
        };
        tokio::select! {
            copied = copying => Ok(copied??),
            () = stopped => {
                remove(unfinished.path());
                bail!("interrupted; nothing was written")
            }
        }
    })?;
    let Some(contents) = contents else {
        bail!(
            "there is no database in {}; name the inbox's data directory with --data-dir DIR",
            data_dir.display()
        );
    };
    let named = if arguments.force {
        // The copy took a while.
        place.check(true)?;
        std::fs::rename(&path, &place.file)
    } else {
        tempfile::TempPath::try_from_path(path)
            .and_then(|path| path.persist_noclobber(&place.file).map_err(|failed| failed.error))
    };
    named.with_context(|| format!("cannot make {}", place.file.display()))?;
    // The name outlives a loss of power as well.
    File::open(&place.folder)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("cannot sync {}", place.folder.display()))?;
    output::print(&told(&place.file, &contents))
        .with_context(|| format!("the copy {} is there and whole", place.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes the unfinished copy, into which SQLite still writes: a journal that it begins meanwhile keeps the folder once.
fn remove(unfinished: &Path) {
    for _ in 0..3 {
        if std::fs::remove_dir_all(unfinished).is_ok() {
            return;
        }
    }
}

/// Where the copy goes: a file, and the folder that it is in.
struct Place {
    file: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn of(file: &Path, data_dir: &Path, force: bool) -> anyhow::Result<Self> {
        let shown = file.display();
        let absolute = std::path::absolute(file).with_context(|| format!("{shown} is no path"))?;
        let (Some(name), Some(folder)) = (absolute.file_name(), absolute.parent()) else {
            bail!("{shown} names no file");
        };
        let folder =
            folder.canonicalize().with_context(|| format!("the folder of {shown} cannot be looked into"))?;
        let file = folder.join(name);
        // Whatever is there is the inbox's: its lock, its socket, its tokens, what confirmations were spent.
        if data_dir.canonicalize().is_ok_and(|data_dir| folder.starts_with(data_dir)) {
            bail!("{shown} is in the inbox's own data directory; name a file in another folder");
        }
        // The database may be elsewhere, behind a link.
        if data_dir.join(DATABASE_FILE).canonicalize().is_ok_and(|database| is_part(&file, &database)) {
            bail!("{shown} is the inbox's own database; name another file");
        }
        let place = Self { file, folder };
        place.check(force)?;
        Ok(place)
    }

    /// Whether the copy may get this name: nothing is there, or, with `force`, a regular file.
    fn check(&self, force: bool) -> anyhow::Result<()> {
        let Ok(found) = self.file.symlink_metadata() else { return Ok(()) };
        let kind = found.file_type();
        let shown = self.file.display();
        let what = match kind {
            _ if kind.is_file() && force => return Ok(()),
            _ if kind.is_file() => {
                bail!("{shown} is there already; name another file, or replace it with --force")
            }
            _ if kind.is_dir() => bail!("{shown} is a folder; name a file in it"),
            _ if kind.is_symlink() => "link",
            _ if kind.is_fifo() => "pipe",
            _ if kind.is_socket() => "socket",
            _ => "device",
        };
        bail!("{shown} is a {what}; name a file")
    }
}

/// Whether a file is a database, or what SQLite keeps beside it.
fn is_part(file: &Path, database: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(OsStr::to_owned).unwrap_or_default();
    file.parent() == database.parent()
        && ["", "-wal", "-shm", "-journal"].iter().any(|suffix| {
            let mut part = name(database);
            part.push(suffix);
            name(file) == part
        })
}

/// What has been written, as one line.
fn told(file: &Path, contents: &Contents) -> String {
    let Contents { bytes, schema, is_newer, asks, sessions, tokens } = contents;
    let file = escape::line(&file.display().to_string()).to_string();
    let newer = if *is_newer { " (of a newer handraise: this one cannot open it)" } else { "" };
    format!(
        "{file}: {asks} asks, {sessions} sessions, {tokens} tokens, {bytes} bytes, schema {schema}{newer}; checked"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::{fs::symlink, net::UnixListener};

    use super::*;

    #[test]
    fn only_a_regular_file_is_replaced_and_only_by_force() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let problem = |name: &str, force| {
            Place::of(&at(name), &at("data"), force).err().map(|problem| problem.to_string())
        };
        std::fs::write(at("file"), "old").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), 0o600.into()).unwrap();
        for force in [false, true] {
            for (name, what) in
                [("link", "link"), ("dangling", "link"), ("socket", "socket"), ("pipe", "pipe")]
            {
                let problem = problem(name, force).unwrap();
                assert!(problem.ends_with(&format!("is a {what}; name a file")), "{problem}");
            }
        }
        assert!(problem("file", false).unwrap().contains("is there already"));
        assert_eq!((problem("file", true), problem("new", false)), (None, None));
    }

    #[test]
    fn nothing_of_the_inbox_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        std::fs::create_dir_all(data.join("confirm")).unwrap();
        symlink(&data, home.path().join("alias")).unwrap();
        let elsewhere = home.path().join("real.db");
        std::fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, data.join(DATABASE_FILE)).unwrap();
        for name in
            ["inbox.lock", "inbox.json", "inbox.sock", "new.db", "confirm/new.db", "../data/confirm/new.db"]
        {
            for folder in [&data, &home.path().join("alias")] {
                let problem = Place::of(&folder.join(name), &data, true).err().unwrap().to_string();
                assert!(problem.contains("is in the inbox's own data directory"), "{problem}");
            }
        }
        for name in ["real.db", "real.db-wal", "real.db-shm"] {
            let problem = Place::of(&home.path().join(name), &data, true).err().unwrap().to_string();
            assert!(problem.contains("is the inbox's own database"), "{problem}");
        }
        assert!(Place::of(&home.path().join("real.db.copy"), &data, true).is_ok());
    }

    #[test]
    fn what_sqlite_begins_beside_an_unfinished_copy_goes_with_it() {
        let home = tempfile::tempdir().unwrap();
        let unfinished = home.path().join(".handraise-backup-x");
        std::fs::create_dir_all(&unfinished).unwrap();
        for name in ["copy.db", "copy.db-journal"] {
            std::fs::write(unfinished.join(name), "").unwrap();
        }
        remove(&unfinished);
        assert_eq!(home.path().read_dir().unwrap().count(), 0);
    }
}
