//! What can go wrong with an agent, in words that say what to do.

use std::{io, time::Duration};

/// Why an agent could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Nothing to run.
    #[error("no agent command was given; put it after `--`, as in `handraise agent -- npx some-agent`")]
    NoCommand,
    /// The deadline of asks would never be reached (F13a).
    #[error(
        "the answer timeout ({answer:?}) must be shorter than the idle timeout ({idle:?}), or the agent is stopped \
         before its question is declined; change HANDRAISE_ELICITATION_ANSWER_TIMEOUT or HANDRAISE_ACP_IDLE_TIMEOUT"
    )]
    AnswerOutlivesAgent {
        /// The answer timeout.
        answer: Duration,
        /// The idle timeout.
        idle: Duration,
    },
    /// The working directory cannot be used.
    #[error("the working directory {path} cannot be used")]
    Cwd {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The supervisor could not be started.
    #[error("the agent {command:?} could not be started")]
    Spawn {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The agent is no ACP agent of a version we speak.
    #[error("the agent answered `{method}` with something unusable: {problem}")]
    Protocol {
        /// Which request.
        method: &'static str,
        /// What is wrong with the answer.
        problem: String,
    },
    /// The agent refused a request that it cannot do without.
    #[error("the agent refused `{method}`: {message} (code {code})")]
    Refused {
        /// Which request.
        method: &'static str,
        /// The agent's words, escaped and shortened.
        message: String,
        /// The JSON-RPC code.
        code: i32,
    },
    /// The agent ended by itself.
    #[error("the agent ended {how}{}", last_words(.stderr))]
    Ended {
        /// Its exit status in words.
        how: String,
        /// The last lines of its stderr, escaped and shortened.
        stderr: Vec<String>,
    },
    /// The agent sent a line beyond the limit.
    #[error("the agent sent a line longer than {limit} bytes, so its connection was ended")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The connection to the agent broke.
    #[error("the connection to the agent broke: {0}")]
    Broken(String),
    /// The agent said nothing for too long, and did not end its turn when asked to.
    #[error("the agent said nothing for {0:?} and did not end its turn when it was cancelled")]
    Silent(Duration),
    /// What the agent says could not be written.
    #[error("the agent's text could not be written to stdout")]
    Output(#[source] io::Error),
}

impl AgentError {
    /// The same, of an agent with which no session was opened yet.
    pub(crate) fn before_a_session(self) -> Self {
        match self {
            Self::Ended { how, stderr } => {
                let question = if stderr.is_empty() {
                    "; is it an agent that speaks ACP on stdin and stdout?"
                } else {
                    ""
                };
                Self::Ended { how: format!("{how} before it opened a session{question}"), stderr }
            }
            other => other,
        }
    }
}

fn last_words(stderr: &[String]) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it last said:\n  {}", stderr.join("\n  ")) }
}
