//! A line of text that is being typed.

use super::keys::Key;

/// The most characters that are typed into a field: an answer takes no more than 1 MiB.
const MOST: usize = 256 * 1024;

/// Text and where the cursor stands in it, in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Field {
    text: Vec<char>,
    cursor: usize,
}

impl Field {
    pub(super) fn new(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { cursor: text.len(), text }
    }

    pub(super) fn text(&self) -> String {
        self.text.iter().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text before and from the cursor on.
    pub(super) fn parts(&self) -> (String, String) {
        let (before, after) = self.text.split_at(self.cursor.min(self.text.len()));
        (before.iter().collect(), after.iter().collect())
    }

    /// Takes a key that means something in a field; says whether it was one.
    pub(super) fn key(&mut self, key: &Key) -> bool {
        match key {
            Key::Char(character) => self.insert(*character),
            Key::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                let room = MOST.saturating_sub(self.text.len());
                let pasted: Vec<char> = text.chars().take(room).collect();
                let length = pasted.len();
                self.text.splice(self.cursor..self.cursor, pasted);
                self.cursor += length;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::Delete if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.len(),
            Key::Ctrl('u') => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Backspace | Key::Delete => {}
            Key::Enter
            | Key::CtrlEnter
            | Key::Ctrl(_)
            | Key::Tab
            | Key::BackTab
            | Key::Escape
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown => return false,
        }
        true
    }

    fn insert(&mut self, character: char) {
        if self.text.len() < MOST {
            self.text.insert(self.cursor, character);
            self.cursor += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_the_text() {
        let mut field = Field::new("ac");
        for key in
            [Key::Left, Key::Char('b'), Key::End, Key::Char('d'), Key::Backspace, Key::Home, Key::Delete]
        {
            assert!(field.key(&key));
        }
        assert_eq!((field.text(), field.parts()), ("bc".into(), (String::new(), "bc".into())));
        assert!(field.key(&Key::Paste("x\r\ny".into())));
        assert_eq!(field.text(), "x\nybc");
        assert!(field.key(&Key::Ctrl('u')) && field.text() == "bc");
        for key in [Key::Enter, Key::Tab, Key::Escape, Key::Up, Key::Ctrl('c')] {
            assert!(!field.key(&key), "{key:?}");
        }
    }
}
