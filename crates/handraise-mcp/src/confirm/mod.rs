//! Confirming a guarded call: which calls are guarded, settings, tokens, the form, what is shown, and what a caller is told.
//!
//! A token says that one call, with exactly these arguments and exactly this preview, was shown to the caller and may run
//! once. It stops mistakes, not intent: who can read a preview can also bring its token back.
//!
//! Nothing here keeps anything. Which nonces are spent, what a preview says now and what time it is come in.

mod config;
mod form;
mod glob;
mod guard;
mod hash;
mod preview;
mod result;
mod settings;
mod show;
mod token;
mod tools;

#[cfg(test)]
mod tests;

pub use config::{ConfirmConfig, NoTokens, Remembers, Tokens, Values};
pub use form::{ConfirmAnswer, FIELD, REQUEST, confirm_params, confirm_requests, confirm_schema};
pub use guard::{
    Answerers, Demand, Guard, GuardError, GuardSource, Guarding, Guards, PreviewRule, PreviewSource,
};
pub use hash::{ARGUMENT, gateway_payload, hash_of, payload_hash};
pub use preview::{MAX_PREVIEW_BYTES, Preview, PreviewFault};
pub use result::{Phase1, Told};
pub use settings::{
    KeySource, Mode, Secrets, Ttl, Warning, elicitation, key_source, mode, shared_folder, ttl,
};
pub use show::{MAX_MESSAGE_BYTES, MAX_TOKEN_PREVIEW_BYTES, Shown, TooLong, lines};
pub use token::{Call, Claims, Fresh, PREFIX, Rejection, Spent, TokenKey, claimed, sign, verify};
pub use tools::{Gathered, Gathering, Listed, ToolList, Unlistable, harmful_on};

pub(crate) use tools::{Offer, listed_as_guarded};
