//! What the terminal says about an ask, in the words of the page.
//!
//! What strangers wrote is quoted, bounded where there is little room, and never moves the terminal (S26, S42).

use std::borrow::Cow;

use handraise_api::{
    Timestamp,
    ask::{Answer, Ask, Choice, Origin, Question, Settlement},
    words::{Companion, HolderKind, Kind, OnDeadline, Outcome, Provenance, Source, Who},
};
use handraise_transport::escape;
use jiff::tz::TimeZone;

/// Stands above what a guarded call's server says that it would do: it is that server's word alone.
pub(crate) const PREVIEW: &str = "what it would do, in the server's own words";

/// Somebody's text in one line of at most `limit` characters. What is left out is counted (S26).
pub(crate) fn brief(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return escape::line(text).to_string();
    }
    let shown: String = text.chars().take(limit).collect();
    format!("{} … {} more characters", escape::line(&shown), count - limit)
}

/// The first line of a text, for a row of a list; how much more there is is said (S26).
pub(crate) fn heading(text: &str, limit: usize) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let shown: String = first.chars().take(limit).collect();
    match text.chars().count() - shown.chars().count() {
        0 => escape::line(&shown).to_string(),
        hidden => format!("{} … {hidden} more characters", escape::line(&shown)),
    }
}

/// A name, which is no place for a story.
pub(crate) fn name(text: &str) -> String {
    brief(text, 80)
}

/// What holds an ask, in a word.
pub(crate) fn holder(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Agent => "agent",
        HolderKind::Gateway => "gateway",
        HolderKind::Ask => "script",
        HolderKind::Tool => "tool",
        HolderKind::Hook => "hook",
    }
}

/// Who asks: the token that proved it first, then what it calls itself (S26).
pub(crate) fn who(origin: &Origin) -> String {
    let mut who = format!("{} with token {}", holder(origin.holder), name(&origin.holder_token));
    if let Some(client) = &origin.client {
        let version = client.version.as_deref().map(|version| format!(" {}", name(version)));
        who.push_str(&[", calls itself “", &name(&client.name), &version.unwrap_or_default(), "”"].concat());
    }
    if let Some(server) = &origin.server {
        who.push_str(&[", for server “", &name(server), "”"].concat());
    }
    who
}

/// What an ask is about, where it is not a plain question.
pub(crate) fn about(ask: &Ask) -> &'static str {
    match ask.content.source {
        Source::Permission => "asks permission",
        Source::Refusal => "asks after a refusal",
        Source::Confirm => "asks to confirm",
        Source::Elicitation | Source::Tool | Source::Script if ask.content.url.is_some() => {
            "asks you to open a page"
        }
        Source::Elicitation | Source::Tool | Source::Script => "asks",
    }
}

/// Whose answers count, where not everybody's do (S16).
pub(crate) fn whose(ask: &Ask) -> Option<String> {
    let owner = ask.origin.owner.as_deref().map_or_else(|| "nobody known".to_owned(), name);
    match ask.content.who {
        Who::Operator => None,
        Who::Caller => Some(format!("Only {owner} may answer this, with a token made with --owner.")),
        Who::NotTheCaller => {
            Some(format!("Anybody but {owner} may answer this, with a token made with --owner."))
        }
    }
}

/// How long is left, as `4 min 12 s`.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Seconds until the deadline, when there is one.
pub(crate) fn seconds_left(ask: &Ask, now: Timestamp) -> Option<i64> {
    ask.deadline.map(|deadline| deadline.duration_since(now).as_secs())
}

/// How long is left, and what happens then. One that is parked has no call that waits for it.
pub(crate) fn left(ask: &Ask, now: Timestamp) -> String {
    if !ask.holder_connected {
        return "Nobody waits for it now: its process is gone, or cut off from the inbox".to_owned();
    }
    if let Some(seconds) = parked_for(ask, now) {
        let span = span(seconds);
        return format!(
            "The call ended without an answer. Answer within {span}: the next identical call uses it once, unasked."
        );
    }
    let Some(seconds) = seconds_left(ask, now) else {
        return "It waits for you, without a deadline".to_owned();
    };
    if seconds <= 0 {
        return "Time is up; waiting to hear how it ended".to_owned();
    }
    let then = match ask.content.on_deadline {
        Some(OnDeadline::Decline) => "then it is declined without you",
        Some(OnDeadline::Refuse) => "then it is refused",
        None => "then it goes on without an answer",
    };
    format!("{} left, {then}", span(seconds))
}

/// How long an answer to a parked ask is still of use, in seconds.
fn parked_for(ask: &Ask, now: Timestamp) -> Option<i64> {
    let seconds = ask.parked_until?.duration_since(now).as_secs();
    (seconds > 0).then_some(seconds)
}

