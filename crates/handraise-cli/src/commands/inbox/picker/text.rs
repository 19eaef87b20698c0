//! Text on a grid of cells: styled, wrapped, cut, and never wider than the screen.

use handraise_transport::escape;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How a piece of text looks. Colours mean what they mean on the page; every one comes with words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    /// Has the focus.
    Focus,
    /// Yours to act on.
    Accent,
    /// May go wrong.
    Warn,
}

impl Style {
    /// The sequence that switches it on; without colours only weight and inversion are left.
    fn on(self, has_colours: bool) -> &'static str {
        match (self, has_colours) {
            (Self::Plain, _) | (Self::Accent, false) => "",
            (Self::Bold, _) | (Self::Warn, false) => "\x1b[1m",
            (Self::Dim, _) => "\x1b[2m",
            (Self::Focus, _) => "\x1b[7m",
            (Self::Accent, true) => "\x1b[36m",
            (Self::Warn, true) => "\x1b[33m",
        }
    }
}

/// A line of styled pieces. What it holds is safe to write: the constructors escape.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line(Vec<(Style, String)>);

impl Line {
    /// Text of ours or of somebody else's: what could move the terminal is made visible (S42).
    pub(super) fn new(style: Style, text: &str) -> Self {
        Self::default().and(style, text)
    }

    pub(super) fn and(mut self, style: Style, text: &str) -> Self {
        self.0.push((style, escape::line(text).to_string()));
        self
    }

    /// How many cells it takes.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// At most `width` cells of it, with `…` where it was cut.
    pub(super) fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut kept = Vec::new();
        for (style, text) in self.0 {
            let (piece, is_whole) = take(&text, left);
            left -= piece.width();
            kept.push((style, piece.to_owned()));
            if !is_whole {
                break;
            }
        }
        kept.push((Style::Dim, "…".to_owned()));
        Self(kept)
    }

    /// What is written for it.
    pub(super) fn written(&self, has_colours: bool) -> String {
        let mut written = String::new();
        for (style, text) in &self.0 {
            let on = style.on(has_colours);
            written += on;
            written += text;
            if !on.is_empty() {
                written += "\x1b[0m";
            }
        }
        written
    }

    /// Its text alone.
    #[cfg(test)]
    pub(super) fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// How many cells text takes once it is escaped.
pub(super) fn width(text: &str) -> usize {
    escape::line(text).to_string().width()
}

/// As much of text as fits, and whether that is all.
fn take(text: &str, width: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > width {
            return (text.get(..at).unwrap_or_default(), false);
        }
    }
    (text, true)
}

/// Somebody's text in lines of at most `width` cells, behind an indent: broken at spaces where there are any, and at
/// its own line breaks. Tabs become spaces.
pub(super) fn wrap(style: Style, indent: &str, text: &str, width: usize) -> Vec<Line> {
    let room = width.saturating_sub(indent.width()).max(8);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let paragraph = paragraph.trim_end_matches('\r').replace('\t', "    ");
        let escaped = escape::line(&paragraph).to_string();
        for piece in pieces(&escaped, room) {
            lines.push(Line(vec![(Style::Plain, indent.to_owned()), (style, piece.to_owned())]));
        }
    }
    lines
}

fn pieces(text: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let (fits, is_whole) = take(rest, room);
        if is_whole {
            pieces.push(rest);
            return pieces;
        }
        // At the last space that leaves something; else in the middle of a word, at least one character.
        let least = rest.chars().next().map_or(0, char::len_utf8);
        let end = match fits.rfind(' ') {
            Some(space) if !fits[..space].trim().is_empty() => space,
            _ => fits.len().max(least),
        };
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail.strip_prefix(' ').unwrap_or(tail);
        if rest.is_empty() {
            return pieces;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap(Style::Plain, "", text, width).iter().map(Line::plain).collect()
    }

    #[test]
    fn text_is_broken_at_spaces_and_at_its_own_lines() {
        assert_eq!(wrapped("one two three\n\nfour", 8), ["one two", "three", "", "four"]);
        assert_eq!(wrapped("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
        assert_eq!(wrapped("漢字漢字漢字", 8), ["漢字漢字", "漢字"]);
    }

    #[test]
    fn s42_what_could_move_the_terminal_is_visible_and_counted() {
        let line = Line::new(Style::Bold, "a\u{1b}[2Jb\u{202e}");
        assert_eq!(line.plain(), "a\\u{1b}[2Jb\\u{202e}");
        assert_eq!(line.width(), 19);
        assert_eq!(line.written(true), "\x1b[1ma\\u{1b}[2Jb\\u{202e}\x1b[0m");
        assert_eq!(wrapped("x\u{9b}2J\ry", 80), ["x\\u{9b}2J\\u{d}y"]);
    }

    #[test]
    fn a_line_that_is_cut_says_so() {
        let line = Line::new(Style::Plain, "hello").and(Style::Dim, " world");
        assert_eq!(line.clone().cut(11).plain(), "hello world");
        assert_eq!(line.cut(7).plain(), "hello …");
    }

    proptest! {
        #[test]
        fn s42_no_line_is_wider_than_the_screen_or_moves_it(text in "(?s).{0,80}", width in 8usize..40) {
            for line in wrap(Style::Plain, "  ", &text, width + 2) {
                prop_assert!(line.width() <= width + 2);
                prop_assert!(!line.plain().chars().any(escape::is_hazardous));
            }
            let cut = Line::new(Style::Plain, &text).cut(width);
            prop_assert!(cut.width() <= width && !cut.plain().chars().any(escape::is_hazardous));
        }
    }
}
