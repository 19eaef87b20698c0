//! How guarded calls are confirmed in one process.

use std::time::Duration;

use super::settings::{self, KeySource, Mode, Secrets, Ttl, Warning};
use super::{Guards, TokenKey};
use crate::seal::Keyring;

/// How guarded calls are confirmed.
#[derive(Debug)]
pub struct ConfirmConfig {
    /// What is guarded.
    pub guards: Guards,
    /// Whether callers that take forms are asked with one.
    pub forms: bool,
    /// What tokens are made of, or why there are none.
    pub tokens: Result<Tokens, NoTokens>,
    /// What states of forms are sealed with: as good as the store of spent nonces, and no better.
    pub keyring: Keyring,
    /// Whether the store of spent nonces can be used. Where it cannot, nothing is offered, because nothing would run.
    pub is_open: bool,
}

/// How long the store of spent nonces remembers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembers {
    /// Beyond the process, and for whoever has the same secret.
    Beyond,
    /// As long as the process lives: nobody else would know what was spent here.
    InProcess,
    /// Not at all: it cannot be used.
    Nothing,
}

/// What tokens are made of.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// What signs them.
    pub key: TokenKey,
    /// How long they live.
    pub ttl: Duration,
    /// What the model is told to do with them.
    pub mode: Mode,
}

/// Why no tokens are given: what would change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTokens {
    /// `MCP_CONFIRM_MODE`.
    Mode,
    /// `MCP_CONFIRM_TTL_SECONDS`.
    Ttl,
    /// `MCP_CONFIRM_SECRET` or `MCP_HOST_CONFIRM_SECRET`.
    Secret,
    /// The folder of spent nonces.
    Store,
}

impl NoTokens {
    /// What would give tokens.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Mode => "MCP_CONFIRM_MODE gives it no other way: set it to ask-user or auto",
            Self::Ttl => "MCP_CONFIRM_TTL_SECONDS is no number of seconds: set it to one, such as 600",
            Self::Secret => "MCP_CONFIRM_SECRET is too short: give it 32 characters or more",
            Self::Store => "the folder of spent confirmations cannot be used: the log of handraise says why",
        }
    }
}

/// What the environment holds.
#[derive(Clone, Copy, Default)]
pub struct Values<'a> {
    /// `MCP_CONFIRM_MODE`.
    pub mode: Option<&'a str>,
    /// `MCP_CONFIRM_ELICITATION`.
    pub elicitation: Option<&'a str>,
    /// `MCP_CONFIRM_TTL_SECONDS`.
    pub ttl: Option<&'a str>,
    /// The secrets.
    pub secrets: Secrets<'a>,
}

impl ConfirmConfig {
    /// The configuration that the environment asks for, and what to warn of.
    ///
    /// `random` are fresh bytes, for a key that dies with the process: where spent nonces do not outlive it, every key is one.
    pub fn new(
        guards: Guards,
        values: Values<'_>,
        keyring: Keyring,
        random: [u8; 32],
        remembers: Remembers,
    ) -> (Self, Vec<Warning>) {
        let (mode, of_mode) = settings::mode(values.mode);
        let (forms, of_forms) = settings::elicitation(values.elicitation);
        let (ttl, of_ttl) = settings::ttl(values.ttl);
        let (source, of_key) = settings::key_source(values.secrets);
        let is_kept = remembers != Remembers::InProcess;
        let is_open = remembers != Remembers::Nothing;
        let key = match source {
            KeySource::NoTokens => Err(NoTokens::Secret),
            KeySource::Shared(key) if is_kept => Ok(key),
            KeySource::Shared(_) | KeySource::Random => Ok(TokenKey::of_bytes(&random)),
        };
        let tokens = match (mode, ttl, key) {
            _ if !is_open => Err(NoTokens::Store),
            (Mode::Refuse, _, _) => Err(NoTokens::Mode),
            (_, Ttl::NoTokens, _) => Err(NoTokens::Ttl),
            (_, _, Err(why)) => Err(why),
            (mode, Ttl::Of(ttl), Ok(key)) => Ok(Tokens { key, ttl, mode }),
        };
        let keyring = if is_kept { keyring } else { Keyring::single(&random) };
        let warnings = [of_mode, of_forms, of_ttl, of_key].into_iter().flatten().collect();
        (Self { guards, forms, tokens, keyring, is_open }, warnings)
    }
}