/// The same for a list.
pub(crate) fn left_briefly(ask: &Ask, now: Timestamp) -> String {
    if let Some(seconds) = parked_for(ask, now) {
        return format!("parked {}", span(seconds));
    }
    match seconds_left(ask, now) {
        None => "no deadline".to_owned(),
        Some(seconds) if seconds <= 0 => "time is up".to_owned(),
        Some(seconds) => span(seconds),
    }
}

/// The last characters of an id, which differ first: the others are its time.
pub(crate) fn short_id(id: &str) -> String {
    const SHORT: usize = 8;
    let skip = id.chars().count().saturating_sub(SHORT);
    name(&id.chars().skip(skip).collect::<String>())
}

/// The time of day in a zone, and which zone that is.
pub(crate) fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S %Z").to_string()
}

/// What a question takes.
pub(crate) fn takes(question: &Question) -> String {
    let constraints = &question.constraints;
    let mut words: Vec<String> = vec![
        match question.kind {
            Kind::Single => "one of these",
            Kind::Multi => "any number of these",
            Kind::Text => "text",
            Kind::Boolean => "yes or no",
            Kind::Number => "a number",
            Kind::Integer => "a whole number",
        }
        .to_owned(),
    ];
    let range = |least: Option<String>, most: Option<String>, unit: &str| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let number = |number: &Option<serde_json::Number>| number.as_ref().map(ToString::to_string);
    let count = |count: Option<u64>| count.map(|count| count.to_string());
    words.extend(range(count(constraints.min_items), count(constraints.max_items), ""));
    words.extend(range(number(&constraints.minimum), number(&constraints.maximum), ""));
    words.extend(range(count(constraints.min_length), count(constraints.max_length), " characters"));
    words.extend(constraints.format.as_deref().map(|format| format!("format {}", name(format))));
    words.extend(constraints.pattern.as_deref().map(|pattern| format!("pattern {}", brief(pattern, 200))));
    if question.required {
        words.push("needed".to_owned());
    }
    words.join(", ")
}

/// What is said under free text that stands beside a pick.
pub(crate) fn beside(question: &Question, ask: &Ask) -> Cow<'static, str> {
    match (ask.content.allows_text_with_selection, question.companion) {
        (false, _) => "Your words or a pick, not both.".into(),
        (true, Some(Companion::Adds)) => "Sent beside your pick.".into(),
        (true, Some(Companion::Replaces) | None) => {
            let holder = holder(ask.origin.holder);
            format!("Sent beside your pick. Where the {holder} keeps only one, your words win.").into()
        }
    }
}

