//! Keys, from the bytes that a terminal sends.

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// A character.
    Char(char),
    Enter,
    /// Ctrl and enter, where the terminal tells it from enter.
    CtrlEnter,
    /// Ctrl and a letter.
    Ctrl(char),
    Tab,
    BackTab,
    Escape,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// Text that was pasted, which is typed into a field and is never a key.
    Paste(String),
}

/// The most bytes of a paste, and of a sequence.
const MAX_PASTE: usize = 1024 * 1024;
const MAX_SEQUENCE: usize = 32;

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Puts bytes together to keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    rest: Vec<u8>,
}

impl Keys {
    /// The keys that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.rest.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, used)) = first(&self.rest) {
            self.rest.drain(..used);
            keys.extend(key);
        }
        keys
    }

    /// Whether something has begun that may be complete already: an escape key, or the begin of a sequence.
    pub(super) fn is_waiting(&self) -> bool {
        !self.rest.is_empty() && !self.rest.starts_with(PASTE_BEGIN)
    }

    /// Nothing follows: what has begun is complete.
    pub(super) fn flush(&mut self) -> Vec<Key> {
        if !self.is_waiting() {
            return Vec::new();
        }
        let rest = std::mem::take(&mut self.rest);
        if rest == b"\x1b" { vec![Key::Escape] } else { Vec::new() }
    }
}

/// The first key and how many bytes it takes; `None` while it is not complete.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let byte = *bytes.first()?;
    match byte {
        0x1b => escape(bytes),
        b'\r' => Some((Some(Key::Enter), 1)),
        b'\t' => Some((Some(Key::Tab), 1)),
        0x7f | 0x08 => Some((Some(Key::Backspace), 1)),
        0x01..=0x1a => Some((Some(Key::Ctrl(char::from(byte - 1 + b'a'))), 1)),
        0x00 | 0x1c..=0x1f => Some((None, 1)),
        0x20..=0x7e => Some((Some(Key::Char(char::from(byte))), 1)),
        0x80.. => character(bytes),
    }
}

/// A character of several bytes.
fn character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let length = match bytes.first()? {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        // No character begins so.
        _ => return Some((None, 1)),
    };
    let Some(whole) = bytes.get(..length) else {
        let is_broken = bytes.iter().skip(1).any(|byte| !(0x80..0xc0).contains(byte));
        return is_broken.then_some((None, 1));
    };
    match std::str::from_utf8(whole).ok().and_then(|text| text.chars().next()) {
        // C1 controls are no keys.
        Some(character) => Some(((!character.is_control()).then_some(Key::Char(character)), length)),
        None => Some((None, 1)),
    }
}

fn escape(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    if bytes.starts_with(PASTE_BEGIN) {
        return paste(bytes);
    }
    match bytes.get(1)? {
        b'[' => sequence(bytes),
        b'O' => {
            let key = match bytes.get(2)? {
                b'A' => Some(Key::Up),
                b'B' => Some(Key::Down),
                b'C' => Some(Key::Right),
                b'D' => Some(Key::Left),
                b'H' => Some(Key::Home),
                b'F' => Some(Key::End),
                b'M' => Some(Key::Enter),
                _ => None,
            };
            Some((key, 3))
        }
        // The escape key, and then another one.
        _ => Some((Some(Key::Escape), 1)),
    }
}

/// A control sequence: parameters, then a letter or `~`.
fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let body = bytes.get(2..)?;
    let Some(end) = body.iter().take(MAX_SEQUENCE).position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (body.len() >= MAX_SEQUENCE).then_some((None, bytes.len()));
    };
    let parameters = std::str::from_utf8(body.get(..end)?).unwrap_or_default();
    let (number, modifier) = parameters.split_once(';').unwrap_or((parameters, ""));
    let has_ctrl = modifier.parse::<u8>().is_ok_and(|modifier| modifier.saturating_sub(1) & 4 != 0);
    let key = match (body.get(end)?, number) {
        (b'A', _) => Some(Key::Up),
        (b'B', _) => Some(Key::Down),
        (b'C', _) => Some(Key::Right),
        (b'D', _) => Some(Key::Left),
        (b'H', _) | (b'~', "1" | "7") => Some(Key::Home),
        (b'F', _) | (b'~', "4" | "8") => Some(Key::End),
        (b'Z', _) => Some(Key::BackTab),
        (b'~', "3") => Some(Key::Delete),
        (b'~', "5") => Some(Key::PageUp),
        (b'~', "6") => Some(Key::PageDown),
        (b'u', "13") if has_ctrl => Some(Key::CtrlEnter),
        (b'u', "13") => Some(Key::Enter),
        (b'u', "27") => Some(Key::Escape),
        (b'~', "27") if parameters == "27;5;13" => Some(Key::CtrlEnter),
        _ => None,
    };
    Some((key, end + 3))
}

