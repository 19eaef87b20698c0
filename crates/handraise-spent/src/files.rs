//! Spent nonces as files: one each, made by whoever is first.
//!
//! The folder is opened anew for every nonce, step by step and without following links, so that processes that share it
//! agree about which folder it is. It is made once, when the store is opened: a folder that is gone later is no empty one.

use std::{
    io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, StatVfs, StatVfsMountFlags, fstat, fstatvfs, fsync,
        mkdirat, openat, statat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

use crate::{KEPT_MS, Was, joined};

/// How often the folder is looked through for what is forgotten, at most, in milliseconds.
const PRUNE_EVERY_MS: u64 = 60_000;

/// What a folder's owner may do in it, at least.
const OWNERS: u32 = 0o700;

/// Why a folder cannot keep spent nonces.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be made or opened.
    #[error("the folder {path} for spent confirmations cannot be used: {source}", path = path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// It belongs to somebody else.
    #[error("the folder {path} for spent confirmations belongs to another user; name another one", path = path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// Others could look into it, or change it.
    #[error("the folder {path} for spent confirmations is open to others; close it with chmod 700", path = path.display())]
    Open {
        /// The folder.
        path: PathBuf,
    },
    /// It was there when the store was opened.
    #[error(
        "the folder {path} for spent confirmations is gone; put it back with what was in it: without it nobody knows what \
         has been confirmed", path = path.display()
    )]
    Gone {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing can be written into it, whoever writes.
    #[error("nothing can be written into the folder {path} for spent confirmations: {why}", path = path.display())]
    Fixed {
        /// The folder.
        path: PathBuf,
        /// Why, and what to do.
        why: &'static str,
    },
}

/// The folder.
#[derive(Debug)]
pub(crate) struct Files {
    base: PathBuf,
    inner: Vec<String>,
    /// When the folder was last looked through, in milliseconds since 1970.
    pruned_ms: Mutex<Option<u64>>,
}

impl Files {
    pub(crate) fn open(base: &Path, inner: &[&str]) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Io { path: joined(base, inner), source };
        make(base).map_err(failed)?;
        let mut at = open_folder(CWD, base, true).map_err(|errno| failed(errno.into()))?;
        for (depth, name) in inner.iter().enumerate() {
            match mkdirat(&at, *name, Mode::RWXU) {
                Ok(()) => fsync(&at).map_err(|errno| failed(errno.into()))?,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
            at = open_folder(&at, Path::new(name), false).map_err(|errno| failed(errno.into()))?;
            check(&at, &joined(base, &inner[..=depth]))?;
        }
        let inner = inner.iter().map(|name| (*name).to_owned()).collect();
        Ok(Self { base: base.to_owned(), inner, pruned_ms: Mutex::default() })
    }

