//! Names of tools with `*` and `?` in them.

use crate::frame::fold;

/// The longest pattern, in bytes.
pub(super) const MAX_PATTERN_BYTES: usize = 128;

/// A pattern of names: `*` stands for any characters, `?` for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    pattern: Vec<char>,
}

impl Glob {
    /// Reads a pattern; `None` for an empty one, and for one that is too long.
    pub(super) fn parse(pattern: &str) -> Option<Self> {
        let fits = (1..=MAX_PATTERN_BYTES).contains(&pattern.len());
        fits.then(|| Self { pattern: pattern.chars().collect() })
    }

    /// Whether a name fits, letter by letter.
    pub(super) fn is_exactly(&self, name: &str) -> bool {
        self.fits(name, |letter| letter)
    }

    /// Whether a name fits, or one that some server may take for it: letters are compared without their case, and white
    /// space around a name does not count.
    pub(super) fn is_roughly(&self, name: &str) -> bool {
        self.fits(name.trim(), fold)
    }

    fn fits(&self, name: &str, same: impl Fn(char) -> char) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_name) = (0, 0);
        // The last star, and how much of the name it stands for.
        let mut star: Option<(usize, usize)> = None;
        while in_name < name.len() {
            match self.pattern.get(at) {
                Some('*') => {
                    star = Some((at, in_name));
                    at += 1;
                }
                Some(&letter) if letter == '?' || same(letter) == same(name[in_name]) => {
                    at += 1;
                    in_name += 1;
                }
                _ => match star {
                    Some((star_at, from)) => {
                        star = Some((star_at, from + 1));
                        (at, in_name) = (star_at + 1, from + 1);
                    }
                    None => return false,
                },
            }
        }
        self.pattern[at..].iter().all(|&letter| letter == '*')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is(pattern: &str, name: &str) -> bool {
        Glob::parse(pattern).unwrap().is_exactly(name)
    }

    #[test]
    fn a_star_is_anything_and_a_question_mark_one_character() {
        for (pattern, name, fits) in [
            ("gmail_send", "gmail_send", true),
            ("gmail_send", "gmail_sends", false),
            ("*_delete", "file_delete", true),
            ("*_delete", "_delete", true),
            ("*_delete", "delete", false),
            ("*_delete", "file_delete_all", false),
            ("list_*", "list_", true),
            ("*", "", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("a.c", "abc", false),
            ("*ab", "aab", true),
        ] {
            assert_eq!(is(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_in_another_case_is_roughly_the_same() {
        let glob = Glob::parse("Task_Kill*").unwrap();
        for name in ["task_kill", "TASK_KILL", "ta\u{17f}\u{212a}_\u{212a}ill", " task_kill\n"] {
            assert!(glob.is_roughly(name) && !glob.is_exactly(name), "{name}");
        }
    }

    #[test]
    fn patterns_are_bounded() {
        assert_eq!(Glob::parse(""), None);
        assert_eq!(Glob::parse(&"a".repeat(129)), None);
        // A pattern of many stars is no work without end.
        let stars = Glob::parse(&"*a".repeat(60)).unwrap();
        assert!(!stars.is_exactly(&"b".repeat(10_000)));
    }

    proptest! {
        /// A pattern that is made from a name fits it.
        #[test]
        fn what_a_pattern_was_made_from_fits(parts in prop::collection::vec(("[ab]{0,3}", 0..3_u8), 1..6)) {
            let (mut pattern, mut name) = (String::new(), String::new());
            for (text, kind) in &parts {
                match kind {
                    0 => pattern.push_str(text),
                    1 => pattern.push('*'),
                    _ => pattern.extend(text.chars().map(|_| '?')),
                }
                name.push_str(text);
            }
            prop_assume!(!pattern.is_empty());
            prop_assert!(is(&pattern, &name));
        }
    }
}
