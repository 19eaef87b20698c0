//! The pure part of confirming a guarded call: settings, tokens, the form, and what a caller is told.
//!
//! A token says that one call, with exactly these arguments and exactly this preview, was shown to the caller and may run
//! once. It stops mistakes, not intent: who can read a preview can also bring its token back.
//!
//! Nothing here keeps anything. Which nonces are spent, what a preview says now and what time it is come in.

mod form;
mod hash;
mod result;
mod settings;
mod token;

#[cfg(test)]
mod tests;

pub use form::{ConfirmAnswer, FIELD, confirm_params};
pub use hash::{ARGUMENT, gateway_payload, payload_hash};
pub use result::{Phase1, Told};
pub use settings::{KeySource, Mode, Secrets, Ttl, Warning, elicitation, key_source, mode, ttl};
pub use token::{Call, Claims, Fresh, PREFIX, Rejection, Spent, TokenKey, claimed, sign, verify};
