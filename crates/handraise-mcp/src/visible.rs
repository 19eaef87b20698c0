//! Foreign text that does nothing but appear (S26, S42).

/// Whether a character may do something else than appear: controls, line and paragraph separators, and what reorders or
/// hides what follows, and what shows nothing at all; the page's set. Zero-width joiner and non-joiner stay: scripts and emoji
/// need them.
pub(crate) fn is_hazardous(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
                | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}'
                | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// Text for a human, with hazardous characters written as `\u{202e}`.
pub(crate) fn text(text: &str) -> String {
    escape(text, |c| c.escape_unicode().to_string())
}

/// The beginning of a text, for a human.
pub(crate) fn shortened(shown: &str, characters: usize) -> String {
    let mut kept = text(&shown.chars().take(characters).collect::<String>());
    if shown.chars().nth(characters).is_some() {
        kept.push('…');
    }
    kept
}

/// Compact JSON text for one line of a log, with hazardous characters written as `\u202e`: the same JSON.
pub(crate) fn json(text: &str) -> String {
    let unit = |unit: &u16| format!("\\u{unit:04x}");
    escape(text, |c| c.encode_utf16(&mut [0; 2]).iter().map(unit).collect::<Vec<_>>().concat())
}

fn escape(text: &str, written: impl Fn(char) -> String) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_hazardous) {
        let (plain, tail) = rest.split_at(at);
        shown.push_str(plain);
        let mut characters = tail.chars();
        shown.extend(characters.next().map(&written));
        rest = characters.as_str();
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s26_controls_and_bidi_are_made_visible() {
        assert_eq!(
            text("a\u{1b}[31m\u{9b}\u{7f}\u{202e}\u{200b}b é 😀\n"),
            "a\\u{1b}[31m\\u{9b}\\u{7f}\\u{202e}\\u{200b}b é 😀\\u{a}"
        );
    }

    #[test]
    fn s42_json_stays_the_same_json() {
        let value = "\u{1b}\u{9b}\u{7f}\u{2028}\u{202e}\u{feff}\u{200b}\u{e0041}é😀";
        let shown = json(&serde_json::to_string(value).unwrap());
        assert!(!shown.contains(is_hazardous), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), value);
    }
}
