//! `handraise doctor`: what is in order, what is not, and what to do about it.

mod confirmations;
mod directory;
mod settings;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::offline;
use handraise_api::access::{FlagList, FlagSource};
use handraise_transport::escape;

use crate::{
    Context, Exit,
    inbox::{Inbox, Reached},
    local::{self, Commands},
    output,
};

/// Check this installation
///
/// Checks the data directory, the database, the inbox and where confirmations are kept, and says which boundary stands
/// between agents and you.
/// Exits with 1 when something is wrong.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  handraise doctor")]
pub(crate) struct Arguments {
    /// The inbox's data directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// How a check went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Fine,
    Note,
    Wrong,
}

struct Finding {
    word: Word,
    text: String,
}

fn fine(text: impl Into<String>) -> Finding {
    Finding { word: Word::Fine, text: text.into() }
}

fn note(text: impl Into<String>) -> Finding {
    Finding { word: Word::Note, text: text.into() }
}

fn wrong(text: impl Into<String>) -> Finding {
    Finding { word: Word::Wrong, text: text.into() }
}

pub(crate) fn run(context: &Context) -> Exit {
    let findings = crate::block_on(async {
        let mut findings = settings::look(context);
        let data_dir = context.settings.data_dir()?;
        let (directory, is_there) = directory::look(data_dir, &context.commands);
        findings.push(directory);
        if is_there {
            findings.extend(inbox(data_dir, &context.commands).await);
        }
        findings.extend(confirmations::look(&context.settings));
        findings.push(boundary(context));
        Ok(findings)
    })?;
    for finding in &findings {
        let word = match finding.word {
            Word::Fine => "ok   ",
            Word::Note => "note ",
            Word::Wrong => "WRONG",
        };
        output::print(&format!("{word}  {}", escape::line(&finding.text)))?;
    }
    let all_fine = findings.iter().all(|finding| finding.word != Word::Wrong);
    Ok(if all_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn inbox(data_dir: &Path, commands: &Commands) -> Vec<Finding> {
    let file = match local::read(data_dir, commands) {
        Ok(file) => file,
        Err(error) => return vec![wrong(format!("inbox: {}", output::told(&error)))],
    };
    if let Some(file) = &file {
        let inbox = Inbox::new(file);
        if inbox.is_running().await {
            return running(&inbox, &file.url, commands).await;
        }
    }
    let up = commands.quoted("up");
    let database = match offline::check(data_dir).await {
        Ok(None) => note(format!("database: there is none yet; {up} makes it")),
        Ok(Some(path)) => fine(format!("database: {} opens", path.display())),
        Err(error) => wrong(format!("database: {}", output::told(&error))),
    };
    vec![database, note(format!("inbox: not running; start it with {up}"))]
}

async fn running(inbox: &Inbox, url: &str, commands: &Commands) -> Vec<Finding> {
    match inbox.get::<FlagList>("/api/v1/flags").await {
        Ok(Reached::Answer(list)) => {
            let mut findings = vec![fine(format!("inbox: runs at {url}, with its database"))];
            for flag in list.flags.iter().filter(|flag| flag.source != FlagSource::Default) {
                let state = if flag.value { "on" } else { "off" };
                let by = match flag.source {
                    FlagSource::Default => "default",
                    FlagSource::File => "the config file",
                    FlagSource::Environment => "the environment",
                    FlagSource::Setting => "an operator",
                };
                findings.push(note(format!("flag {}: {state}, set by {by}", flag.name)));
            }
            findings
        }
        Ok(Reached::NotRunning) => {
            vec![wrong(format!("inbox: it ended just now; start it with {}", commands.quoted("up")))]
        }
        Err(error) => vec![wrong(format!("inbox: listens, but {}; its log says more", output::told(&error)))],
    }
}

/// An agent that runs as the operator's own user can act as the operator (security.md).
fn boundary(context: &Context) -> Finding {
    let user = rustix::process::geteuid().as_raw();
    match &context.settings.inbox {
        Some(inbox) if !inbox.value.starts_with("unix:") && inbox.value != "none" => note(format!(
            "boundary: agents started here run as user {user} and reach the inbox at {} with a holder token. If that \
             is another machine or user's, they can ask there and not answer. Where they can read this user's files, \
             they can act as this user.",
            inbox.value
        )),
        _ => note(format!(
            "boundary: none on this machine. Agents started here run as user {user}, like the inbox: they can read \
             its data directory and answer their own questions. Run them as another user or on another machine, with \
             a token of scope holder, to have a boundary."
        )),
    }
}
