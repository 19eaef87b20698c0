//! What is on the screen: the list, or one card, as lines that fit.

use handraise_api::{
    Timestamp,
    ask::{Ask, Question},
    words::{AskState, Kind},
};

use super::{
    super::words,
    card::{Card, Sending, Stop},
    field::Field,
    state::Picker,
    text::{self, Line, Style, wrap},
};

/// The most characters of one text on a card; `handraise inbox show` has the rest.
const LONG: usize = 8_000;
const SHORT: usize = 500;
/// The most lines of a preview.
const PREVIEW: usize = 12;

/// How large the screen is, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// What is to be painted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// Exactly as many as the screen has rows.
    pub(super) lines: Vec<Line>,
    /// Where the cursor stands, as column and row; hidden otherwise.
    pub(super) cursor: Option<(usize, usize)>,
    /// The ask whose card it is, and those of its questions that are on it.
    pub(super) painted: Option<(String, Vec<usize>)>,
}

/// A line of a card, and what it belongs to.
struct Row {
    line: Line,
    /// The place of its stop.
    stop: Option<usize>,
    /// The question that begins here.
    question: Option<usize>,
    /// The column of the cursor.
    cursor: Option<usize>,
}

impl Row {
    fn plain(line: Line) -> Self {
        Self { line, stop: None, question: None, cursor: None }
    }
}

/// The screen, at this time.
pub(super) fn frame(picker: &mut Picker, now: Timestamp, size: Size) -> Frame {
    let size = Size { columns: size.columns.max(20), rows: size.rows.max(5) };
    let lost = picker.is_lost;
    let mut frame = if picker.has_help {
        Frame { lines: help(), ..Frame::default() }
    } else if let Some(card) = &mut picker.card {
        card_frame(card, now, size)
    } else {
        list_frame(picker, now, size)
    };
    frame.lines.truncate(size.rows - 2);
    frame.lines.resize(size.rows - 2, Line::default());
    frame.lines.push(if lost {
        Line::new(Style::Warn, "Lost the inbox; trying again. What you enter is kept.")
    } else {
        status(picker)
    });
    let (line, cursor) = prompt(picker);
    if let Some(column) = cursor {
        frame.cursor = Some((column.min(size.columns - 1), size.rows - 1));
    }
    frame.lines.push(line);
    frame.lines = frame.lines.into_iter().map(|line| line.cut(size.columns)).collect();
    frame
}

/// The last line but one: what happened.
fn status(picker: &Picker) -> Line {
    let note = picker.card.as_ref().map_or(picker.note.as_ref(), |card| card.note.as_ref());
    match note {
        Some(note) => Line::new(Style::Warn, note),
        None => Line::default(),
    }
}

/// The last line: what is being typed, or the keys.
fn prompt(picker: &Picker) -> (Line, Option<usize>) {
    let typed = |label: &str, field: &Field| {
        let (before, after) = field.parts();
        let column = text::width(label) + text::width(&one_line(&before));
        (Line::new(Style::Bold, label).and(Style::Plain, &one_line(&(before + &after))), Some(column))
    };
    if picker.has_help {
        return (Line::new(Style::Dim, "any key closes"), None);
    }
    let Some(card) = &picker.card else {
        if picker.is_finding {
            return typed("Find an ask: ", &picker.filter);
        }
        return (Line::new(Style::Dim, "j k move · ↵ open · / find · ? keys · q quit"), None);
    };
    if let Some(why) = &card.why {
        return typed("Why? (optional; ↵ skips, Esc does not) ", why);
    }
    if let Some(find) = &card.find {
        return typed("Find a choice: ", find);
    }
    let keys = match (card.ask.state == AskState::Settled, card.is_typing) {
        (true, _) => "j k next, previous · u back",
        (false, true) => "↵ or Esc leave the field · Tab next · Ctrl-S submit",
        (false, false) => "↑↓ Tab move · ↵ 1–9 choose · s skip · Ctrl-S submit · u back · ? keys",
    };
    (Line::new(Style::Dim, keys), None)
}

fn help() -> Vec<Line> {
    const KEYS: &[(&str, &str)] = &[
        ("j k", "next, previous ask"),
        ("↵", "open the ask; choose what has the focus"),
        ("1–9", "toggle a choice of the question in focus"),
        ("↑ ↓ Tab", "move on the card"),
        ("PgUp PgDn", "scroll"),
        ("Ctrl-S, Ctrl ↵", "submit"),
        ("s", "skip, with an optional reason"),
        ("/", "find an ask; on a card, find a choice"),
        ("u", "back to the list"),
        ("Esc", "leave a field, close; never skips"),
        ("q", "back, and from the list out"),
        ("?", "these keys"),
    ];
    let mut lines = vec![Line::new(Style::Bold, "Keys"), Line::default()];
    lines.extend(
        KEYS.iter()
            .map(|(key, does)| Line::new(Style::Accent, &format!("  {key:<16}")).and(Style::Plain, does)),
    );
    lines
}

