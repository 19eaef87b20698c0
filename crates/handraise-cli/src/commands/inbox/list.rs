//! `handraise inbox list`.

use std::process::ExitCode;

use handraise_api::{
    Timestamp,
    ask::{Ask, AskList},
    words::AskState,
};
use handraise_transport::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::{
    List,
    client::{Client, escaped},
    words,
};
use crate::{Exit, output};

pub(super) async fn run(client: &Client, list: &List) -> Exit {
    let mut query = format!("state={}&limit={}", list.state, list.limit);
    if let Some(session) = &list.session {
        query.push_str("&session=");
        query.push_str(&escaped(session));
    }
    if let Some(source) = list.source {
        query.push_str("&source=");
        query.push_str(source.as_str());
    }
    let answer: Value = client.get(&format!("/api/v1/asks?{query}")).await?;
    if list.json {
        output::print(&serde_json::to_string_pretty(&answer)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let AskList { asks, next_cursor } = serde_json::from_value(answer)?;
    for line in table(&asks, SystemClock.wall()) {
        output::print(&line)?;
    }
    match (asks.is_empty(), next_cursor) {
        (true, _) if list.state == "open" => output::complain("No hands up: nothing is waiting for you."),
        (true, _) => output::complain("Nothing has ended yet."),
        (false, Some(_)) => {
            output::complain(&format!("There are more than these {}; see --limit.", asks.len()));
        }
        (false, None) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each ask: its id, how long it waits or how it ended, who asks, and what.
fn table(asks: &[Ask], now: Timestamp) -> Vec<String> {
    let mut asks: Vec<&Ask> = asks.iter().collect();
    // Those for which nobody waits come last.
    asks.sort_by_key(|ask| ask.state != AskState::Settled && !ask.holder_connected);
    let rows: Vec<[String; 4]> = asks
        .into_iter()
        .map(|ask| {
            let state = match (&ask.settlement, ask.state) {
                (Some(settlement), _) => settlement.outcome.as_str().replace('_', " "),
                (None, AskState::Sent) => "sent".to_owned(),
                (None, _) if !ask.holder_connected => "not connected".to_owned(),
                (None, _) => words::left_briefly(ask, now),
            };
            let token = words::name(&ask.origin.holder_token);
            let client = ask.origin.client.as_ref().map(|client| format!(" “{}”", words::name(&client.name)));
            let who = format!("{token}{}", client.unwrap_or_default());
            [words::short_id(&ask.id), state, who, words::heading(&ask.content.message, 100)]
        })
        .collect();
    columns(&rows)
}

/// Rows whose first three cells stand below each other.
pub(super) fn columns(rows: &[[String; 4]]) -> Vec<String> {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let [a, b, c] = [width(0), width(1), width(2)];
    let line = |[first, second, third, rest]: &[String; 4]| {
        format!("{first:<a$}  {second:<b$}  {third:<c$}  {rest}").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::inbox::sample;

    #[test]
    fn asks_for_which_nobody_waits_come_last_and_the_others_keep_their_order() {
        let row = |id: &str, is_connected| {
            let mut ask = sample::ask();
            (ask.id, ask.holder_connected) = (id.into(), is_connected);
            ask
        };
        let mut ended = sample::settled(row("dddd", false));
        ended.holder_connected = false;
        let asks = [row("aaaa", false), row("bbbb", true), row("cccc", true), ended];
        let lines = table(&asks, sample::now());
        let ids: Vec<_> = lines.iter().map(|line| line.split("  ").next().unwrap()).collect();
        assert_eq!(ids, ["bbbb", "cccc", "dddd", "aaaa"]);
    }

    #[test]
    fn s26_s42_a_row_says_who_asks_by_token_first_and_moves_no_terminal() {
        let mut hostile = sample::ask();
        hostile.content.message = format!("\u{1b}[2J{}", "x".repeat(200));
        let mut lost = sample::ask();
        lost.origin.client = None;
        (lost.deadline, lost.holder_connected) = (None, false);
        let lines = table(&[hostile, lost], sample::now());
        assert_eq!(lines[0].split("  ").next(), Some("2b3c4d5e"));
        assert!(lines[0].contains("9 min 0 s      laptop “codex-acp”  \\u{1b}[2J"), "{}", lines[0]);
        assert!(lines[0].ends_with("x … 104 more characters"), "{}", lines[0]);
        assert!(lines[1].contains("not connected  laptop              Which database?"), "{}", lines[1]);
    }
}
