//! What is on the screen: the list, or one card, as lines that fit.

mod card;
mod list;
mod question;

use handraise_api::words::AskState;
use jiff::ZonedDateTime;

pub(super) use self::card::is_cut;

use super::{
    field::Field,
    state::Picker,
    text::{self, Line, Style, wrap},
};

/// The most characters of one text on a card; `handraise inbox show` has the rest.
const LONG: usize = 8_000;
const SHORT: usize = 500;

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
pub(super) fn frame(picker: &mut Picker, now: &ZonedDateTime, size: Size) -> Frame {
    let size = Size { columns: size.columns.max(20), rows: size.rows.max(5) };
    let lost = picker.is_lost;
    let mut frame = if picker.has_help {
        Frame { lines: help(), ..Frame::default() }
    } else if let Some(card) = &mut picker.card {
        card::card_frame(card, now, size)
    } else {
        list::list_frame(picker, now.timestamp(), size)
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
        if !picker.marked.is_empty() {
            let marked = picker.marked.len();
            let keys =
                format!("{marked} marked · Ctrl-S answers them together, all or none · x takes a mark back");
            return (Line::new(Style::Dim, &keys), None);
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
        ("x", "mark a confirm or permission that has its answer"),
        ("", "(Ctrl-S on the list sends all that are marked, or none)"),
        ("g i", "back to the list"),
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
