//! `handraise backup`: a copy of the inbox's database, also while it runs.

use std::{
    fs::File,
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
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise backup ~/backups/inbox.db\n  handraise backup --force /srv/backups/inbox.db --data-dir /srv/handraise"
)]
pub(crate) struct Arguments {
    /// Where the copy goes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace FILE if it is there
    #[arg(long)]
    force: bool,
    /// The inbox's data directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    let data_dir = context.settings.data_dir()?.to_owned();
    let place = Place::of(&arguments.file, &data_dir, arguments.force)?;
    // Not its name yet: whoever finds the name finds a whole copy.
    let unfinished = tempfile::Builder::new()
        .prefix(".handraise-backup-")
        .tempfile_in(&place.folder)
        .with_context(|| format!("cannot write into {}", place.folder.display()))?;
    let path = unfinished.path().to_owned();
    let contents = crate::block_on(async {
        let stopped = signals::shutdown_or_hangup()?;
        let copying = {
            let data_dir = data_dir.clone();
            tokio::task::spawn_blocking(move || back_up(&data_dir, &path))
        };
        tokio::select! {
            copied = copying => Ok(copied??),
            () = stopped => bail!("interrupted; nothing was written"),
        }
    })?;
    let Some(contents) = contents else {
        bail!(
            "there is no database in {}; name the inbox's data directory with --data-dir DIR",
            data_dir.display()
        );
    };
    let named = if arguments.force {
        unfinished.persist(&place.file)
    } else {
        unfinished.persist_noclobber(&place.file)
    };
    named.map_err(|failed| failed.error).with_context(|| format!("cannot make {}", place.file.display()))?;
    // The name outlives a loss of power as well.
    File::open(&place.folder)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("cannot sync {}", place.folder.display()))?;
    output::print(&told(&place.file, &contents))?;
    Ok(ExitCode::SUCCESS)
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
        let is_inbox = data_dir.canonicalize().is_ok_and(|data_dir| data_dir == folder);
        if is_inbox && name.to_string_lossy().starts_with(DATABASE_FILE) {
            bail!("{shown} is the inbox's own database; name another file");
        }
        match file.symlink_metadata() {
            Ok(found) if found.is_dir() => bail!("{shown} is a folder; name a file in it"),
            Ok(_) if !force => {
                bail!("{shown} is there already; name another file, or replace it with --force")
            }
            Ok(_) | Err(_) => Ok(Self { file, folder }),
        }
    }
}

/// What has been written, as one line.
fn told(file: &Path, contents: &Contents) -> String {
    let Contents { bytes, schema, asks, sessions, tokens } = contents;
    let file = escape::line(&file.display().to_string()).to_string();
    format!(
        "{file}: {asks} asks, {sessions} sessions, {tokens} tokens, {bytes} bytes, schema {schema}; checked"
    )
}
