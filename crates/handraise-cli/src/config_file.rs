//! Reading the config file: which one, and only if nobody else could have written it (S2).

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use handraise_config::{
    ConfigFile, Environment,
    lookup::{self, MAX_FILE_BYTES, Ownership},
};

/// Reads the config file that `--config`, the environment or the XDG directory names. None there is fine, unless
/// somebody named it.
pub(crate) fn read(flag: Option<&Path>, environment: &Environment) -> anyhow::Result<Option<ConfigFile>> {
    let Some(candidate) = lookup::candidate(flag, environment) else { return Ok(None) };
    let path = &candidate.path;
    // Opening a FIFO would otherwise wait for its writer for ever.
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(without_waiting).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound && !candidate.named => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read the config file {}", path.display()));
        }
    };
    // What was opened is what is judged and read, whatever happens to the path meanwhile.
    let metadata = file.metadata().with_context(|| format!("cannot examine {}", path.display()))?;
    lookup::check_ownership(
        path,
        Ownership {
            mode: metadata.mode(),
            owner: metadata.uid(),
            our_user: rustix::process::geteuid().as_raw(),
            is_regular: metadata.is_file(),
        },
    )?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read the config file {} as UTF-8 text", path.display()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("{} is larger than {MAX_FILE_BYTES} bytes; a config file is not", path.display());
    }
    Ok(Some(ConfigFile::parse(path, &text)?))
}
