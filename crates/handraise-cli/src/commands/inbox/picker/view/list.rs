//! The list of open asks.

use handraise_api::{Timestamp, ask::Ask, words::AskState};

use super::{
    super::{
        super::words,
        state::Picker,
        text::{Line, Style},
    },
    Frame, Size,
};

pub(super) fn list_frame(picker: &Picker, now: Timestamp, size: Size) -> Frame {
    let shown = picker.shown();
    let more = if picker.has_more() { " and more" } else { "" };
    let mut lines =
        vec![Line::new(Style::Bold, "Inbox").and(Style::Dim, &format!("  {} open{more}", picker.asks.len()))];
    lines.push(Line::default());
    if !picker.is_loaded {
        lines.push(Line::new(Style::Dim, "Loading your inbox…"));
    } else if picker.asks.is_empty() {
        lines.push(Line::new(Style::Bold, "No hands up"));
        lines.push(Line::new(
            Style::Dim,
            "Nothing is waiting for you. The next question appears here by itself.",
        ));
    } else if shown.is_empty() {
        lines.push(Line::new(Style::Plain, "No ask matches."));
    }
    let room = size.rows.saturating_sub(4).max(1);
    let place = shown.iter().position(|ask| picker.selected.as_ref() == Some(&ask.id)).unwrap_or(0);
    let top = place.saturating_sub(room / 2).min(shown.len().saturating_sub(room));
    for ask in shown.into_iter().skip(top).take(room) {
        lines.push(list_row(picker, ask, now));
    }
    Frame { lines, ..Frame::default() }
}

fn list_row(picker: &Picker, ask: &Ask, now: Timestamp) -> Line {
    let is_selected = picker.selected.as_ref() == Some(&ask.id);
    let is_fresh = picker.fresh.contains(&ask.id);
    let left = match ask.state {
        AskState::Sent => "sent".to_owned(),
        AskState::Open | AskState::Settled if !ask.holder_connected => "not connected".to_owned(),
        AskState::Open | AskState::Settled => words::left_briefly(ask, now),
    };
    let soon = ask.holder_connected && words::seconds_left(ask, now).is_some_and(|seconds| seconds <= 300);
    let client = ask.origin.client.as_ref().map(|client| format!(" “{}”", words::brief(&client.name, 30)));
    let who = format!("{}{}", words::brief(&ask.origin.holder_token, 30), client.unwrap_or_default());
    let message = words::heading(&ask.content.message, 300);
    let body = if is_selected {
        Style::Focus
    } else if is_fresh {
        Style::Bold
    } else {
        Style::Plain
    };
    Line::new(Style::Accent, if is_selected { "›" } else { " " })
        .and(
            Style::Accent,
            if picker.marked.contains(&ask.id) {
                "x "
            } else if is_fresh {
                "• "
            } else {
                "  "
            },
        )
        .and(if soon { Style::Warn } else { Style::Dim }, &format!("{left:<14}"))
        .and(Style::Dim, &format!("{who}  "))
        .and(body, &message)
}
