//! Confirm tokens, their settings, and what callers are told.

mod form;
mod hash;
mod result;
mod show;
mod settings;
mod token;
