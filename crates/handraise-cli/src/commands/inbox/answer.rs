//! `handraise inbox answer` and `skip`: a submission, and the verdict on it as words and an exit status.

use std::{
    io::{self, Read as _},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use handraise_api::ask::{AnswerRequest, Ask};
use handraise_core::form::MAX_CONTENT_BYTES;
use jiff::tz::TimeZone;

use super::{
    Answer,
    client::{Client, Verdict},
    given, words,
};
use crate::{Exit, output};

/// What the exit status says.
mod status {
    pub(super) const DELIVERED: u8 = 0;
    pub(super) const REFUSED: u8 = 3;
    pub(super) const ENDED: u8 = 4;
    pub(super) const NOT_CONNECTED: u8 = 5;
    pub(super) const UNKNOWN: u8 = 6;
}

pub(super) async fn answer(client: &Client, arguments: &Answer) -> Exit {
    let id = client.find(&arguments.id).await?;
    let ask: Ask = serde_json::from_value(client.ask(&id).await?)?;
    if arguments.answers.is_empty() && arguments.stdin.is_none() && !ask.content.questions.is_empty() {
        bail!("there is no answer; write key=value, or see {} for the questions", client.shows(&id));
    }
    let typed = match &arguments.stdin {
        Some(key) => Some((key.as_str(), read_stdin()?)),
        None => None,
    };
    let given = given::read(&ask.content.questions, &arguments.answers, typed)?;
    for key in &given.exposed {
        output::complain(&format!(
            "warning: \"{0}\" looks like a secret, and others on this machine can read arguments; use --stdin {0}",
            words::name(key)
        ));
    }
    let request = AnswerRequest { answers: given.answers, ..AnswerRequest::default() };
    send(client, &id, &request, arguments.json).await
}

pub(super) async fn skip(client: &Client, id: &str, reason: &str, is_json: bool) -> Exit {
    let id = client.find(id).await?;
    let request =
        AnswerRequest { rejected: true, reject_reason: reason.to_owned(), ..AnswerRequest::default() };
    send(client, &id, &request, is_json).await
}

/// Words from stdin, without the line end that a shell puts after them.
fn read_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    let most = MAX_CONTENT_BYTES as u64;
    io::stdin()
        .lock()
        .take(most + 1)
        .read_to_string(&mut text)
        .context("the words on stdin cannot be read")?;
    if text.len() as u64 > most {
        bail!("there are more than {most} bytes on stdin, and an answer takes no more");
    }
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

async fn send(client: &Client, id: &str, request: &AnswerRequest, is_json: bool) -> Exit {
    let verdict = client.answer(id, request).await?;
    if let Verdict::Delivered(ask) = &verdict {
        if is_json {
            output::print(&serde_json::to_string_pretty(ask)?)?;
        } else {
            output::print(&delivered(ask))?;
        }
        return Ok(ExitCode::from(status::DELIVERED));
    }
    let (status, lines) = not_delivered(id, &client.shows(id), &verdict);
    for line in lines {
        output::complain(&line);
    }
    Ok(ExitCode::from(status))
}

fn delivered(ask: &Ask) -> String {
    let how = ask
        .settlement
        .as_ref()
        .map_or_else(|| "it is delivered".to_owned(), |how| words::ended(how, &TimeZone::UTC));
    if ask.replayed { format!("{how}; the same answer had been delivered before") } else { how }
}

/// The exit status and the words of a verdict that is no delivery. `shows` is the command that shows the ask.
fn not_delivered(id: &str, shows: &str, verdict: &Verdict) -> (u8, Vec<String>) {
    match verdict {
        Verdict::Delivered(ask) => (status::DELIVERED, vec![delivered(ask)]),
        Verdict::Invalid(error) => {
            let mut lines = vec!["refused; nothing was sent on, the ask is still open".to_owned()];
            if error.details.is_empty() {
                lines.push(format!("  {}", words::brief(&error.message, 500)));
            }
            for detail in &error.details {
                let question = if detail.question_id.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", words::name(&detail.question_id))
                };
                lines.push(format!("  {question}{}", words::brief(&detail.message, 500)));
            }
            (status::REFUSED, lines)
        }
        Verdict::Ended(ended) => {
            let mut lines = match &ended.settlement {
                Some(settlement) => {
                    vec![format!(
                        "too late: {}. Your answer was not sent.",
                        words::ended(settlement, &TimeZone::UTC)
                    )]
                }
                None => vec![format!("there is no ask {id}, or it ended long ago")],
            };
            if ended.recorded {
                lines.push("It is kept as what you chose, and was not delivered.".to_owned());
            }
            (status::ENDED, lines)
        }
        Verdict::NotConnected => (
            status::NOT_CONNECTED,
            vec![
                "whoever asks is not connected; nothing was sent or queued, the ask is still open".to_owned(),
            ],
        ),
        Verdict::Unknown => {
            (status::UNKNOWN, vec![format!("sent, and nobody knows yet whether it counted; {shows} tells")])
        }
    }
}

#[cfg(test)]
mod tests {
    use handraise_api::error::{ErrorBody, ErrorCode, ErrorDetail, NotFoundResponse};

    use super::*;
    use crate::commands::inbox::sample;

    #[test]
    fn every_verdict_has_a_status_of_its_own_and_words() {
        let detail = ErrorDetail {
            question_id: "port".into(),
            rule: "maximum".into(),
            message: "“900” is too large. The most it takes is 600.\u{1b}[2J".into(),
        };
        let invalid = ErrorBody { details: vec![detail], ..ErrorBody::new(ErrorCode::Invalid, "m") };
        let ended = |settlement, recorded| {
            let error = ErrorBody::new(ErrorCode::NotFound, "m");
            Verdict::Ended(Box::new(NotFoundResponse { error, settlement, recorded }))
        };
        let settlement = sample::settled(sample::ask()).settlement;
        for (verdict, status, words) in [
            (Verdict::Invalid(invalid), 3, "port: “900” is too large. The most it takes is 600.\\u{1b}[2J"),
            (ended(settlement, true), 4, "too late: Ada answered nothing at 14:00:00 UTC (a human)"),
            (ended(None, false), 4, "there is no ask id"),
            (Verdict::NotConnected, 5, "the ask is still open"),
            (Verdict::Unknown, 6, "`handraise inbox show id` tells"),
        ] {
            let (got, lines) = not_delivered("id", "`handraise inbox show id`", &verdict);
            assert_eq!(got, status, "{verdict:?}");
            assert!(lines.join("\n").contains(words), "{lines:?}");
        }
    }
}
