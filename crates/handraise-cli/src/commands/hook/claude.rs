//! `handraise hook claude`: Claude Code's `Elicitation` and `PermissionRequest` hooks, answered in the inbox.

use std::{
    ffi::OsStr,
    io::{self, IsTerminal as _, Read as _},
    path::{PathBuf, absolute},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use handraise_api::words::HolderKind;
use handraise_config::duration;
use handraise_core::Outcome;
use handraise_holder::{EndCause, InboxAddress};
use serde_json::Value;

use super::{
    called,
    event::{self, Event, Unasked},
    settings,
};
use crate::{
    Context, Exit,
    abandoned::Abandoned,
    arguments::Global,
    asking::{self, Caller},
    holding, output,
};

/// The most bytes of a hook's input: what a tool would write is part of it.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;
/// The exit status that Claude Code takes for "stop this", whatever is printed.
const BLOCK: u8 = 2;
/// As of `handraise ask`: whoever asked does not want to know any more.
const TAKEN_BACK: u8 = 4;

/// Answer Claude Code's questions from the inbox
///
/// A command for Claude Code's hooks Elicitation (an MCP server asks) and PermissionRequest (a tool may run, or not), so that
/// `claude -p` gets a human's answer. It reads the hook's JSON on stdin, asks in the inbox, and prints the answer for Claude
/// Code. Without an answer, because no inbox is reachable, nobody answers in time, or the question cannot be asked there, it
/// prints nothing and exits with 0: Claude Code then does what it does without a hook. With --fail closed it denies instead.
/// It is meant for runs in which nobody sits at Claude Code: docs/hooks.md says what an interactive run does with it.
/// It prints allow or accept only for an answer that somebody gave in the inbox. A page that a server wants opened, and
/// AskUserQuestion, are left to Claude Code, with --fail closed as well. Exit status: 0; 1 for input that is no hook's and for
/// settings that are wrong, after which Claude Code's own policy counts; 4 when Claude Code went away; 2 for a command line that
/// makes no sense. With --fail closed on the command line every failure is a 2, which stops the call.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise hook claude --print-settings\n  handraise hook claude --fail closed --timeout 10m --print-settings > handraise-hooks.json"
)]
pub(crate) struct Arguments {
    /// Print the settings that have Claude Code run this, with the other options given here, and exit
    #[arg(long)]
    print_settings: bool,
    /// What happens without an answer: open (what Claude Code does without a hook) or closed (it is denied)
    #[arg(long, value_name = "HOW", default_value = "open")]
    fail: Fail,
    /// How long to wait for an answer; 55m otherwise
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Whose answers count: operator (every operator's), caller, or not-the-caller, by the owners of both tokens
    #[arg(long, value_name = "WHO")]
    pub(crate) who: Option<String>,
    /// The inbox: https://HOST, http://127.0.0.1:PORT, or unix:SOCKET; otherwise the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<String>,
    /// The data directory of the inbox on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// What happens without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Fail {
    Open,
    Closed,
}

/// How an event went.
enum Went {
    /// Somebody answered: this is printed.
    Answered(Value),
    /// Nobody did, and why.
    Unanswered(String),
    /// Nobody wants to know any more.
    TakenBack,
}

/// `global` and `program`, the name by which we were called, are for the settings that are printed.
pub(crate) fn run(
    context: &Context,
    arguments: &Arguments,
    global: &Global,
    program: Option<&OsStr>,
) -> Exit {
    let timeout = asking::patience(arguments.timeout.as_deref())?;
    if arguments.print_settings {
        let program = called::by(program, context.environment.get("PATH"))?;
        let command = settings::shell(&arguments.words(program, global)?);
        let snippet = settings::snippet(&command, timeout);
        output::print(&format!("{snippet:#}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let is_closed = arguments.fail == Fail::Closed;
    let text = input()?;
    let went = match Event::read(&text) {
        Ok(event) => crate::block_on(ask(context, &event, timeout, is_closed))?,
        Err(Unasked::Elicitation(why)) => {
            Went::Unanswered(format!("the question is not asked in the inbox: {why}"))
        }
        Err(Unasked::Theirs(why)) => {
            output::complain(&format!("left to Claude Code: {why}"));
            return Ok(ExitCode::SUCCESS);
        }
        Err(Unasked::Malformed(why)) => {
            bail!("stdin holds no question of Claude Code's hooks: {why}");
        }
    };
    match went {
        Went::Answered(answer) => output::print(&answer.to_string())?,
        // Whoever is still there after all is not to take it for leave to go on.
        Went::TakenBack => return Ok(ExitCode::from(arguments.failed().unwrap_or(TAKEN_BACK))),
        Went::Unanswered(why) => {
            output::complain(&why);
            if is_closed {
                let denied = event::closed(&text, &why).context("it cannot be said that this is denied")?;
                output::print(&denied.to_string())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// The exit status of whatever error, where that is not the usual one: with anything but this the client goes on by its own
    /// policy.
    pub(super) fn failed(&self) -> Option<u8> {
        (self.fail == Fail::Closed).then_some(BLOCK)
    }

    /// The command line that does the same, from any folder, without printing settings.
    fn words(&self, program: PathBuf, global: &Global) -> anyhow::Result<Vec<String>> {
        let text = |path: PathBuf| {
            path.into_os_string()
                .into_string()
                .map_err(|path| anyhow::anyhow!("the path {} is not UTF-8", path.display()))
        };
        let path = |path: Option<&PathBuf>| {
            path.map(|path| absolute(path).map_err(anyhow::Error::from).and_then(text)).transpose()
        };
        let mut words = vec![text(program)?, "hook".to_owned(), "claude".to_owned()];
        let mut add = |flag: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        add("--fail", (self.fail == Fail::Closed).then(|| "closed".to_owned()));
        add("--timeout", self.timeout.clone());
        add("--who", self.who.clone());
        add("--inbox", self.inbox.as_deref().map(anywhere).transpose()?);
        add("--data-dir", path(self.data_dir.as_ref())?);
        add("--config", path(global.config.as_ref())?);
        add("--log", global.log.clone());
        add("--log-format", global.log_format.clone());
        Ok(words)
    }
}

/// What the client hands over.
fn input() -> anyhow::Result<String> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        bail!(
            "this reads a hook's JSON on stdin; have Claude Code run it: handraise hook claude --print-settings"
        );
    }
    let mut text = String::new();
    stdin.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text).context("stdin cannot be read")?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        bail!("stdin has more than {MAX_INPUT_BYTES} bytes, which no question of a hook has");
    }
    Ok(text)
}

/// An inbox's address, as it means the same from any folder.
fn anywhere(inbox: &str) -> anyhow::Result<String> {
    if inbox == "none" {
        bail!("--inbox is \"none\": nobody could be asked; name one with --inbox URL");
    }
    match inbox.parse().context("--inbox")? {
        InboxAddress::Socket(socket) => {
            let socket = absolute(socket)?.into_os_string().into_string();
            socket.map(|socket| format!("unix:{socket}")).map_err(|_| anyhow::anyhow!("--inbox is not UTF-8"))
        }
        _ => Ok(inbox.to_owned()),
    }
}

async fn ask(context: &Context, event: &Event, timeout: Duration, is_closed: bool) -> anyhow::Result<Went> {
    let abandoned = Abandoned::watch()?;
    let connecting = async {
        match holding::inbox(context, "")? {
            Some((inbox, token)) => holding::connect(context, HolderKind::Hook, inbox, token).await,
            None => bail!("the inbox is \"none\" by the settings; name one with --inbox URL"),
        }
    };
    let holder = tokio::select! {
        holder = connecting => holder,
        () = abandoned.happens() => return Ok(Went::TakenBack),
    };
    let holder = match holder {
        Ok(holder) => holder,
        Err(error) => {
            return Ok(Went::Unanswered(format!("nobody could be asked: {}", output::told(&error))));
        }
    };
    let taken_back = async {
        abandoned.happens().await;
        EndCause::RequestCancelled
    };
    let end = asking::put(&holder, event.ask(timeout, is_closed), &Caller::SILENT, taken_back).await;
    holder.shutdown_with_receipt(abandoned.interrupted()).await;
    let end = match end {
        Ok(end) => end,
        Err(error) => return Ok(Went::Unanswered(output::told(&error))),
    };
    if let Some(answer) = event.answer(&end) {
        return Ok(Went::Answered(answer));
    }
    Ok(match (end.outcome, end.refused) {
        (_, Some(refusal)) => {
            Went::Unanswered(format!("the inbox did not take the question: {}", refusal.message))
        }
        (Outcome::Cancel | Outcome::Withdrawn, None) => Went::TakenBack,
        (Outcome::Timeout, None) => {
            let away =
                if end.was_cut_off { ", and the inbox could not be reached all that time" } else { "" };
            Went::Unanswered(format!("nobody answered within {}{away}", duration::format(timeout)))
        }
        (outcome, None) => Went::Unanswered(format!("the question ended as {outcome}, without an answer")),
    })
}
