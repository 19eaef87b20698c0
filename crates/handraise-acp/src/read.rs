//! Reading a stranger's JSON: what is taken, and how much of it.

use serde_json::{Map, Value};

/// The longest id that is taken over from an agent, in bytes. Longer ones are none that an agent needs.
pub(crate) const MAX_ID_BYTES: usize = 1024;

/// An id: a text that is neither empty nor endless.
pub(crate) fn id<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()))
}

/// A text that says something.
pub(crate) fn words<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|text| !text.trim().is_empty())
}

/// Whether a key is there and says something; `null` counts as absent.
pub(crate) fn is_given(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).is_some_and(|value| !value.is_null())
}

/// At most `bytes` of a text; what was cut is announced (S26).
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    let end = floor(text, bytes);
    if end == text.len() {
        return text.to_owned();
    }
    format!("{}… ({} more bytes)", &text[..end], text.len() - end)
}

/// The largest end of a prefix of at most `bytes` that cuts no character.
pub(crate) fn floor(text: &str, bytes: usize) -> usize {
    if text.len() <= bytes {
        return text.len();
    }
    (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s26_what_is_cut_is_announced() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("äöü", 3), "ä… (4 more bytes)");
        assert_eq!(cut("ä", 0), "… (2 more bytes)");
    }
}
