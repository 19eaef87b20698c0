//! `handraise ask`: a question of a script or hook, and the answer on stdout.

pub(crate) mod question;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use handraise_api::words::HolderKind;
use handraise_config::{LogFormat, duration};
use handraise_core::Outcome;
use handraise_holder::{EndCause, Holder};
use handraise_transport::escape;

use self::question::{ScriptQuestion, Wanted, status};
use crate::{
    Context, Exit,
    abandoned::Abandoned,
    asking::{self, Caller, End},
    holding, output,
};

/// Ask a human from a script
///
/// Asks a question in the inbox, waits, and prints the answer: the chosen value or the text, with --multi one value a
/// line. Exit status: 0 accepted, 3 declined, 4 cancelled (a signal, or whoever reads the answer has gone), 5 nobody
/// answered in time, 1 an error. Where the choices are exactly yes and no, or with --expect VALUE, 0 means yes, or that
/// value, and 6 means that something else was chosen: `handraise ask … && rest` runs the rest on yes alone.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  handraise ask \"Deploy?\" --choice yes --choice no && echo deploying\n  handraise ask \"Which region?\" --choice eu --choice us --expect eu --timeout 10m\n  handraise ask \"What goes into the release notes?\" --text --json"
)]
pub(crate) struct Arguments {
    /// The question
    #[arg(value_name = "QUESTION")]
    question: String,
    /// A choice; give it once for each
    #[arg(long = "choice", value_name = "VALUE")]
    choices: Vec<String>,
    /// Let several choices be picked
    #[arg(long)]
    multi: bool,
    /// Take free text, instead of a choice where there are choices
    #[arg(long)]
    text: bool,
    /// How long to wait for an answer; 55m otherwise
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Exit with 0 for this answer alone, and with 6 for another one
    #[arg(long, value_name = "VALUE")]
    expect: Option<String>,
    /// Whose answer counts: operator (every operator's), caller, or not-the-caller, by the owners of both tokens
    #[arg(long, value_name = "WHO")]
    pub(crate) who: Option<String>,
    /// Print {outcome, provenance, content: {"answer": …}}, however it ends, and {error: {code, message}} with them where
    /// the inbox did not take the question
    #[arg(long)]
    json: bool,
    /// The inbox: https://HOST, http://127.0.0.1:PORT, or unix:SOCKET; otherwise the one of the data directory
    #[arg(long, value_name = "URL")]
    pub(crate) inbox: Option<String>,
    /// The data directory of the inbox on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl Arguments {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            message: &self.question,
            choices: &self.choices,
            is_multi: self.multi,
            takes_text: self.text,
            timeout: self.timeout.as_deref(),
            expect: self.expect.as_deref(),
        }
    }
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Exit {
    let question = ScriptQuestion::new(arguments.wanted())?;
    let Some((inbox, token)) = holding::inbox(context, "")? else {
        bail!("the inbox is \"none\" by the settings, so nobody can be asked; name one with --inbox URL");
    };
    crate::block_on(async {
        let abandoned = Abandoned::watch()?;
        let holder = tokio::select! {
            holder = holding::connect(context, HolderKind::Ask, inbox, token) => holder?,
            () = abandoned.happens() => return Ok(ExitCode::from(status::CANCEL)),
        };
        let taken_back = async {
            abandoned.happens().await;
            EndCause::RequestCancelled
        };
        let end = asking::put(&holder, question.ask(), &Caller::SILENT, taken_back).await?;
        // The inbox hears how it ended before we are gone. Whoever interrupts that does not want the rest to run.
        let told = tokio::time::timeout(Holder::SHUTDOWN_GRACE, holder.told());
        let is_told = tokio::select! {
            biased;
            () = abandoned.happens(), if end.outcome == Outcome::Accept => {
                output::complain("interrupted after the answer had come; it is not used");
                return Ok(ExitCode::from(status::CANCEL));
            }
            told = told => told.is_ok(),
        };
        // In words of its own: an answer that nobody has read is an error, also where the reader has gone.
        let report = || {
            report(&end, arguments.json).map_err(|unwritten| {
                anyhow::anyhow!("the answer cannot be written to stdout: {}", unwritten.0)
            })
        };
        if is_told {
            holder.shutdown().await;
            report()?;
        } else {
            let reported = report();
            if end.by.is_some() {
                give_receipt(holder.told(), abandoned.interrupted()).await;
            }
            reported?;
        }
        explain(context.settings.log_format, &question, &end);
        Ok(ExitCode::from(question.status(&end)))
    })
}

/// Waits for an inbox that went away between its answer and our receipt for it; without the receipt it would show the
/// answer as on its way for a day. The answer has been printed, and stands whatever becomes of this.
async fn give_receipt(told: impl Future<Output = ()>, interrupted: impl Future<Output = ()>) {
    let patience = duration::format(Holder::RECEIPT_GRACE);
    output::complain(&format!(
        "the answer is here, but the inbox went away before it heard that it counts; waiting up to {patience} for it \
         to come back. Ctrl-C ends the wait and changes nothing about the answer"
    ));
    let is_told = tokio::select! {
        biased;
        told = tokio::time::timeout(Holder::RECEIPT_GRACE, told) => told.is_ok(),
        () = interrupted => false,
    };
    output::complain(if is_told {
        "the inbox is back and has heard it"
    } else {
        "the inbox did not come back; it will show the answer as sent, without how it ended"
    });
}

/// Prints the answer: for a program as it is, for a terminal with what could move it made visible (S42).
fn report(end: &End, is_json: bool) -> Result<(), output::Unwritten> {
    if is_json {
        return output::print(&escape::json(&end.json().to_string()));
    }
    let is_terminal = io::stdout().is_terminal();
    for answer in end.answers() {
        if is_terminal {
            output::print(&escape::text(answer).to_string())?;
        } else {
            output::print(answer)?;
        }
    }
    Ok(())
}

/// Says on stderr why the exit status is not 0.
fn explain(format: LogFormat, question: &ScriptQuestion, end: &End) {
    let by = end.by.as_deref().map_or_else(|| "somebody".to_owned(), |by| escape::shortened(by, 128));
    let why = end.reason.as_deref().map(|reason| format!(": {}", escape::shortened(reason, 500)));
    let why = why.unwrap_or_default();
    if let Some(refusal) = &end.refused {
        return output::fail(format, &format!("the inbox did not take the question: {}", refusal.message));
    }
    match question.status(end) {
        status::ACCEPT => {}
        status::ANOTHER => {
            let expected = escape::shortened(question.expected().unwrap_or_default(), 60);
            output::complain(&format!("{by} did not answer \"{expected}\""));
        }
        status::DECLINE => output::complain(&format!("declined by {by}{why}")),
        status::CANCEL => output::complain("the question was taken back before anybody answered"),
        status::NOBODY => {
            output::complain(&format!("nobody answered within {}", duration::format(question.timeout())));
        }
        _ => output::fail(format, &format!("the question ended as {}{why}", end.outcome)),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_receipt_ends_with_it_with_a_signal_or_after_thirty_seconds() {
        let start = Instant::now();
        let seconds = |n| sleep(Duration::from_secs(n));
        give_receipt(seconds(7), pending()).await;
        assert_eq!(start.elapsed().as_secs(), 7);
        give_receipt(pending(), seconds(3)).await;
        assert_eq!(start.elapsed().as_secs(), 10);
        give_receipt(pending(), pending()).await;
        assert_eq!(start.elapsed().as_secs(), 40);
    }
}
