//! The canonical text of JSON (RFC 8785): what is hashed when a state or a token is bound to a call's arguments.
//!
//! Two texts have one canonical form exactly when they are the same JSON value. Keys are in the order of their UTF-16
//! code units, numbers and strings are written as ECMA-262's `JSON.stringify` writes them, and nothing is normalised.
//! What has no such form cannot be bound (S4): what is hashed must be what runs, and readers differ about the rest.

mod decimal;
mod number;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use sha2::{Digest, Sha256};

/// The deepest nesting that can be bound, the value itself counted.
pub const MAX_DEPTH: usize = 64;

/// How keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// RFC 8785 as it stands.
    Plain,
    /// Keys that start with `$` start with `$$`: the text under a confirm token's hash (confirm.md).
    DoubledDollar,
}

/// Canonical text.
#[derive(Clone, PartialEq, Eq)]
pub struct Canonical {
    text: String,
}

impl Canonical {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The SHA-256 of the text's UTF-8.
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.text.as_bytes()).into()
    }
}

/// Arguments stay out of logs.
impl fmt::Debug for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Canonical({} bytes)", self.text.len())
    }
}

/// Why a JSON text cannot be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unbindable {
    /// No JSON.
    #[error("not JSON")]
    Malformed,
    /// Bytes that are no UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// An object that has a key twice, at any depth.
    #[error("a key stands twice in one object")]
    DuplicateKey,
    /// Half of a surrogate pair.
    #[error("an unpaired surrogate")]
    UnpairedSurrogate,
    /// Deeper than [`MAX_DEPTH`].
    #[error("nesting deeper than 64")]
    TooDeep,
    /// A number that is another one to readers who hold numbers as ECMA-262 does, like 2^53 + 1.
    #[error("a number that a double does not hold")]
    InexactNumber,
}

impl Unbindable {
    /// The reason's one spelling, in records and results.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed-json",
            Self::InvalidUtf8 => "invalid-utf-8",
            Self::DuplicateKey => "duplicate-key",
            Self::UnpairedSurrogate => "unpaired-surrogate",
            Self::TooDeep => "nesting-too-deep",
            Self::InexactNumber => "inexact-number",
        }
    }
}

/// The canonical text of a JSON value, without the top-level key `omit` where the value is an object.
///
/// # Errors
///
/// What stands in the way, found first; also inside the omitted member.
pub fn canonical(json: &[u8], omit: Option<&str>, dialect: Dialect) -> Result<Canonical, Unbindable> {
    let json = std::str::from_utf8(json).map_err(|_| Unbindable::InvalidUtf8)?;
    let text = parse::Parser::new(json, dialect).document(omit)?;
    Ok(Canonical { text })
}
