//! `handraise inbox show`: an ask as a whole, as text.

use std::process::ExitCode;

use handraise_api::{
    Timestamp,
    ask::{Ask, Question},
    words::Kind,
};
use handraise_transport::{
    clock::{Clock as _, SystemClock},
    escape,
};
use jiff::tz::TimeZone;

use super::{client::Client, words};
use crate::{Exit, output};

pub(super) async fn run(client: &Client, id: &str, is_json: bool) -> Exit {
    let id = client.find(id).await?;
    let answer = client.ask(&id).await?;
    if is_json {
        output::print(&serde_json::to_string_pretty(&answer)?)?;
    } else {
        let ask: Ask = serde_json::from_value(answer)?;
        output::print(text(&ask, SystemClock.wall()).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that an ask says, and how to answer it. Nothing is left out.
fn text(ask: &Ask, now: Timestamp) -> String {
    let mut lines = vec![
        format!("{} {}", words::who(&ask.origin), words::about(ask)),
        format!("ask {}, {}, opened {}", words::name(&ask.id), ask.content.source.as_str(), ask.opened_at),
    ];
    if let Some(settlement) = &ask.settlement {
        lines.push(words::ended(settlement, &TimeZone::UTC));
    } else {
        lines.push(words::left(ask, now));
        if !ask.holder_connected {
            lines.push("Not connected: an answer cannot reach it now.".to_owned());
        }
        lines.extend(words::whose(ask));
    }
    lines.push(String::new());
    lines.extend(all_lines(&ask.content.message, ""));
    if let Some(url) = &ask.content.url {
        lines.push(format!("page: {}", escape::line(url)));
    }
    if let Some(confirm) = &ask.content.confirm {
        lines.push(String::new());
        lines.push(format!("tool: {}", escape::line(&confirm.tool)));
        let rest = [("account", &confirm.account), ("target", &confirm.target), ("act", &confirm.action)];
        for (word, text) in rest {
            lines.extend(text.as_ref().map(|text| format!("{word}: {}", escape::line(text))));
        }
        lines.push("arguments:".to_owned());
        lines.extend(all_lines(&confirm.arguments, "  "));
        if let Some(preview) = &confirm.preview {
            lines.push(format!("{}:", words::PREVIEW));
            lines.extend(all_lines(preview, "  "));
        }
    }
    for (number, question) in ask.content.questions.iter().enumerate() {
        lines.push(String::new());
        lines.extend(question_lines(ask, number + 1, question));
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn question_lines(ask: &Ask, number: usize, question: &Question) -> Vec<String> {
    let title = question.title.as_deref().map(|title| format!("{}: ", escape::line(title)));
    let is_above = question.prompt.contains('\n') && question.prompt == ask.content.message;
    let prompt = if is_above { "as above" } else { &question.prompt };
    let mut prompt = prompt.split('\n').map(|line| escape::line(line.trim_end_matches('\r')));
    let first = prompt.next().map(|line| line.to_string()).unwrap_or_default();
    let mut lines = vec![format!("{number}. {}{first}", title.unwrap_or_default())];
    lines.extend(prompt.map(|line| format!("   {line}")));
    lines.push(format!("   {}", words::takes(question)));
    let key = escape::line(&question.id).to_string();
    for choice in words::choices(question) {
        let shown = if choice.label == choice.value {
            format!("   {key}={}", escape::line(&choice.value))
        } else {
            format!("   {key}={}  “{}”", escape::line(&choice.value), escape::line(&choice.label))
        };
        lines.push(shown);
        lines.extend(choice.description.iter().flat_map(|text| all_lines(text, "       ")));
        lines.extend(choice.preview.iter().flat_map(|text| all_lines(text, "       | ")));
    }
    if words::takes_words(question) {
        let has_choices = !words::choices(question).is_empty();
        let (sign, what) = match question.kind {
            Kind::Single | Kind::Multi | Kind::Boolean => (":=", "your own words"),
            Kind::Number | Kind::Integer => ("=", "the number"),
            Kind::Text => ("=", "the text"),
        };
        lines.push(format!("   {key}{sign}…  {what}"));
        if has_choices {
            lines.push(format!("       {}", words::beside(question, ask)));
        }
    }
    if let Some(default) = &question.default {
        lines.push(format!("   filled in by the asking side: {}", escape::line(&default.to_string())));
    }
    if question.secret {
        lines.push(format!("   {} Give it with --stdin {key}.", words::secret(ask)));
    }
    lines
}

/// Every line of somebody's text, escaped, behind an indent.
fn all_lines(text: &str, indent: &str) -> Vec<String> {
    text.split('\n').map(|line| format!("{indent}{}", escape::line(line.trim_end_matches('\r')))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::inbox::sample;

    #[test]
    fn an_ask_is_shown_with_everything_that_an_answer_needs() {
        let expected = "\
agent with token laptop, calls itself “codex-acp” asks
ask 01927c4a-7a3e-7b61-8a1e-3f7a2b3c4d5e, elicitation, opened 2026-11-29T14:00:00Z
9 min 0 s left, then it is declined without you

Which database?

1. Datastore: Which database?
   one of these
   db=Postgres
       The usual one
   db=SQLite  “A file”
       | one
       | file
   db:=…  your own words
       Sent beside your pick. Where the agent keeps only one, your words win.

2. What about envs?
   any number of these
   envs=dev
   envs=staging
   envs=prod

3. What about public?
   yes or no
   public=true  “Yes”
   public=false  “No”

4. What about port?
   a whole number
   port=…  the number

5. What about apiKey?
   text
   apiKey=…  the text
   Looks like a secret. “codex-acp” will see it in plain text. Give it with --stdin apiKey.
";
        assert_eq!(text(&sample::ask(), sample::now()), expected);
        let settled = text(&sample::settled(sample::ask()), sample::now());
        assert!(settled.contains("Ada answered nothing at 14:00:00 UTC (a human)"), "{settled}");
    }

    #[test]
    fn s26_a_guarded_call_is_shown_whole_and_the_servers_words_for_it_are_marked() {
        let ask = sample::confirm();
        let expected = "\
gateway with token laptop, calls itself “some client 2.1”, for server “mail” asks to confirm
ask 01927c4a-7a3e-7b61-8a1e-3f7a2b3c4d5e, confirm, opened 2026-11-29T14:00:00Z
9 min 0 s left, then it is refused

Send e-mail to 214 people

tool: mail_send
account: sales@example.com
target: customers-eu
act: Send e-mail
arguments:
  \"draftId\":\"r-5521\"
  \"subject\":\"Price change\"
what it would do, in the server's own words:
  214 recipients

1. What about confirm?
   yes or no, needed
   confirm=true  “Yes”
   confirm=false  “No”
";
        assert_eq!(text(&ask, sample::now()), expected);
    }

    #[test]
    fn a_question_of_several_lines_is_shown_in_lines_and_once() {
        let mut ask = sample::ask();
        ask.content.message = "Which?\nIt matters.".into();
        ask.content.questions[0].prompt = ask.content.message.clone();
        ask.content.questions[1].prompt = "What else?\r\nSay it.".into();
        let shown = text(&ask, sample::now());
        assert_eq!(shown.matches("It matters.").count(), 1, "{shown}");
        assert!(shown.contains("1. Datastore: as above\n"), "{shown}");
        assert!(shown.contains("2. What else?\n   Say it.\n"), "{shown}");
        assert!(!shown.contains("\\u{"), "{shown}");
    }

    #[test]
    fn s42_nothing_of_an_ask_moves_the_terminal() {
        let mut ask = sample::ask();
        let hostile = "\u{1b}]0;x\u{7}\u{202e}\r\u{9b}2J";
        ask.content.message = hostile.into();
        ask.content.url = Some(hostile.into());
        ask.origin.holder_token = hostile.into();
        ask.origin.server = Some(hostile.into());
        for question in &mut ask.content.questions {
            question.id = hostile.into();
            question.title = Some(hostile.into());
            question.prompt = hostile.into();
            question.default = Some(hostile.into());
            question.constraints.pattern = Some(hostile.into());
            question.constraints.format = Some(hostile.into());
            for choice in &mut question.choices {
                choice.value = hostile.into();
                choice.label = hostile.into();
                choice.description = Some(hostile.into());
                choice.preview = Some(hostile.into());
            }
        }
        let shown = text(&ask, sample::now());
        let hazards = shown.chars().filter(|c| *c != '\n' && escape::is_hazardous(*c)).count();
        assert_eq!(hazards, 0, "{shown}");
    }
}