fn list_frame(picker: &Picker, now: Timestamp, size: Size) -> Frame {
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
    let soon = words::seconds_left(ask, now).is_some_and(|seconds| seconds <= 300);
    let client = ask.origin.client.as_ref().map(|client| format!(" “{}”", words::brief(&client.name, 30)));
    let who = format!("{}{}", words::brief(&ask.origin.holder_token, 30), client.unwrap_or_default());
    let message = words::brief(&ask.content.message, 300);
    let body = if is_selected {
        Style::Focus
    } else if is_fresh {
        Style::Bold
    } else {
        Style::Plain
    };
    Line::new(Style::Accent, if is_selected { "›" } else { " " })
        .and(Style::Accent, if is_fresh { "• " } else { "  " })
        .and(if soon { Style::Warn } else { Style::Dim }, &format!("{left:<14}"))
        .and(Style::Dim, &format!("{who}  "))
        .and(body, &message)
}

fn card_frame(card: &mut Card, now: Timestamp, size: Size) -> Frame {
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
fn card_head(card: &Card, now: Timestamp, columns: usize) -> Vec<Line> {
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
            let how = words::ended(settlement);
            lines.extend(wrap(Style::Bold, "", &format!("{title}{how}"), columns));
        }
        (None, Sending::Waiting) => {
            lines.push(Line::new(
                Style::Bold,
                "Sent. Waiting for the agent to take it…  Nothing is settled yet.",
            ));
        }
        (None, Sending::Unknown) => {
            lines.push(Line::new(Style::Warn, "Sent. The agent’s side has not said yet whether it took it."));
        }
        (None, Sending::No) => {
            let soon = words::seconds_left(ask, now).is_some_and(|seconds| seconds <= 300);
            let style = if soon { Style::Warn } else { Style::Dim };
            lines.extend(wrap(style, "", &words::left(ask, now), columns));
            if !ask.holder_connected {
                lines.push(Line::new(
                    Style::Warn,
                    "Not connected: an answer cannot reach it now. The ask is still open.",
                ));
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
            ("what it would do", confirm.preview.as_ref()),
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

fn question_rows(card: &Card, at: usize, question: &Question, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(title) = &question.title {
        rows.push(Row::plain(Line::new(Style::Dim, &words::brief(title, SHORT))));
    }
    // A single question usually repeats the message.
    rows.extend(bounded(Style::Bold, "", &question.prompt, LONG, columns).into_iter().map(Row::plain));
    rows.push(Row::plain(Line::new(Style::Dim, &words::takes(question))));
    if question.secret {
        rows.extend(wrap(Style::Warn, "", &words::secret(&card.ask), columns).into_iter().map(Row::plain));
    }
    if let Some(first) = rows.first_mut() {
        first.question = Some(at);
    }
    for error in card.errors.iter().filter(|error| error.question_id == question.id) {
        let said = words::brief(&error.message, SHORT);
        rows.extend(wrap(Style::Warn, "! ", &said, columns).into_iter().map(Row::plain));
    }
    let draft = card.drafts.questions.get(at).cloned().unwrap_or_default();
    for (number, choice) in words::choices(question).iter().enumerate() {
        let has_focus = card.stop() == Stop::Choice(at, number);
        let stop = card.stops.iter().position(|stop| *stop == Stop::Choice(at, number));
        let is_picked = draft.picks.contains(&number);
        let mark = match (question.kind == Kind::Multi, is_picked) {
            (true, true) => "[x]",
            (true, false) => "[ ]",
            (false, true) => "(•)",
            (false, false) => "( )",
        };
        let key = if number < 9 { (number + 1).to_string() } else { " ".to_owned() };
        let style = if has_focus {
            Style::Focus
        } else if is_picked {
            Style::Accent
        } else {
            Style::Plain
        };
        let label = match question.kind {
            // Yes and no are words of ours.
            Kind::Boolean => words::brief(&choice.label, SHORT),
            Kind::Single | Kind::Multi | Kind::Text | Kind::Number | Kind::Integer => {
                words::choice(choice, SHORT)
            }
        };
        let lead = format!("{}{key} {mark} ", if has_focus { "› " } else { "  " });
        let mut lines = wrap(style, &lead, &label, columns);
        let hang = " ".repeat(text::width(&lead));
        let rest = lines.split_off(lines.len().min(1));
        rows.extend(lines.into_iter().map(|line| Row { stop, ..Row::plain(line) }));
        if !rest.is_empty() {
            // Only the first line has the key and the mark.
            let rest = wrap(style, &hang, &label, columns);
            rows.extend(rest.into_iter().skip(1).map(|line| Row { stop, ..Row::plain(line) }));
        }
        if let Some(description) = &choice.description {
            let lines = bounded(Style::Dim, &hang, description, SHORT, columns);
            rows.extend(lines.into_iter().map(|line| Row { stop, ..Row::plain(line) }));
        }
        if has_focus {
            rows.extend(
                choice.preview.iter().flat_map(|preview| preview_rows(preview, &hang, columns, stop)),
            );
        }
    }
    if words::takes_words(question) {
        rows.extend(words_rows(card, at, question, columns));
    }
    rows
}

/// What choosing something would look like: shown for the choice in focus.
fn preview_rows(preview: &str, hang: &str, columns: usize, stop: Option<usize>) -> Vec<Row> {
    let indent = format!("{hang}│ ");
    let mut lines = bounded(Style::Plain, &indent, preview, LONG, columns);
    let hidden = lines.len().saturating_sub(PREVIEW);
    if hidden > 0 {
        lines.truncate(PREVIEW);
        let said = format!("{hidden} more lines; `handraise inbox show` has them all");
        lines.extend(wrap(Style::Dim, &indent, &said, columns));
    }
    lines.into_iter().map(|line| Row { stop, ..Row::plain(line) }).collect()
}

fn words_rows(card: &Card, at: usize, question: &Question, columns: usize) -> Vec<Row> {
    let has_focus = card.stop() == Stop::Words(at);
    let stop = card.stops.iter().position(|stop| *stop == Stop::Words(at));
    let field = card.drafts.questions.get(at).map(|draft| draft.words.clone()).unwrap_or_default();
    let shown =
        |text: &str| if question.secret { "•".repeat(text.chars().count()) } else { one_line(text) };
    let (before, after) = field.parts();
    let (before, after) = (shown(&before), shown(&after));
    let has_choices = !words::choices(question).is_empty();
    let lead = if has_focus { "› " } else { "  " };
    let label = if has_choices { "In your own words: " } else { "" };
    let lead_width = text::width(lead) + text::width(label) + 1;
    let room = columns.saturating_sub(lead_width + 2).max(8);
    // The end of what is before the cursor, and the beginning of what is after it.
    let mut tail: String = before.clone();
    while text::width(&tail) > room {
        tail.remove(0);
    }
    let cursor = lead_width + text::width(&tail);
    let is_cut = tail.len() < before.len();
    let line = Line::new(Style::Accent, lead)
        .and(if has_focus { Style::Bold } else { Style::Dim }, label)
        .and(Style::Dim, if is_cut { "…" } else { "_" })
        .and(if has_focus { Style::Bold } else { Style::Plain }, &tail)
        .and(if has_focus { Style::Bold } else { Style::Plain }, &after);
    let mut rows = vec![Row {
        stop,
        cursor: (has_focus && card.is_typing).then_some(cursor),
        ..Row::plain(line.cut(columns))
    }];
    if has_choices {
        let said = words::beside(question, card.ask.content.allows_text_with_selection);
        rows.extend(
            wrap(Style::Dim, "  ", said, columns).into_iter().map(|line| Row { stop, ..Row::plain(line) }),
        );
    }
    rows
}

fn progress(card: &Card) -> String {
    let of = card.ask.content.questions.len();
    let answered = (0..of).filter(|question| card.drafts.is_answered(*question)).count();
    match (of, answered == of, card.ask.content.allows_partial) {
        (0, ..) => String::new(),
        (_, true, _) => format!("{answered} of {of} answered."),
        (_, false, true) => format!("{answered} of {of} answered; the rest is left out."),
        (_, false, false) => format!("{answered} of {of} answered; all are needed."),
    }
}

/// At most `limit` characters of somebody's text in lines; what is left out is counted (S26).
fn bounded(style: Style, indent: &str, text: &str, limit: usize, columns: usize) -> Vec<Line> {
    let count = text.chars().count();
    if count <= limit {
        return wrap(style, indent, text, columns);
    }
    let shown: String = text.chars().take(limit).collect();
    let mut lines = wrap(style, indent, &shown, columns);
    let said = format!("{} more characters; `handraise inbox show` has them all", count - limit);
    lines.extend(wrap(Style::Warn, indent, &said, columns));
    lines
}

/// Lines in one: what a field shows of line ends.
fn one_line(text: &str) -> String {
    text.replace('\n', "⏎").replace('\t', " ")
}
