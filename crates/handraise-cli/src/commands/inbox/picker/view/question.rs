//! One question of a card: its words, its choices, and its field.

use handraise_api::{ask::Question, words::Kind};

use super::{
    super::{
        super::words,
        card::{Card, Stop},
        text::{self, Line, Style, wrap},
    },
    LONG, Row, SHORT, bounded, one_line,
};

/// The most lines of a preview.
const PREVIEW: usize = 12;

pub(super) fn question_rows(card: &Card, at: usize, question: &Question, columns: usize) -> Vec<Row> {
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
        let said = words::beside(question, &card.ask);
        rows.extend(
            wrap(Style::Dim, "  ", &said, columns).into_iter().map(|line| Row { stop, ..Row::plain(line) }),
        );
    }
    rows
}
