//! The agent's file methods, kept beneath its working directory (S45).
//!
//! A courtesy limit: the agent's own process is not confined. It keeps an agent that asks *us* for a file from
//! getting one that the operator did not mean, through `..`, links, devices or pipes.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Component, Path, PathBuf},
};

use handraise_transport::ids;
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fchmod, fstat, openat, openat2,
        renameat, statat, unlinkat,
    },
    io::Errno,
};

/// The largest file that is read or written, in bytes.
pub(crate) const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Why a file method was refused. The words go to the agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("the path is not absolute")]
    NotAbsolute,
    #[error("the path is outside the session's working directory")]
    Outside,
    #[error("not a regular file")]
    NotRegular,
    #[error("not a directory")]
    NotDirectory,
    #[error("the file has several names (hard links)")]
    SeveralNames,
    #[error("the file is larger than 16 MiB")]
    TooLarge,
    #[error("the file is not UTF-8 text")]
    NotText,
    #[error("{}", io::Error::from(*.0))]
    System(Errno),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            // What `openat2` says when a path or link leads out of the directory.
            Errno::XDEV => Self::Outside,
            errno => Self::System(errno),
        }
    }
}

/// A session's working directory.
#[derive(Debug)]
pub(crate) struct Files {
    root: OwnedFd,
    /// The directory by the name it was given, and by its name without links.
    names: [PathBuf; 2],
}

impl Files {
    /// Opens the working directory.
    pub(crate) fn open(cwd: &Path) -> io::Result<Self> {
        let root = openat(CWD, cwd, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, names: [std::path::absolute(cwd)?, cwd.canonicalize()?] })
    }

    /// Reads lines of a text file: `limit` of them from line `first` (counted from 1) on; all without them.
    pub(crate) fn read(
        &self,
        path: &str,
        first: Option<u64>,
        limit: Option<u64>,
    ) -> Result<String, FileError> {
        let path = self.relative(path)?;
        let file = self.resolve(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = fstat(&file)?;
        check(&stat)?;
        check_medium(&file)?;
        if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_FILE {
            return Err(FileError::TooLarge);
        }
        let mut bytes = Vec::new();
        File::from(file).take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE {
            return Err(FileError::TooLarge);
        }
        let text = String::from_utf8(bytes).map_err(|_| FileError::NotText)?;
        if first.is_none() && limit.is_none() {
            return Ok(text);
        }
        let skipped = usize::try_from(first.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let taken = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(text.split_inclusive('\n').skip(skipped).take(taken).collect())
    }

    /// Replaces or creates a text file, whole or not at all.
    pub(crate) fn write(&self, path: &str, content: &str) -> Result<(), FileError> {
        if u64::try_from(content.len()).unwrap_or(u64::MAX) > MAX_FILE {
            return Err(FileError::TooLarge);
        }
        let path = self.relative(path)?;
        let name = path.file_name().ok_or(FileError::NotRegular)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = self.resolve(parent.unwrap_or(Path::new(".")), OFlags::DIRECTORY | OFlags::PATH)?;
        let mode = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            // A link is not followed, and not replaced by a file either.
            Ok(stat) => {
                check(&stat)?;
                Some(Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO))
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        let temporary = Temporary::create(&directory, mode)?;
        temporary.write(content, mode)?;
        renameat(&directory, temporary.name(), &directory, name)?;
        temporary.keep();
        Ok(())
    }

    /// A directory to run a command in, opened: the working directory without a path. It can be entered by
    /// [`entrance`], whatever becomes of its name.
    pub(crate) fn directory(&self, path: Option<&str>) -> Result<OwnedFd, FileError> {
        let path = path.map(|path| self.relative(path)).transpose()?.unwrap_or_default();
        match self.resolve(&path, OFlags::DIRECTORY | OFlags::PATH) {
            Err(FileError::System(Errno::NOTDIR)) => Err(FileError::NotDirectory),
            other => other,
        }
    }

    /// The path as seen from the working directory.
    fn relative(&self, path: &str) -> Result<PathBuf, FileError> {
        let path = Path::new(path);
        if !path.is_absolute() {
            return Err(FileError::NotAbsolute);
        }
        self.names
            .iter()
            .find_map(|name| path.strip_prefix(name).ok())
            .map(Path::to_path_buf)
            .ok_or(FileError::Outside)
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, FileError> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        // The kernel asks for another try when a directory was moved meanwhile.
        for _ in 0..16 {
            match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), beneath) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(path, flags),
                other => return Ok(other?),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Where `openat2` is missing: one component after the other, no links at all, no `..`.
    fn walk(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, FileError> {
        let step = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(FileError::Outside);
                }
            }
        }
        let last = names.pop().unwrap_or(OsStr::new("."));
        let mut directory = self.root.try_clone()?;
        for name in names {
            directory = openat(&directory, name, step, Mode::empty())?;
        }
        Ok(openat(&directory, last, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// The name under which a child of ours enters a directory that we hold open.
pub(crate) fn entrance(directory: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

fn check(stat: &Stat) -> Result<(), FileError> {
    if FileType::from_raw_mode(stat.st_mode as RawMode) != FileType::RegularFile {
        return Err(FileError::NotRegular);
    }
    if stat.st_nlink > 1 { Err(FileError::SeveralNames) } else { Ok(()) }
}

/// Where the working directory is `/`, the kernel's own files are beneath it: they tell of us, not of the work, such as
/// our environment with what opens the inbox.
#[cfg(target_os = "linux")]
fn check_medium(file: &OwnedFd) -> Result<(), FileError> {
    if rustix::fs::fstatfs(file)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
        return Err(FileError::NotRegular);
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_medium(_: &OwnedFd) -> Result<(), FileError> {
    Ok(())
}

/// A new file beside the one to be written; removed unless kept.
struct Temporary<'a> {
    directory: &'a OwnedFd,
    name: String,
    file: File,
    kept: std::cell::Cell<bool>,
}

impl<'a> Temporary<'a> {
    /// What replaces a file is nobody else's to read before it has that file's mode.
    fn create(directory: &'a OwnedFd, replaced: Option<Mode>) -> Result<Self, FileError> {
        let name = format!(".handraise-{}", ids::mint());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if replaced.is_some() { 0o600 } else { 0o666 });
        let file = openat(directory.as_fd(), name.as_str(), flags, mode)?;
        Ok(Self { directory, name, file: file.into(), kept: std::cell::Cell::new(false) })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn write(&self, content: &str, mode: Option<Mode>) -> Result<(), FileError> {
        (&self.file).write_all(content.as_bytes())?;
        if let Some(mode) = mode {
            fchmod(&self.file, mode)?;
        }
        Ok(())
    }

    fn keep(&self) {
        self.kept.set(true);
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept.get() {
            let _ = unlinkat(self.directory, self.name.as_str(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
