//! What came and what ran, in files: the tests' witness.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

/// A file that grows; nothing without one.
pub(crate) struct Witness(Option<Mutex<File>>);

impl Witness {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| File::options().create(true).append(true).open(path)).transpose()?;
        Ok(Self(file.map(Mutex::new)))
    }

    /// A tool call that begins.
    pub(crate) fn began(&self, tool: &str, arguments: &Value) -> io::Result<()> {
        self.bytes(format!("{}\n", json!({"tool": tool, "arguments": arguments})).as_bytes())
    }

    /// A tool call that was cancelled before it was through.
    pub(crate) fn cancelled(&self, tool: &str) -> io::Result<()> {
        self.bytes(format!("{}\n", json!({"cancelled": tool})).as_bytes())
    }

    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(bytes)?;
        file.flush()
    }
}
