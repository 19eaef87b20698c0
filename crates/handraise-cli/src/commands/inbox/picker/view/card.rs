//! One card: who asks and until when, what is asked, and how it is answered.

use handraise_api::{ask::Ask, words::AskState};
use jiff::ZonedDateTime;

use super::{
    super::{
        super::words,
        card::{Card, Sending, Stop},
        text::{Line, Style, wrap},
    },
    Frame, LONG, Row, SHORT, Size, bounded,
    question::question_rows,
};

pub(super) fn card_frame(card: &mut Card, now: &ZonedDateTime, size: Size) -> Frame {
    let head = card_head(card, now, size.columns);
    let head_rows = head.len().min(size.rows.saturating_sub(4));
    let room = size.rows.saturating_sub(2 + head_rows).max(1);
    let rows = card_rows(card, size.columns);
    let most = rows.len().saturating_sub(room);
    card.page = room;
    if card.follows {
        let of_focus = |row: &Row| row.stop == Some(card.focus);
        let first = rows.iter().position(of_focus);
        let last = rows.iter().rposition(of_focus);
        if let (Some(first), Some(last)) = (first, last) {
            if last >= card.top + room {
                card.top = last + 1 - room;
            }
            // What a question asks stands over its first choice.
            let first = rows.get(..first).map_or(first, |before| {
                before.iter().rposition(|row| row.stop.is_some()).map_or(0, |at| at + 1)
            });
            card.top = card.top.min(first);
        }
    }
    card.top = card.top.min(most);
    let mut frame = Frame { lines: head, ..Frame::default() };
    frame.lines.truncate(head_rows);
    let mut painted = Vec::new();
    for (at, row) in rows.into_iter().skip(card.top).take(room).enumerate() {
        painted.extend(row.question);
        if let Some(column) = row.cursor {
            frame.cursor = Some((column.min(size.columns - 1), head_rows + at));
        }
        frame.lines.push(row.line);
    }
    frame.painted = Some((card.ask.id.clone(), painted));
    frame
}

/// Who asks and until when: always on screen (S26).
fn card_head(card: &Card, now: &ZonedDateTime, columns: usize) -> Vec<Line> {
    let ask = &card.ask;
    let mut lines =
        wrap(Style::Accent, "", &format!("{} {}", words::who(&ask.origin), words::about(ask)), columns);
    lines.truncate(3);
    match (&ask.settlement, card.sending) {
        (Some(settlement), _) => {
            let title = if !card.is_mine {
                "Ended: "
            } else if settlement.outcome == handraise_api::words::Outcome::Accept {
                "You answered, and it was delivered. "
            } else {
                "You skipped it, and whoever asks was told. "
            };
            let how = words::ended(settlement, now.time_zone());
            lines.extend(wrap(Style::Bold, "", &format!("{title}{how}"), columns));
        }
        (None, Sending::Waiting) => {
            let holder = words::holder(ask.origin.holder);
            let sent = format!("Sent. Waiting for the {holder} to take it…  Nothing is settled yet.");
            lines.push(Line::new(Style::Bold, &sent));
        }
        (None, Sending::Unknown) => {
            let holder = words::holder(ask.origin.holder);
            let sent = format!("Sent. The {holder}’s side has not said yet whether it took it.");
            lines.push(Line::new(Style::Warn, &sent));
        }
        (None, Sending::No) => {
            let soon = ask.holder_connected
                && words::seconds_left(ask, now.timestamp()).is_some_and(|seconds| seconds <= 300);
            let style = if soon { Style::Warn } else { Style::Dim };
            lines.extend(wrap(style, "", &words::left(ask, now.timestamp()), columns));
            if !ask.holder_connected {
                lines.push(Line::new(
                    Style::Warn,
                    "Not connected: an answer cannot reach it now. The ask is still open.",
                ));
            }
            if let Some(whose) = words::whose(ask) {
                lines.extend(wrap(Style::Warn, "", &whose, columns));
            }
        }
    }
    lines.push(Line::default());
    lines
}