/// What a secret question is told with.
pub(crate) fn secret(ask: &Ask) -> String {
    let client = ask.origin.client.as_ref().map(|client| format!("“{}”", name(&client.name)));
    let server = ask.origin.server.as_ref().map(|server| format!("“{}”", name(server)));
    let names = match (client, server) {
        (Some(client), Some(server)) => format!("{client} and {server}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "Whoever asks".to_owned(),
    };
    format!("Looks like a secret. {names} will see it in plain text.")
}

/// A choice: its label, and what is sent for it where that is something else (S26).
pub(crate) fn choice(choice: &Choice, limit: usize) -> String {
    let label = brief(&choice.label, limit);
    if choice.label == choice.value {
        return label;
    }
    format!("{label}  (sends “{}”)", brief(&choice.value, limit))
}

/// The two choices of a yes-or-no question.
pub(crate) fn yes_and_no() -> [Choice; 2] {
    [("true", "Yes"), ("false", "No")].map(|(value, label)| Choice {
        value: value.to_owned(),
        label: label.to_owned(),
        description: None,
        preview: None,
    })
}

/// The choices of a question, those of a yes-or-no question included.
pub(crate) fn choices(question: &Question) -> Vec<Choice> {
    if question.kind == Kind::Boolean && question.choices.is_empty() {
        yes_and_no().to_vec()
    } else {
        question.choices.clone()
    }
}

/// Whether a question takes words at all.
pub(crate) fn takes_words(question: &Question) -> bool {
    question.allows_text || matches!(question.kind, Kind::Text | Kind::Number | Kind::Integer)
}

/// What was answered, in short.
pub(crate) fn answered(answers: &[Answer]) -> String {
    let each = answers.iter().map(|answer| {
        let mut parts: Vec<String> =
            answer.selected_options.iter().map(|pick| format!("“{}”", brief(pick, 80))).collect();
        if !answer.custom_text.is_empty() {
            parts.push(format!("“{}”", brief(&answer.custom_text, 80)));
        }
        parts.join(" and ")
    });
    let each: Vec<String> = each.filter(|said| !said.is_empty()).collect();
    if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
}

/// How an ask ended: who, what, when.
pub(crate) fn ended(settlement: &Settlement, zone: &TimeZone) -> String {
    let at = clock(settlement.at, zone);
    let by = settlement.by.as_deref().map_or_else(|| "somebody".to_owned(), name);
    let stands = match settlement.provenance {
        Provenance::Human => "a human",
        Provenance::Client => "a client reports it, we saw nobody",
        Provenance::NotShown => "not shown to anybody",
        Provenance::System => "recorded as system, not as a human",
    };
    let reason = settlement.reason.as_deref().filter(|reason| !reason.is_empty());
    let why = reason.map(|reason| format!(": “{}”", brief(reason, 200))).unwrap_or_default();
    match settlement.outcome {
        Outcome::Accept => format!("{by} answered {} at {at} ({stands})", answered(&settlement.answers)),
        Outcome::Decline if settlement.provenance != Provenance::System => {
            format!("{by} skipped it at {at} ({stands}){why}")
        }
        Outcome::Timeout => format!("nobody answered before the deadline at {at} ({stands})"),
        Outcome::Cancel => format!("the asking side cancelled it at {at} ({stands}){why}"),
        Outcome::Withdrawn => format!("no longer needed at {at} ({stands}){why}"),
        Outcome::Decline
        | Outcome::Invalid
        | Outcome::Error
        | Outcome::NotOffered
        | Outcome::Disabled
        | Outcome::Remembered
        | Outcome::Asked => {
            format!("ended as {} at {at} ({stands}){why}", settlement.outcome.as_str().replace('_', " "))
        }
    }
}

#[cfg(test)]
mod tests {
    use handraise_api::ask::Implementation;

    use super::*;

    #[test]
    fn s26_the_token_comes_first_and_names_are_claims() {
        let origin = Origin {
            holder: HolderKind::Agent,
            holder_token: "laptop".into(),
            owner: None,
            client: Some(Implementation { name: "codex\u{202e}-acp".into(), version: Some("1.2".into()) }),
            server: Some("files".into()),
        };
        assert_eq!(
            who(&origin),
            "agent with token laptop, calls itself “codex\\u{202e}-acp 1.2”, for server “files”"
        );
    }

    #[test]
    fn s26_a_value_that_differs_from_its_label_is_shown() {
        let mut option =
            Choice { value: "rm".into(), label: "Keep".into(), description: None, preview: None };
        assert_eq!(choice(&option, 80), "Keep  (sends “rm”)");
        option.value = "Keep".into();
        assert_eq!(choice(&option, 80), "Keep");
    }

    #[test]
    fn s26_hidden_length_is_announced() {
        assert_eq!(brief("short", 5), "short");
        assert_eq!(brief(&"x".repeat(1_000), 3), "xxx … 997 more characters");
        assert_eq!(
            brief("\u{1b}[31m\nabc", 4),
            "\\u{1b}[31 … 5 more characters",
            "S42, and characters are counted"
        );
    }

    #[test]
    fn a_row_has_the_first_line_and_counts_the_rest() {
        assert_eq!(heading("\none line\r\n", 80), "one line");
        assert_eq!(heading("first\nsecond", 80), "first … 7 more characters");
        assert_eq!(heading("first\nsecond", 2), "fi … 10 more characters");
        assert_eq!(heading("", 80), "");
    }

    #[test]
    fn of_an_ask_whose_process_is_not_there_no_time_is_told() {
        let mut ask = crate::commands::inbox::sample::ask();
        ask.holder_connected = false;
        let told = left(&ask, crate::commands::inbox::sample::now());
        assert!(told.starts_with("Nobody waits for it now"), "{told}");
    }

    #[test]
    fn spans_are_words() {
        for (seconds, words) in
            [(-5, "0 s"), (59, "59 s"), (252, "4 min 12 s"), (3_700, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(span(seconds), words);
        }
    }

    #[test]
    fn a_parked_ask_says_what_an_answer_is_still_good_for() {
        let mut ask = crate::commands::inbox::sample::single(Source::Refusal);
        let now = crate::commands::inbox::sample::now();
        ask.deadline = Some("2026-11-29T14:12:00Z".parse().unwrap());
        assert_eq!(left(&ask, now), "12 min 0 s left, then it is declined without you");
        ask.parked_until = ask.deadline;
        assert_eq!(
            left(&ask, now),
            "The call ended without an answer. Answer within 12 min 0 s: the next identical call uses it once, unasked."
        );
        assert_eq!(left_briefly(&ask, now), "parked 12 min 0 s");
        let late = "2026-11-29T14:12:01Z".parse().unwrap();
        assert_eq!(left(&ask, late), "Time is up; waiting to hear how it ended");
    }

    #[test]
    fn times_are_told_in_utc() {
        let at = "2026-11-29T14:04:07.123Z".parse().unwrap();
        assert_eq!(clock(at, &TimeZone::UTC), "14:04:07 UTC");
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(clock(at, &east), "16:04:07 +02");
    }
}
