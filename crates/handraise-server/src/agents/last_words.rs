//! The last words of an agent's process, for people: bounded, without what looks like a secret, and with everything made
//! visible that could move a terminal (S33, S42).

use std::collections::VecDeque;

use handraise_core::form::says_secret;
use handraise_transport::escape;

/// How many of the last lines are kept: an error with its last words, and what was said around it.
const LINES: usize = 12;
/// How many characters of each.
const LENGTH: usize = 300;
/// How many of them are shown when none of them says what went wrong.
const SHOWN: usize = 5;
/// How `handraise agent` begins its last word.
const ERROR: &str = "error: ";
/// What stands for a secret.
const HIDDEN: &str = "•";
/// Letters and digits in a row that are no word of any language.
const OPAQUE: usize = 32;

/// The last lines of a process's stderr.
#[derive(Debug, Default)]
pub(super) struct LastWords(VecDeque<String>);

impl LastWords {
    pub(super) fn push(&mut self, line: &str) {
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(escape::shortened(&hidden(line), LENGTH));
    }

    /// Why the process failed: its own error where it named one, else its last lines after how it ended.
    pub(super) fn reason(&self, how: &str) -> String {
        let error = self.0.iter().rposition(|line| line.starts_with(ERROR));
        if let Some(at) = error {
            let mut lines = self.0.iter().skip(at).map(String::as_str);
            let first = lines.next().and_then(|line| line.strip_prefix(ERROR)).unwrap_or_default();
            return lines.fold(first.to_owned(), |reason, line| reason + "\n" + line);
        }
        let last = self.0.iter().skip(self.0.len().saturating_sub(SHOWN));
        let last = last.fold(String::new(), |said, line| said + "\n  " + line);
        if last.is_empty() {
            format!("its process {how} and said nothing")
        } else {
            format!("its process {how}; it last said:{last}")
        }
    }
}

/// A line in which values of names that say so, credentials of requests and URLs, and long rows of letters and digits
/// are not shown.
fn hidden(line: &str) -> String {
    let line = without_user_info(line);
    let mut shown = String::with_capacity(line.len());
    let (mut before, mut at) = (0, 0);
    while let Some(found) = line[at..].find(is_of_a_word) {
        let start = at + found;
        let end = start + line[start..].find(|c| !is_of_a_word(c)).unwrap_or(line.len() - start);
        shown.push_str(&line[at..start]);
        let word = &line[start..end];
        shown.push_str(if is_opaque(word) { HIDDEN } else { word });
        // "API key" is a name too.
        let name = if &line[at..start] == " " { before } else { start };
        before = start;
        at = end;
        if let Some(value) = value_after(word, &line[name..end], &line[end..]) {
            let begins = end + value;
            let length = line[begins..].find(ends_a_value).unwrap_or(line.len() - begins);
            let value = &line[begins..begins + length];
            if length > 0 && !is_scheme(value) {
                shown.push_str(&line[end..begins]);
                shown.push_str(HIDDEN);
                at = begins + length;
            }
        }
    }
    shown.push_str(&line[at..]);
    shown
}

/// Where after a word its value begins, if it is one that nobody else should see.
fn value_after(word: &str, name: &str, rest: &str) -> Option<usize> {
    let skipped = |rest: &str, separators: &[char]| rest.len() - rest.trim_start_matches(separators).len();
    if is_scheme(word) || (word.starts_with('-') && says_secret(word)) {
        let gap = skipped(rest, &[' ', '=', ':']);
        return (gap > 0).then_some(gap);
    }
    if !says_secret(name) {
        return None;
    }
    let gap = skipped(rest, &['"', '\'', ' ', ']']);
    rest[gap..].starts_with([':', '=']).then(|| gap + skipped(&rest[gap..], &[':', '=', '>', ' ', '"', '\'']))
}