fn card_rows(card: &Card, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut stops = card.stops.iter().enumerate();
    let heading = stops.next().map(|(at, _)| at);
    let style = if card.stop() == Stop::Heading { Style::Bold } else { Style::Plain };
    rows.extend(
        bounded(style, "", &card.ask.content.message, LONG, columns)
            .into_iter()
            .map(|line| Row { stop: heading, ..Row::plain(line) }),
    );
    rows.extend(page_rows(&card.ask, columns));
    if card.ask.state == AskState::Settled {
        return rows;
    }
    for (at, question) in card.ask.content.questions.iter().enumerate() {
        rows.push(Row::plain(Line::default()));
        rows.extend(question_rows(card, at, question, columns));
    }
    rows.push(Row::plain(Line::default()));
    let errors = card.errors.iter().filter(|error| error.question_id.is_empty());
    for error in errors {
        rows.extend(
            wrap(Style::Warn, "", &words::brief(&error.message, SHORT), columns).into_iter().map(Row::plain),
        );
    }
    rows.push(Row::plain(Line::new(Style::Dim, &progress(card))));
    for (wanted, label) in [(Stop::Skip, "[ Skip ]"), (Stop::Submit, "[ Submit ]")] {
        let at = card.stops.iter().position(|stop| *stop == wanted);
        let has_focus = card.stop() == wanted;
        let style = if has_focus { Style::Focus } else { Style::Bold };
        let line = Line::new(Style::Accent, if has_focus { "› " } else { "  " }).and(style, label);
        rows.push(Row { stop: at, ..Row::plain(line) });
    }
    rows
}

/// Whether something of a guarded call does not fit on its card: it is not accepted there then (S26).
pub(in super::super) fn is_cut(ask: &Ask) -> bool {
    let Some(call) = &ask.content.confirm else { return false };
    let parts = [&call.account, &call.target, &call.action, &call.preview].into_iter().flatten();
    let mut parts = parts.chain([&call.tool, &call.arguments, &ask.content.message]);
    parts.any(|text| text.chars().count() > LONG)
}

/// The page to open, or the call to confirm.
fn page_rows(ask: &Ask, columns: usize) -> Vec<Row> {
    let mut lines = Vec::new();
    if let Some(url) = &ask.content.url {
        lines.push(Line::default());
        lines.extend(bounded(Style::Bold, "  ", url, LONG, columns));
        let host = host(url);
        let said = format!(
            "Not opened or fetched yet. What you enter there goes to {host}, never through the agent."
        );
        lines.extend(wrap(Style::Dim, "  ", &said, columns));
        if !host.is_ascii() || host.split('.').any(|label| label.starts_with("xn--")) {
            lines.extend(wrap(Style::Warn, "  ", "This host hides a letter of another alphabet.", columns));
        }
    }
    if let Some(confirm) = &ask.content.confirm {
        lines.push(Line::default());
        let parts = [
            ("tool", Some(&confirm.tool)),
            ("account", confirm.account.as_ref()),
            ("target", confirm.target.as_ref()),
            ("act", confirm.action.as_ref()),
            ("arguments", Some(&confirm.arguments)),
            (words::PREVIEW, confirm.preview.as_ref()),
        ];
        for (word, text) in parts {
            if let Some(text) = text {
                lines.push(Line::new(Style::Dim, &format!("  {word}")));
                lines.extend(bounded(Style::Plain, "    ", text, LONG, columns));
            }
        }
    }
    lines.into_iter().map(Row::plain).collect()
}

/// The host of an address, as it is written.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    words::name(host).to_lowercase()
}

fn progress(card: &Card) -> String {
    let of = card.ask.content.questions.len();
    let missing = card.ask.content.questions.iter().enumerate();
    let missing: Vec<_> = missing.filter(|(at, _)| !card.drafts.is_answered(*at)).collect();
    let needed = missing.iter().filter(|(_, question)| question.required).count();
    let rest = match (missing.len(), needed, card.ask.content.allows_partial) {
        _ if of == 0 => return String::new(),
        (0, ..) => String::new(),
        (.., false) => "; all are needed".to_owned(),
        (_, 0, true) => "; the rest is left out".to_owned(),
        (_, needed, true) => format!("; {needed} more needed"),
    };
    format!("{} of {of} answered{rest}.", of - missing.len())
}
