//! Confirm tokens, their settings, and what callers are told.

mod form;
mod hash;
mod result;
mod settings;
mod show;
mod token;