/// `https://user:password@host` without what stands before the `@`.
fn without_user_info(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after.find(|c: char| c == '/' || ends_a_value(c)).unwrap_or(after.len());
        rest = match after[..end].rfind('@') {
            Some(at) => {
                shown.push_str(HIDDEN);
                &after[at..]
            }
            None => after,
        };
    }
    shown + rest
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn ends_a_value(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';' | '&' | ')' | '}' | ']')
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// Whether it is long, and has letters and digits mixed, as keys and tokens are; the ids of asks and sessions are not
/// meant.
fn is_opaque(word: &str) -> bool {
    let is_id = word.len() == 36 && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    let digits = word.chars().filter(char::is_ascii_digit).count();
    word.len() >= OPAQUE && digits >= 4 && word.chars().any(char::is_alphabetic) && !is_id
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reason(lines: &[&str]) -> String {
        let mut words = LastWords::default();
        for line in lines {
            words.push(line);
        }
        words.reason("ended with exit status 1")
    }

    #[test]
    fn the_error_with_all_that_follows_it_is_the_reason() {
        assert_eq!(
            reason(&["an old line", "error: too early", "error: the agent ended; it last said:", "  no key"]),
            "the agent ended; it last said:\n  no key"
        );
    }

    #[test]
    fn without_an_error_the_last_lines_are_shown() {
        assert_eq!(
            reason(&["1", "2", "3", "4", "5", "6"]),
            "its process ended with exit status 1; it last said:\n  2\n  3\n  4\n  5\n  6"
        );
        assert_eq!(reason(&[]), "its process ended with exit status 1 and said nothing");
    }

    #[test]
    fn s42_it_is_bounded_and_moves_no_terminal() {
        let long = "x ".repeat(10_000);
        let lines: Vec<&str> = std::iter::once("error: e").chain([long.as_str(); LINES - 1]).collect();
        let said = reason(&lines);
        assert!(said.starts_with("e\n") && said.chars().count() < LINES * (LENGTH + 2), "{}", said.len());
        assert_eq!(reason(&["error: \u{1b}[2J\u{202e}"]), r"\u{1b}[2J\u{202e}");
    }

    #[test]
    fn s33_what_looks_like_a_secret_is_not_shown() {
        for (line, shown) in [
            ("ANTHROPIC_API_KEY=abc!1 is wrong", "ANTHROPIC_API_KEY=• is wrong"),
            ("{\"password\": \"hunter2\", \"user\": \"ada\"}", "{\"password\": \"•\", \"user\": \"ada\"}"),
            ("your API key: abc", "your API key: •"),
            ("Authorization: Bearer ab.c/d=, next", "Authorization: Bearer •, next"),
            ("token: Bearer abc", "token: Bearer •"),
            ("--api-key abc --model x", "--api-key • --model x"),
            ("https://ada:pw@example.com/x and ftp://a/b@c", "https://•@example.com/x and ftp://a/b@c"),
            ("key sk-1234567890abcdefghijklmnopqrstuv!", "key •!"),
        ] {
            assert_eq!(hidden(line), shown);
        }
    }

    #[test]
    fn what_helps_stays() {
        for line in [
            "Cannot find module '/home/ada/node_modules/claude-agent-acp/dist/index-0.3.1.js'",
            "session 0193a2b4-1c2d-7e3f-8a9b-0c1d2e3f4a5b: max_tokens: 4096, port=7345",
            "no program is called \"/nonexistent/agent\"; check the path",
            "Unexpected token '<', not valid JSON",
            "the token has expired",
        ] {
            assert_eq!(hidden(line), line);
        }
    }

    proptest! {
        #[test]
        fn any_line_is_taken(line in "(?s)([a-z:=\"' @/-]|token|://|Bearer |•|.){0,40}") {
            let mut words = LastWords::default();
            words.push(&line);
            let reason = words.reason("ended");
            prop_assert!(!reason.chars().any(|c| c != '\n' && escape::is_hazardous(c)));
        }
    }
}
