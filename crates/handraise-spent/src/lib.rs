//! Spent nonces: whatever has confirmed a call once confirms nothing again, also after a crash, also in another process
//! that shares the folder (S5).
//!
//! A [`Store`] is asked whether a nonce is spent, and told to spend it. It fails closed: what it cannot say is
//! [`Was::Unknown`], and then nothing runs. Time comes in with every call. A [`Spender`] asks it for envelopes, on threads
//! of its own.

mod files;
mod memory;
mod spender;
mod turns;

use std::path::{Path, PathBuf};

pub use files::OpenError;
pub use spender::Spender;

/// How long a nonce is remembered after the end of what it belonged to, in milliseconds.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// What a nonce was, before it was claimed where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Was {
    /// Not spent. A claim that says so is the only one that ever does, and lasts.
    Unspent,
    /// Spent before.
    Spent,
    /// The store cannot say.
    Unknown,
}

/// Where spent nonces are kept.
#[derive(Debug)]
pub struct Store(Kind);

#[derive(Debug)]
enum Kind {
    /// And what this process has claimed there: files that somebody removes arm nothing again.
    Files(files::Files, memory::Memory),
    Memory(memory::Memory),
    Closed,
}

impl Store {
    /// A file for each nonce, in a folder of its own below `base`: `inner` names the folders down to it. All that are not
    /// there are made, for nobody else to look into.
    ///
    /// # Errors
    /// When one of the inner folders is a link or no folder, is not ours, or is open to others; when it cannot be made.
    pub fn files(base: &Path, inner: &[&str]) -> Result<Self, OpenError> {
        files::Files::open(base, inner).map(|files| Self(Kind::Files(files, memory::Memory::default())))
    }

    /// The folder that [`Store::files`] would use, if it is there: where it is. Nothing is made.
    ///
    /// # Errors
    /// When it cannot be used, or could keep no claim.
    pub fn existing(base: &Path, inner: &[&str]) -> Result<Option<PathBuf>, OpenError> {
        let Some(files) = files::Files::existing(base, inner)? else { return Ok(None) };
        files.check()?;
        Ok(Some(files.path()))
    }

    /// In this process, and gone with it. What is signed must die with the process as well.
    pub fn memory() -> Self {
        Self(Kind::Memory(memory::Memory::default()))
    }

    /// A store that cannot say anything: nothing runs.
    pub fn closed() -> Self {
        Self(Kind::Closed)
    }

    /// Whether something has gone bad since the store was opened, as far as that is known without a claim: a folder that was
    /// removed or opened to others, a file system that is full or read-only. Nothing is written.
    ///
    /// # Errors
    /// When no claim could be kept now.
    pub fn check(&self) -> Result<(), OpenError> {
        match &self.0 {
            Kind::Files(files, _) => files.check(),
            // The one has nothing that could, of the other it was said when it was opened.
            Kind::Memory(_) | Kind::Closed => Ok(()),
        }
    }

    /// Whether a nonce is spent. `now_ms` is the wall clock, in milliseconds since 1970.
    pub fn look(&self, nonce: [u8; 16], now_ms: u64) -> Was {
        match &self.0 {
            Kind::Files(files, claimed) => match files.look(nonce, now_ms) {
                Was::Unspent => claimed.look(nonce, now_ms),
                was => was,
            },
            Kind::Memory(memory) => memory.look(nonce, now_ms),
            Kind::Closed => Was::Unknown,
        }
    }

    /// Spends a nonce that belongs to something that ends at `expires_ms`. [`Was::Unspent`]: it was this call that spent it,
    /// and that is on disk.
    pub fn claim(&self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> Was {
        match &self.0 {
            Kind::Files(files, claimed) => {
                if claimed.look(nonce, now_ms) == Was::Spent {
                    return Was::Spent;
                }
                let was = files.claim(nonce, expires_ms, now_ms);
                if was != Was::Unknown {
                    // Where there is no room for it, the file alone says so.
                    let _ = claimed.claim(nonce, expires_ms, now_ms);
                }
                was
            }
            Kind::Memory(memory) => memory.claim(nonce, expires_ms, now_ms),
            Kind::Closed => Was::Unknown,
        }
    }
}

/// The folder of a store, for people.
fn joined(base: &Path, inner: &[&str]) -> PathBuf {
    inner.iter().fold(base.to_owned(), |path, name| path.join(name))
}
