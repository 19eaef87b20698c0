//! The settings of the confirm rail, as functions of what the environment holds. The names are those of the fleet that uses
//! them already; whatever cannot be read fails closed, with one warning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::TokenKey;
use crate::visible;

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The model is told to show the preview to the user, and to use the token after the user's word.
    AskUser,
    /// The model may use the token itself.
    Auto,
    /// There are no tokens: a caller that cannot be asked is refused.
    Refuse,
}

/// Something about a setting that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An unknown mode.
    #[error(
        "MCP_CONFIRM_MODE is \"{0}\": it takes ask-user, auto or refuse; guarded calls of callers that cannot be asked are refused"
    )]
    Mode(String),
    /// An unknown switch.
    #[error("MCP_CONFIRM_ELICITATION is \"{0}\": it takes on or off; it stays on")]
    Elicitation(String),
    /// No number of seconds.
    #[error(
        "MCP_CONFIRM_TTL_SECONDS is \"{0}\": it takes a whole number of seconds from 1; no confirm tokens are given"
    )]
    Ttl(String),
    /// A secret that is too short to be one. Its value is not shown.
    #[error("{variable} has {characters} characters: 16 are the fewest; no confirm tokens are given")]
    ShortSecret {
        /// Where it comes from.
        variable: &'static str,
        /// How many characters it has.
        characters: usize,
    },
    /// A secret that is shorter than it should be.
    #[error("{variable} has {characters} characters: give it 32 or more")]
    WeakSecret {
        /// Where it comes from.
        variable: &'static str,
        /// How many characters it has.
        characters: usize,
    },
}

/// The most bytes of a value that a warning repeats.
const MAX_SHOWN_BYTES: usize = 64;

fn shown(value: &str) -> String {
    visible::text(&value[..value.floor_char_boundary(MAX_SHOWN_BYTES)])
}

/// The mode; unset means [`Mode::AskUser`]. Trimmed, in any case.
pub fn mode(value: Option<&str>) -> (Mode, Option<Warning>) {
    let Some(value) = value else { return (Mode::AskUser, None) };
    match value.trim().to_ascii_lowercase().as_str() {
        "ask-user" => (Mode::AskUser, None),
        "auto" => (Mode::Auto, None),
        "refuse" => (Mode::Refuse, None),
        _ => (Mode::Refuse, Some(Warning::Mode(shown(value)))),
    }
}

/// Whether callers that declared forms are asked with one; unset means yes. Trimmed, in any case.
pub fn elicitation(value: Option<&str>) -> (bool, Option<Warning>) {
    let Some(value) = value else { return (true, None) };
    match value.trim().to_ascii_lowercase().as_str() {
        "on" => (true, None),
        "off" => (false, None),
        _ => (true, Some(Warning::Elicitation(shown(value)))),
    }
}

/// How long a token lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ttl {
    /// So long.
    Of(Duration),
    /// No tokens are given.
    NoTokens,
}

/// The lifetime of tokens; unset means ten minutes. Digits without a leading zero, and nothing else.
pub fn ttl(value: Option<&str>) -> (Ttl, Option<Warning>) {
    let Some(value) = value else { return (Ttl::Of(Duration::from_secs(600)), None) };
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit()) && !value.is_empty();
    if !is_number || value.starts_with('0') {
        return (Ttl::NoTokens, Some(Warning::Ttl(shown(value))));
    }
    // More seconds than a number holds are as good as the most that it does.
    (Ttl::Of(Duration::from_secs(value.parse().unwrap_or(u64::MAX))), None)
}

/// What the environment holds about the key.
#[derive(Clone, Copy, Default)]
pub struct Secrets<'a> {
    /// `MCP_CONFIRM_SECRET`.
    pub own: Option<&'a str>,
    /// `MCP_HOST_CONFIRM_SECRET`.
    pub host: Option<&'a str>,
    /// `MCP_DATA_DIR`.
    pub data_dir: Option<&'a str>,
}

/// Where the key of tokens comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// A secret, shared with whoever else has it.
    Shared(TokenKey),
    /// 32 random bytes of this process: the caller draws them.
    Random,
    /// A secret that is none: no tokens are given.
    NoTokens,
}

/// The key: the own secret, else the host's where there is a directory to keep spent nonces in, else random bytes.
///
/// Values are trimmed; an empty one, `null`, `undefined` and a `${…}` that nothing expanded count as unset.
pub fn key_source(secrets: Secrets<'_>) -> (KeySource, Option<Warning>) {
    let is_kept = shared_folder(secrets.data_dir).is_some();
    if let Some(secret) = set(secrets.own) {
        shared(secret, OWN)
    } else if let Some(secret) = set(secrets.host).filter(|_| is_kept) {
        shared(secret, HOST)
    } else {
        (KeySource::Random, None)
    }
}

/// The shared folder that `MCP_DATA_DIR` names: set, in the same sense as the secrets are, and absolute.
pub fn shared_folder(data_dir: Option<&str>) -> Option<PathBuf> {
    set(data_dir).map(Path::new).filter(|folder| folder.is_absolute()).map(Path::to_path_buf)
}

/// How warnings call the secrets.
const OWN: &str = "the secret MCP_CONFIRM_SECRET";
const HOST: &str = "the secret MCP_HOST_CONFIRM_SECRET";

fn shared(secret: &str, variable: &'static str) -> (KeySource, Option<Warning>) {
    let characters = secret.chars().count();
    if characters < 16 {
        return (KeySource::NoTokens, Some(Warning::ShortSecret { variable, characters }));
    }
    let warning = (characters < 32).then_some(Warning::WeakSecret { variable, characters });
    (KeySource::Shared(TokenKey::of_secret(secret)), warning)
}

/// A value that somebody set.
fn set(value: Option<&str>) -> Option<&str> {
    let value = value?.trim();
    let is_unexpanded = value.split_once("${").is_some_and(|(_, rest)| rest.contains('}'));
    let is_nothing = value.is_empty() || matches!(value, "null" | "undefined") || is_unexpanded;
    (!is_nothing).then_some(value)
}
