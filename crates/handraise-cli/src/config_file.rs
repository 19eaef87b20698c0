//! Reading the config file: which one, and only if nobody else could have written it (S2); and which files with secrets others
//! can read.

use std::{
    fs::{Metadata, OpenOptions},
    io::{self, ErrorKind, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use handraise_config::{
    ConfigFile, Environment,
    lookup::{self, MAX_FILE_BYTES, Ownership},
};

/// What is to be said of a file that holds secrets and that others can read.
pub(crate) fn exposed(file: &ConfigFile) -> Option<String> {
    let secrets = file.secrets();
    let metadata = file.path().metadata().ok().filter(|_| !secrets.is_empty())?;
    lookup::is_exposed(ownership(&metadata)).then(|| {
        let (path, mode) = (file.path().display(), metadata.mode() & 0o777);
        format!(
            "{path} has {} and can be read by others (mode {mode:04o}); take that away: chmod go= {path}",
            secrets.join(", ")
        )
    })
}

/// What is to be said of the private key of `--listen` when others can read it.
pub(crate) fn exposed_key(key: &Path) -> Option<String> {
    // One that is not there, and what is no file, such as a pipe, is for whoever reads it to judge.
    let metadata = key.metadata().ok().filter(Metadata::is_file)?;
    lookup::is_exposed(ownership(&metadata)).then(|| {
        let (path, mode) = (key.display(), metadata.mode() & 0o777);
        format!(
            "the private key {path} can be read by others (mode {mode:04o}); take that away: chmod go= {path}"
        )
    })
}

fn ownership(metadata: &Metadata) -> Ownership {
    Ownership {
        mode: metadata.mode(),
        owner: metadata.uid(),
        our_user: rustix::process::geteuid().as_raw(),
        is_regular: metadata.is_file(),
    }
}

/// Reads the config file that `--config`, the environment or the XDG directory names. None there is fine, unless
/// somebody named it.
pub(crate) fn read(flag: Option<&Path>, environment: &Environment) -> anyhow::Result<Option<ConfigFile>> {
    let Some(candidate) = lookup::candidate(flag, environment) else { return Ok(None) };
    let path = &candidate.path;
    // Opening a FIFO would otherwise wait for its writer for ever.
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(without_waiting).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A link that leads nowhere is no absence: rules that it held, such as [[confirm]], would be gone in silence.
            if let Some(link) = dangling(path)? {
                bail!(
                    "cannot read the config file {}: {} is a link to something that is not there; mend or remove the \
                     link, or name another file with --config",
                    path.display(),
                    link.display()
                );
            }
            if !candidate.named {
                return Ok(None);
            }
            bail!(
                "cannot read the config file {}: it is not there; write it, or name another",
                path.display()
            );
        }
        Err(error) => {
            let remedy = "let this user read it, or name another file with --config";
            bail!("cannot read the config file {}: {error}; {remedy}", path.display());
        }
    };
    // What was opened is what is judged and read, whatever happens to the path meanwhile.
    let metadata = file.metadata().with_context(|| format!("cannot examine {}", path.display()))?;
    lookup::check_ownership(path, ownership(&metadata))?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read the config file {} as UTF-8 text", path.display()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("{} is larger than {MAX_FILE_BYTES} bytes; a config file is not", path.display());
    }
    Ok(Some(ConfigFile::parse(path, &text)?))
}

/// The link, at the path or above it, that makes it seem absent.
///
/// # Errors
/// When that cannot be seen.
fn dangling(path: &Path) -> anyhow::Result<Option<&Path>> {
    for place in path.ancestors().filter(|place| !place.as_os_str().is_empty()) {
        match place.symlink_metadata() {
            Ok(metadata) => {
                let is_dangling =
                    metadata.is_symlink() && !place.try_exists().map_err(|error| unseen(path, &error))?;
                return Ok(is_dangling.then_some(place));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unseen(path, &error)),
        }
    }
    Ok(None)
}

fn unseen(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot see whether the config file {} is there: {error}", path.display())
}
