//! The test on bytes that spares results which cannot be a refusal.
//!
//! A code stands in a result as it is, or with some of its characters escaped: once in `structuredContent`, twice in
//! the text of `content[0]`, which is JSON inside a JSON string. Plain ASCII characters can be hidden in one way alone,
//! as `\u00` and two digits, and whatever is escaped twice still has such an escape at the outer level: either of one of
//! the code's characters, or of one of the characters that an inner escape is made of. So a result that has neither the
//! code nor such an escape is not the refusal. Serialisers escape none of those characters by themselves, which makes
//! this rare; what they do escape (`\u001b`, `\u003c`, `\u00e9`) does not count.

use memchr::memmem::Finder;

use crate::spelled::Characters;

/// Characters that serialisers may or must escape; the rest of ASCII stands for itself.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\' | b'/')
}

/// Looks for codes.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    /// The longest run of plain characters of each code; empty when it has none, and then every result is read.
    plain: Vec<Finder<'static>>,
    /// Of which characters an escape can be part of a hidden code.
    hides: Characters,
}

impl Scan {
    pub(super) fn new<'a>(codes: impl IntoIterator<Item = &'a str>) -> Self {
        let longest = |code: &'a str| {
            let runs = code.as_bytes().split(|byte| !is_plain(*byte));
            runs.max_by_key(|run| run.len()).unwrap_or_default()
        };
        let runs: Vec<_> = codes.into_iter().map(longest).collect();
        // An escape's own characters can be escaped in turn.
        let characters = br"\u0123456789abcdefABCDEF".iter().chain(runs.iter().copied().flatten());
        let hides = Characters::of(characters.copied());
        let plain = runs.into_iter().map(|run| Finder::new(run).into_owned()).collect();
        Self { plain, hides }
    }

    pub(super) fn may_match(&self, bytes: &[u8]) -> bool {
        self.has_plain(bytes) || !self.plain.is_empty() && self.hides.are_escaped_in(bytes)
    }

    /// Whether a code stands there as it is.
    pub(super) fn has_plain(&self, bytes: &[u8]) -> bool {
        self.plain.iter().any(|code| code.find(bytes).is_some())
    }

    /// Of which characters an escape can be part of a hidden code.
    pub(super) fn hides(&self) -> Characters {
        self.hides
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    const CODE: &str = "ambiguous_device_target";

    fn may_match(text: &str) -> bool {
        Scan::new([CODE]).may_match(text.as_bytes())
    }

    #[test]
    fn ordinary_results_are_spared() {
        for text in [
            "",
            r#"{"content":[{"type":"text","text":"tapped"}]}"#,
            r#"{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m \u003cb\u003e caf\u00e9 \u0027 \u0026 \u00fc"}]}"#,
            r"\u",
            r"\u00",
            r"\u006",
            r"\u00zz",
            "ambiguous_device_targe",
        ] {
            assert!(!may_match(text), "{text}");
        }
    }

    #[test]
    fn a_code_is_found_however_it_is_escaped() {
        for text in [
            "ambiguous_device_target",
            r"\u0061mbiguous_device_target",
            r"ambiguous\u005Fdevice_target",
            r"\\u0061mbiguous_device_target",
            r"\u005cu0061mbiguous_device_target",
            r"\u005c\u0075\u0030\u0030\u0036\u0031mbiguous_device_target",
            r"\\\u00750061mbiguous_device_target",
            r"\\u\u003000\u0036\u0031mbiguous_device_target",
        ] {
            assert!(may_match(text), "{text}");
        }
    }

    #[test]
    fn a_code_of_unusual_characters_is_looked_for_by_its_plain_part() {
        let scan = Scan::new(["fehler/gerät"]);
        assert!(scan.may_match(br"fehler\/ger\u00e4t"));
        assert!(!scan.may_match(b"kein Ger\xc3\xa4t"));
        assert!(Scan::new(["é"]).may_match(b"anything"));
        assert!(Scan::new([CODE, "fehler"]).may_match(b"ein fehler"));
        assert!(!Scan::new([]).may_match(b"anything"));
    }

    /// A JSON string of the text, in which some characters are escaped that need no escape.
    fn json_string(text: &str, escapes: &mut impl Iterator<Item = bool>) -> String {
        let mut json = String::from("\"");
        for character in text.chars() {
            if escapes.next().unwrap_or(false) && character.is_ascii() {
                write!(json, "\\u{:04x}", u32::from(character)).unwrap();
            } else {
                json.push_str(serde_json::to_string(&character).unwrap().trim_matches('"'));
                if character == '"' {
                    json.push('"');
                }
            }
        }
        json.push('"');
        json
    }

    proptest! {
        /// Any text with the code in it, escaped at random at both levels, is worth reading.
        #[test]
        fn no_escaping_hides_a_code(
            around in "[ -~é]{0,12}",
            inner in prop::collection::vec(any::<bool>(), 0..60),
            outer in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let inner = json_string(&format!("{around}{CODE}{around}"), &mut inner.into_iter());
            prop_assert_eq!(
                serde_json::from_str::<String>(&inner).unwrap(),
                format!("{around}{CODE}{around}")
            );
            let outer = json_string(&inner, &mut outer.into_iter());
            prop_assert_eq!(&serde_json::from_str::<String>(&outer).unwrap(), &inner);
            prop_assert!(may_match(&inner));
            prop_assert!(may_match(&outer));
        }
    }
}