fn paste(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let body = bytes.get(PASTE_BEGIN.len()..)?;
    match body.windows(PASTE_END.len()).position(|window| window == PASTE_END) {
        Some(end) => {
            let text = String::from_utf8_lossy(body.get(..end)?).into_owned();
            Some((Some(Key::Paste(text)), PASTE_BEGIN.len() + end + PASTE_END.len()))
        }
        // One that does not end is given up, and none of it becomes a key.
        None => (body.len() > MAX_PASTE).then_some((None, bytes.len())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        let mut reader = Keys::default();
        let mut keys = reader.push(bytes);
        keys.extend(reader.flush());
        keys
    }

    #[test]
    fn bytes_become_keys() {
        assert_eq!(
            keys(b"j\r\t\x7f\x03"),
            [Key::Char('j'), Key::Enter, Key::Tab, Key::Backspace, Key::Ctrl('c')]
        );
        assert_eq!(keys("é😀".as_bytes()), [Key::Char('é'), Key::Char('😀')]);
        assert_eq!(keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[D"), [Key::Up, Key::Down, Key::Right, Key::Left]);
        assert_eq!(
            keys(b"\x1b[3~\x1b[5~\x1b[6~\x1b[Z"),
            [Key::Delete, Key::PageUp, Key::PageDown, Key::BackTab]
        );
        assert_eq!(keys(b"\x1b[13;5u\x1b[27;5;13~\x1b[13u"), [Key::CtrlEnter, Key::CtrlEnter, Key::Enter]);
    }

    #[test]
    fn an_escape_alone_is_the_key_and_what_follows_makes_it_a_sequence() {
        let mut reader = Keys::default();
        assert_eq!(reader.push(b"\x1b"), []);
        assert!(reader.is_waiting());
        assert_eq!(reader.push(b"[B"), [Key::Down]);
        assert_eq!(reader.push(b"\x1b"), []);
        assert_eq!(reader.flush(), [Key::Escape]);
        assert_eq!(keys(b"\x1bs"), [Key::Escape, Key::Char('s')]);
    }

    #[test]
    fn s40_what_is_pasted_is_no_key() {
        let text = "s\r1\x1b[A";
        assert_eq!(
            keys(format!("\x1b[200~{text}\x1b[201~j").as_bytes()),
            [Key::Paste(text.into()), Key::Char('j')]
        );
        let mut reader = Keys::default();
        assert_eq!(reader.push(b"\x1b[200~s"), []);
        assert_eq!(reader.flush(), [], "one that has not ended is waited for");
        assert_eq!(reader.push(b"s\x1b[201~"), [Key::Paste("ss".into())]);
    }

    #[test]
    fn s42_controls_of_the_second_set_are_no_keys() {
        assert_eq!(keys("\u{9b}A".as_bytes()), [Key::Char('A')]);
        assert_eq!(keys(b"\xff\x00\x1fa"), [Key::Char('a')]);
    }

    proptest! {
        #[test]
        fn reading_is_total_and_ends(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let mut reader = Keys::default();
            for byte in &bytes {
                reader.push(&[*byte]);
            }
            prop_assert!(reader.rest.len() <= bytes.len());
        }

        #[test]
        fn typed_characters_come_as_they_are(text in "[a-z0-9éß漢😀 ]{0,20}", cut in 0usize..60) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let mut reader = Keys::default();
            let mut keys = reader.push(&bytes[..cut]);
            keys.extend(reader.push(&bytes[cut..]));
            let typed: Vec<Key> = text.chars().map(Key::Char).collect();
            prop_assert_eq!(keys, typed);
        }
    }
}
