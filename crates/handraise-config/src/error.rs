//! What can be wrong with a configuration: each error names the thing, the value and the remedy.

use std::path::PathBuf;

use crate::{file::Place, settings::Origin};

/// A configuration that is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is no TOML.
    #[error("{} is not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The parser's words, with line and column.
        message: String,
    },
    /// The file has a key that no setting has.
    #[error("{place} sets '{key}', which is no setting{}", hint(suggestion.as_deref()))]
    UnknownKey {
        /// Where it stands.
        place: Place,
        /// The key with its tables.
        key: String,
        /// The setting that it looks like.
        suggestion: Option<String>,
    },
    /// A value does not fit its setting.
    #[error("{origin} is {value}, but {expected}")]
    Value {
        /// Where the value comes from.
        origin: Origin,
        /// The value in quotes; `(hidden)` when the setting is a secret.
        value: String,
        /// What the setting takes.
        expected: String,
    },
    /// An entry of a list does not fit.
    #[error("{place}, [[{list}]] {entry}: {problem}")]
    Entry {
        /// Where it stands.
        place: Place,
        /// The list.
        list: &'static str,
        /// Which entry, by name or position.
        entry: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A table with names of the user's own does not fit.
    #[error("{place}, {table} {expected}")]
    Table {
        /// Where it stands.
        place: Place,
        /// The table.
        table: &'static str,
        /// What it takes.
        expected: &'static str,
    },
    /// The deadline of a question would come after the agent was given up (F13a).
    #[error(
        "the answer timeout ({answer}, from {answer_origin}) must be shorter than the idle timeout ({idle}, from \
         {idle_origin}), otherwise an agent is stopped before its question expires; lower \
         acp.answer_timeout (HANDRAISE_ELICITATION_ANSWER_TIMEOUT) or raise acp.idle_timeout \
         (HANDRAISE_ACP_IDLE_TIMEOUT)"
    )]
    AnswerOutlivesAgent {
        /// The answer timeout.
        answer: String,
        /// Where it comes from.
        answer_origin: Box<Origin>,
        /// The idle timeout.
        idle: String,
        /// Where it comes from.
        idle_origin: Box<Origin>,
    },
    /// There is no place for data.
    #[error("no data directory: HOME is not set; give --data-dir DIR or set HANDRAISE_DATA_DIR")]
    NoDataDirectory,
    /// The config file exists but somebody else could have written it (S2).
    #[error("{} {problem}; {remedy}, or name another file with --config", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// Who could have written it.
        problem: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

fn hint(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(
        || "; docs/configuration.md lists the settings".to_owned(),
        |key| format!("; did you mean '{key}'?"),
    )
}
