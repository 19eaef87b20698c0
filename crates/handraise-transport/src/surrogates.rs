//! JSON text with half a surrogate pair in it, as JavaScript writes a text that was cut within a character.

use std::borrow::Cow;

/// The same text with every half of a surrogate pair replaced by U+FFFD. Strict parsers refuse a whole text for one
/// (and a request that is not read is never answered). Nothing is copied where there is nothing to replace.
pub fn mended(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    // Up to here `out` has it.
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match unit(json, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(json, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&json[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            // Another escape: what follows the backslash is no beginning of one.
            None => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied..]);
    Cow::Owned(out)
}

/// The UTF-16 unit of the `\uXXXX` that begins here.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_pair_is_replaced_and_everything_else_is_kept() {
        let kept = [
            "",
            r#"{"a":"\ud83d\ude00 \u00e9 \n \\"}"#,
            r#""\\ud83d""#,
            r#""\\\\ud83d""#,
            r#""\ud83"#,
            r#""\"#,
            r#""\ä\u+123""#,
            "😀",
        ];
        for text in kept {
            assert!(matches!(mended(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        let replaced = [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00""#, r#""\ufffd""#),
            (r#""\ud83dx\ude00""#, r#""\ufffdx\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\\ud83dä""#, r#""\\\ufffdä""#),
            (r#""\ud83d\u00e9""#, r#""\ufffd\u00e9""#),
        ];
        for (text, expected) in replaced {
            assert_eq!(mended(text), expected, "{text}");
        }
    }
}
