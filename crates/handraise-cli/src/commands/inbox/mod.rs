//! `handraise inbox`: the inbox of this machine in the terminal.

mod answer;
mod audit;
mod client;
mod given;
mod list;
mod picker;
#[cfg(test)]
mod sample;
mod show;
mod watch;
mod words;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use clap::Subcommand;
use handraise_api::words::Source;

use self::client::Client;
use crate::{Context, Exit};

/// Answer in the terminal
///
/// Lists, shows, answers and skips what waits in the inbox of this machine. Without a sub-command it is a picker on a
/// terminal, with the keys of the page (? shows them), and a list where its output is piped. Only what the picker has
/// shown counts as answered by a human; everything else is recorded as a client's answer.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise inbox\n  handraise inbox list --json\n  handraise inbox answer 3f7a1b2c question_0=Postgres"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The data directory of the inbox on this machine
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// List what waits
    ///
    /// Lists the open asks, nearest deadlines first, or the settled ones, latest first.
    #[command(after_help = "Example:\n  handraise inbox list --state settled --limit 10")]
    List(List),
    /// Show one ask
    ///
    /// Shows one ask as a whole: who asks, every question with its key and its choices, and how it ended.
    #[command(after_help = "Example:\n  handraise inbox show 3f7a1b2c")]
    Show {
        /// The ask: its id, or the beginning or end of an open or lately ended one's
        #[arg(value_name = "ID")]
        id: String,
        /// Print it as JSON, with its history
        #[arg(long)]
        json: bool,
    },
    /// Answer an ask
    ///
    /// Sends an answer to whoever asks. Exit status: 0 it was delivered, 3 it was refused and the ask is still open, 4 the
    /// ask had ended, 5 whoever asks is not connected and nothing was sent, 6 it was sent and nobody knows yet whether it
    /// counted, 1 an error.
    #[command(
        after_help = "Examples:\n  handraise inbox answer 3f7a1b2c question_0=Postgres\n  handraise inbox answer 3f7a1b2c envs=dev envs=prod \"envs:=and the demo\"\n  handraise inbox answer 3f7a1b2c --stdin apiKey < key.txt"
    )]
    Answer(Answer),
    /// Skip an ask
    ///
    /// Tells whoever asks that it is declined. Exit status as for answer.
    #[command(after_help = "Example:\n  handraise inbox skip 3f7a1b2c --reason \"not on a Friday\"")]
    Skip {
        /// The ask: its id, or the beginning or end of an open or lately ended one's
        #[arg(value_name = "ID")]
        id: String,
        /// Why; whoever asks may see it
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        reason: String,
        /// Print the ask as JSON
        #[arg(long)]
        json: bool,
    },
    /// List what was refused because of who said it
    ///
    /// Lists forged, replayed and foreign frames of holders, and answers of somebody who may not answer, the latest first:
    /// when, what (the words of handraise_refused_total), with which token, from which holder, and about what. The inbox
    /// keeps the last thousand of each token, for 90 days.
    #[command(
        after_help = "Examples:\n  handraise inbox audit\n  handraise inbox audit --limit 10 --before 1204\n  handraise inbox audit --json"
    )]
    Audit(Audit),
    /// Follow what happens
    ///
    /// Prints a line for every ask that is open, is opened, or ends, until Ctrl-C. After a loss of the inbox it goes on
    /// where it stopped.
    #[command(after_help = "Example:\n  handraise inbox watch --json")]
    Watch {
        /// Print {event, data} a line, as on GET /events: ask.opened and ask.settled
        #[arg(long)]
        json: bool,
    },
}

/// What to list.
#[derive(clap::Args)]
struct List {
    /// open or settled
    #[arg(long, value_name = "STATE", default_value = "open", value_parser = ["open", "settled"], hide_possible_values = true)]
    state: String,
    /// Only of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only of this source: elicitation, permission, refusal, confirm, tool, script
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    source: Option<Source>,
    /// The most asks to list, 1 to 500
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Print JSON, as GET /asks answers
    #[arg(long)]
    json: bool,
}

/// Which part of the audit.
#[derive(clap::Args)]
struct Audit {
    /// The most entries to list, 1 to 500
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Only those before the entry of this number
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// Print JSON, as GET /audit answers
    #[arg(long)]
    json: bool,
}

/// What to answer.
#[derive(clap::Args)]
struct Answer {
    /// The ask: its id, or the beginning or end of an open or lately ended one's
    #[arg(value_name = "ID")]
    id: String,
    /// key=value for a choice or a value, once for each choice; key:=text for words beside a pick
    #[arg(value_name = "KEY=VALUE")]
    answers: Vec<String>,
    /// Take the words for this question from stdin: a secret, or many lines
    #[arg(long, value_name = "KEY")]
    stdin: Option<String>,
    /// Print the ask as JSON
    #[arg(long)]
    json: bool,
}

fn source(word: &str) -> Result<Source, String> {
    word.parse().map_err(|_| {
        format!("'{word}' is no source; elicitation, permission, refusal, confirm, tool and script are")
    })
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    let client = Client::open(context)?;
    crate::block_on(async {
        match &arguments.action {
            None if io::stdin().is_terminal() && io::stdout().is_terminal() => {
                picker::run(context, client).await
            }
            None => list::run(&client, &List::everything()).await,
            Some(Action::List(list)) => list::run(&client, list).await,
            Some(Action::Show { id, json }) => show::run(&client, id, *json).await,
            Some(Action::Answer(answer)) => answer::answer(&client, answer).await,
            Some(Action::Skip { id, reason, json }) => answer::skip(&client, id, reason, *json).await,
            Some(Action::Audit(audit)) => audit::run(&client, audit).await,
            Some(Action::Watch { json }) => watch::run(client, *json).await,
        }
    })
}

impl List {
    /// What is listed when nothing else is said.
    fn everything() -> Self {
        Self { state: "open".to_owned(), session: None, source: None, limit: 50, json: false }
    }
}
