//! `pattern`: ECMA-262 regular expressions, checked with a linear-time engine of bounded size (S39).
//!
//! JSON Schema writes patterns in JavaScript's dialect. Where that differs silently from ours (`\d`, `\w`, `\s`
//! and `.`), the source is rewritten, so that the holder judges as the server behind it will. What the engine
//! has not (look-around, back-references) does not compile, and such a pattern is ignored and reported.

use regex::{Regex, RegexBuilder};

use super::limits::MAX_PATTERN_BYTES;

/// The most memory of a compiled pattern, in bytes.
const COMPILED_BYTES: usize = 256 * 1024;

/// Compiles a pattern, if it is short enough, in the engine's language and small when compiled.
pub(super) fn compile(source: &str) -> Option<Regex> {
    if source.len() > MAX_PATTERN_BYTES {
        return None;
    }
    RegexBuilder::new(&translate(source)?)
        .size_limit(COMPILED_BYTES)
        .dfa_size_limit(COMPILED_BYTES)
        .nest_limit(32)
        .build()
        .ok()
}

/// JavaScript's `\s`, as the inside of a class.
const SPACE: &str =
    r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// The same pattern in our engine's language; `None` where the two differ and neither can say the other.
fn translate(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut in_class = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(chars.next()?, in_class, &mut out)?,
            '.' if !in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '[' if in_class => out.push_str(r"\["),
            '[' => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // `[]` takes nothing and `[^]` anything in JavaScript; here the bracket would be a member.
                if chars.peek() == Some(&']') {
                    return None;
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Set operations exist only in our engine.
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            '-' if in_class && chars.peek() == Some(&'-') => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

fn escape(escaped: char, in_class: bool, out: &mut String) -> Option<()> {
    let class = match escaped {
        'd' | 'D' => "0-9",
        'w' | 'W' => "0-9A-Za-z_",
        's' | 'S' => SPACE,
        'b' if !in_class => {
            out.push_str(r"(?-u:\b)");
            return Some(());
        }
        // Letters themselves, or nothing, in JavaScript; anchors and a bell here. `\B` has no twin in text.
        'A' | 'B' | 'a' | 'z' => return None,
        // Word boundaries here.
        '<' | '>' => {
            out.push(escaped);
            return Some(());
        }
        other => {
            out.push('\\');
            out.push(other);
            return Some(());
        }
    };
    // A class of its own also within one: a `-` behind it is then no range.
    let begins = if escaped.is_ascii_uppercase() { "[^" } else { "[" };
    out.extend([begins, class, "]"]);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn patterns_mean_what_javascript_means() {
        assert!(matches("^[a-z]+$", "abc") && !matches("^[a-z]+$", "abc1"));
        assert!(matches("b", "abc"), "a pattern is not anchored");
        assert!(matches(r"^\d{2}$", "42") && !matches(r"^\d{2}$", "٤٢"));
        assert!(matches(r"^\w+$", "a_1") && !matches(r"^\w+$", "ä"));
        assert!(matches(r"^[\w.-]+$", "a.b-c") && !matches(r"^[\w.-]+$", "a b"));
        assert!(matches(r"^[^\d]+$", "ab") && !matches(r"^[^\d]+$", "a1"));
        assert!(matches(r"^\D\W\S$", "a-b") && !matches(r"^\S$", "\u{FEFF}"));
        assert!(matches(r"^.$", "x") && !matches(r"^.$", "\u{2028}"));
        assert!(matches(r"^[&&~~]+$", "&~"));
        assert!(matches(r"^[[a]+$", "[a"));
        assert!(matches(r"^v\d+\.\d+\/x$", "v1.20/x"));
    }

    #[test]
    fn s39_what_is_too_long_too_large_or_unknown_does_not_compile() {
        assert!(compile(&"a".repeat(1024)).is_some());
        assert!(compile(&"a".repeat(1025)).is_none());
        assert!(compile(r"((((a{9}){9}){9}){9}){9}").is_none());
        for unknown in [r"a(?=b)", r"(a)\1", "(", "[z-a]", r"\"] {
            assert!(compile(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn a_hyphen_behind_a_class_is_a_hyphen() {
        assert!(matches(r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "first-last@sub.example.org"));
        assert!(matches(r"^[\w-~]+$", "a-~") && !matches(r"^[\w-~]+$", "{"));
        assert!(matches(r"^[\s-x]+$", " -x"));
    }

    #[test]
    fn what_only_our_engine_means_is_rewritten_or_refused() {
        assert!(matches(r"^\<a\>$", "<a>"));
        for ours in [r"\Aa", r"a\z", r"\a", r"\Ba", "[]", "[^]", "[]a]b]", "[!--a]", "[+--]"] {
            assert!(compile(ours).is_none(), "{ours}");
        }
    }

    #[test]
    fn s39_a_pattern_takes_linear_time() {
        let text = "a".repeat(50_000);
        assert!(!matches(r"^(a+)+$", &format!("{text}!")));
    }

    proptest! {
        #[test]
        fn any_pattern_compiles_or_not_without_panic(source in "[\\\\\\[\\]()^$.|?*+{}&~0-9a-zA-Z,:=!<>-]{0,24}", text in ".{0,16}") {
            if let Some(regex) = compile(&source) {
                let _ = regex.is_match(&text);
            }
        }
    }
}