    /// Opens the folder as it is, without making any; nothing where it is not there.
    pub(crate) fn existing(base: &Path, inner: &[&str]) -> Result<Option<Self>, OpenError> {
        let inner = inner.iter().map(|name| (*name).to_owned()).collect();
        let files = Self { base: base.to_owned(), inner, pruned_ms: Mutex::default() };
        match files.folder() {
            Ok(_) => Ok(Some(files)),
            Err(OpenError::Gone { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a claim could be kept, as far as that is known without writing one.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let folder = self.folder()?;
        let failed = |errno: Errno| OpenError::Io { path: self.path(), source: errno.into() };
        let fixed = |why| Err(OpenError::Fixed { path: self.path(), why });
        if fstat(&folder).map_err(failed)?.st_mode & OWNERS != OWNERS {
            return fixed("its mode does not let its owner; run chmod 700");
        }
        let system = fstatvfs(&folder).map_err(failed)?;
        if system.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return fixed("its file system is read-only; mount it for writing");
        }
        if is_full(&system) {
            return fixed("its file system is full; free some space");
        }
        Ok(())
    }

    pub(crate) fn look(&self, nonce: [u8; 16], now_ms: u64) -> Was {
        let Ok(folder) = self.folder() else { return Was::Unknown };
        self.prune(&folder, now_ms);
        match statat(&folder, name(nonce), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Was::Spent,
            Err(Errno::NOENT) => Was::Unspent,
            Err(_) => Was::Unknown,
        }
    }

    pub(crate) fn claim(&self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> Was {
        let Ok(folder) = self.folder() else { return Was::Unknown };
        self.prune(&folder, now_ms);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&folder, name(nonce), flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(Errno::EXIST) => return Was::Spent,
            Err(_) => return Was::Unknown,
        };
        // From here on it is spent, also where this fails: then nothing runs with it.
        let is_kept = rustix::io::write(&file, expires_ms.to_string().as_bytes()).is_ok()
            && fsync(&file).is_ok()
            && fsync(&folder).is_ok();
        if is_kept { Was::Unspent } else { Was::Unknown }
    }

    /// The folder, as it is now.
    fn folder(&self) -> Result<OwnedFd, OpenError> {
        let failed = |errno: Errno| match errno {
            Errno::NOENT => OpenError::Gone { path: self.path() },
            errno => OpenError::Io { path: self.path(), source: errno.into() },
        };
        let mut at = open_folder(CWD, &self.base, true).map_err(failed)?;
        for name in &self.inner {
            at = open_folder(&at, Path::new(name), false).map_err(failed)?;
            check(&at, &self.path())?;
        }
        Ok(at)
    }

    /// Where it is, for people.
    pub(crate) fn path(&self) -> PathBuf {
        joined(&self.base, &self.inner.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Forgets what ended more than a day ago. What cannot be read stays.
    fn prune(&self, folder: &OwnedFd, now_ms: u64) {
        {
            let mut pruned_ms = self.pruned_ms.lock().unwrap_or_else(PoisonError::into_inner);
            if pruned_ms.is_some_and(|pruned| now_ms.saturating_sub(pruned) < PRUNE_EVERY_MS) {
                return;
            }
            *pruned_ms = Some(now_ms);
        }
        let Ok(entries) = Dir::read_from(folder) else { return };
        for entry in entries.flatten() {
            let file = entry.file_name();
            if is_name(file.to_bytes())
                && ended(folder, file).is_some_and(|end| end.saturating_add(KEPT_MS) <= now_ms)
            {
                let _ = unlinkat(folder, file, AtFlags::empty());
            }
        }
    }
}

/// Makes a folder with all above it, on disk: a power loss takes no folder away whose nonces are spent. What it makes is
/// ours alone, whatever the umask: `base` may be the data directory, which the inbox refuses where others can look in.
fn make(base: &Path) -> io::Result<()> {
    let made: Vec<&Path> = base.ancestors().take_while(|folder| !folder.exists()).collect();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    for parent in made.iter().filter_map(|folder| folder.parent()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        std::fs::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Whether no file or not a byte more fits. Some file systems count neither, or no files, and say 0 of 0.
fn is_full(system: &StatVfs) -> bool {
    let left = if geteuid().is_root() { system.f_bfree } else { system.f_bavail };
    (system.f_blocks > 0 && left == 0) || (system.f_files > 0 && system.f_ffree == 0)
}

/// When what a nonce belonged to ends, as its file says.
fn ended(folder: &OwnedFd, file: &std::ffi::CStr) -> Option<u64> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(folder, file, flags, Mode::empty()).ok()?;
    let mut text = [0; 24];
    let length = rustix::io::read(&file, &mut text).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.parse().ok()
}

fn open_folder(at: impl std::os::fd::AsFd, path: &Path, follows: bool) -> Result<OwnedFd, Errno> {
    let follow = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | follow, Mode::empty())
}

/// A folder that is ours, and ours alone.
fn check(folder: &OwnedFd, path: &Path) -> Result<(), OpenError> {
    let stat =
        fstat(folder).map_err(|errno| OpenError::Io { path: path.to_owned(), source: errno.into() })?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || stat.st_uid != geteuid().as_raw() {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(OpenError::Open { path: path.to_owned() });
    }
    Ok(())
}

/// The name of a nonce's file: its bytes as hexadecimal digits.
fn name(nonce: [u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    nonce
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .map(char::from)
        .collect()
}

fn is_name(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
