//! Settings: their names, defaults and precedence.
//!
//! One table ([`registry::SETTINGS`]) names every setting: its key in the config file, its flag, its environment
//! variables in the order in which they win, its default and one line about it. Everything else follows from
//! that table: what is read, which keys are unknown, the reference page. The crate takes the file's text and the
//! environment as values and does no I/O, save [`environment::Environment::of_process`], the one place in the
//! project that reads the process's environment.
//!
//! Precedence, per setting: flag > environment > file > default (product.md).

pub mod duration;
pub mod environment;
pub mod error;
pub mod file;
pub mod lists;
pub mod lookup;
pub mod reference;
pub mod registry;
pub mod settings;
mod value;

pub use environment::Environment;
pub use error::ConfigError;
pub use file::{ConfigFile, Place};
pub use lists::{
    AgentEntry, CallerEntry, ConfirmEntry, McpServerEntry, PreviewEntry, RefusalEntry, Require, Who,
};
pub use settings::{
    ConfirmVariables, Flags, Listening, LogFormat, Origin, QuestionOrder, Settings, Sourced, load,
};
pub use value::Secret;
