//! Values of headers: plain where they can be, otherwise `=?base64?…?=`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// A text as the value of a header.
pub fn encode(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("{OPENING}{}{CLOSING}", STANDARD.encode(text)) }
}

/// The text that a header's value stands for; `None` when it stands for none.
pub fn decode(value: &[u8]) -> Option<String> {
    let value = std::str::from_utf8(value).ok()?;
    let Some(inner) = encoded(value) else {
        return value.bytes().all(is_visible).then(|| value.to_owned());
    };
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

/// What stands between the marks.
fn encoded(value: &str) -> Option<&str> {
    value.strip_prefix(OPENING)?.strip_suffix(CLOSING)
}

fn is_plain(text: &str) -> bool {
    let is_padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    !is_padded && encoded(text).is_none() && text.bytes().all(is_visible)
}

/// What may stand in a header as it is (RFC 9110 §5.5, without what is obsolete).
fn is_visible(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_plain_where_they_can_be() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("a\tb c", "a\tb c"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?base64?=", "=?base64?="),
            ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ] {
            assert_eq!(encode(text), value);
            assert_eq!(decode(value.as_bytes()).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_stands_for_no_text_is_none() {
        for value in
            [&b"caf\xC3\xA9"[..], b"\xFF", b"a\x00b", b"=?base64?a?=", b"=?base64?Y!==?=", b"=?base64?/w==?="]
        {
            assert_eq!(decode(value), None, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_comes_back(text in any::<String>()) {
            let value = encode(&text);
            prop_assert!(value.bytes().all(is_visible));
            prop_assert_eq!(value.trim_matches([' ', '\t']), &value);
            prop_assert_eq!(decode(value.as_bytes()), Some(text));
        }

        #[test]
        fn no_value_panics(value in any::<Vec<u8>>()) {
            decode(&value);
        }
    }
}
