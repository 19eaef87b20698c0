//! Foreign text for terminals and logs, with its control characters made visible (S42).

use std::fmt::{self, Write as _};

/// Shows text in which C0 and C1 controls, DEL and bidi controls are written as `\u{…}`.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a> {
    text: &'a str,
    keeps_lines: bool,
}

/// For one line of a log: line ends and tabs are escaped too.
pub fn line(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_lines: false }
}

/// For running text on a terminal: LF and tabs stay.
pub fn text(text: &str) -> Escaped<'_> {
    Escaped { text, keeps_lines: true }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.text;
        while let Some(at) = rest.find(|c| self.must_escape(c)) {
            let (plain, tail) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = tail.chars();
            if let Some(control) = chars.next() {
                write!(f, "{}", control.escape_unicode())?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

impl Escaped<'_> {
    fn must_escape(&self, c: char) -> bool {
        if matches!(c, '\n' | '\t') {
            return !self.keeps_lines;
        }
        is_hazardous(c)
    }
}

/// Whether a character may do something else than appear: controls, line and paragraph separators, and what reorders
/// or hides what follows, and what shows nothing at all; the page's set. Zero-width joiner and non-joiner stay: scripts and emoji
/// need them.
pub fn is_hazardous(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
                | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
                | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// JSON text on one line, for a stream that may be a terminal: what [`is_hazardous`] says is written as `\uXXXX`, which
/// stays the same JSON. serde_json escapes C0 alone.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hazardous(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// At most `limit` characters of a line, escaped, with `…` where it was cut.
pub fn shortened(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
    // Writing to a string cannot fail.
    let _ = write!(shown, "{}", line(&text[..end]));
    if end < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s42_controls_are_made_visible() {
        assert_eq!(line("\u{1b}[31mred\u{7f}\u{9b}\n\t").to_string(), r"\u{1b}[31mred\u{7f}\u{9b}\u{a}\u{9}");
        assert_eq!(text("a\r\nb\tc\u{8}").to_string(), "a\\u{d}\nb\tc\\u{8}");
    }

    #[test]
    fn s42_bidi_controls_are_made_visible() {
        assert_eq!(text("a\u{202E}b\u{2069}\u{200F}").to_string(), r"a\u{202e}b\u{2069}\u{200f}");
    }

    #[test]
    fn s26_what_shows_nothing_is_made_visible() {
        assert_eq!(
            text("a\u{200b}b\u{2060}\u{ad}\u{e0041}").to_string(),
            r"a\u{200b}b\u{2060}\u{ad}\u{e0041}"
        );
        assert_eq!(json("\"\u{200b}\u{e0041}\""), r#""\u200b\udb40\udc41""#);
    }

    #[test]
    fn s42_json_on_a_terminal_moves_nothing_and_means_the_same() {
        assert_eq!(json("{\"a\":\"\u{9b}\u{202e}\u{7f} é😀\"}"), r#"{"a":"\u009b\u202e\u007f é😀"}"#);
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        assert_eq!(text("Grüße, 你好, שלום 👩‍🚀").to_string(), "Grüße, 你好, שלום 👩‍🚀");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü…");
        assert_eq!(shortened("\0x", 1), r"\u{0}…");
    }
}
