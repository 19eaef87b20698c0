//! What looks like a secret, by its key, title or format (form.md; S33).

/// Whether a property's words look like those of a secret.
pub(super) fn looks_secret(key: &str, title: Option<&str>, format: Option<&str>) -> bool {
    format == Some("password") || says_secret(key) || title.is_some_and(says_secret)
}

/// Whether a text names a secret: `password`, `apiKey`, `API key`, `GITHUB_TOKEN`, but not `max_tokens` or
/// `token_limit`.
pub fn says_secret(text: &str) -> bool {
    let mut words = Words(text).peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        if contains_any(word, ALWAYS)
            || is_any(word, WORDS)
            || (ends_with(word, "token") && !is_any(next, COUNTS))
            || (is_any(next, &["key", "keys"]) && is_any(word, KEYS))
        {
            return true;
        }
    }
    false
}

/// Part of a word is enough: nobody says these of anything else.
const ALWAYS: &[&str] =
    &["password", "passwd", "passphrase", "passcode", "apikey", "secretkey", "privatekey"];
/// These stand alone.
const WORDS: &[&str] = &["pwd", "secret", "secrets", "credential", "credentials", "otp", "cvv", "cvc"];
/// Before the word `key`.
const KEYS: &[&str] = &["api", "access", "private", "signing", "encryption", "license"];
/// After `token` they make it a matter of counting.
const COUNTS: &[&str] = &["count", "limit", "budget", "usage", "size", "window"];

fn is_any(word: &str, of: &[&str]) -> bool {
    of.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn ends_with(word: &str, end: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= end.len() && bytes[bytes.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}

/// Whether any of the words stands somewhere in this one. Looks closer only where a first letter fits.
fn contains_any(word: &str, of: &[&str]) -> bool {
    let bytes = word.as_bytes();
    (0..bytes.len()).any(|at| {
        matches!(bytes[at] | 0x20, b'a' | b'p' | b's')
            && of.iter().any(|known| {
                bytes
                    .get(at..at + known.len())
                    .is_some_and(|part| part.eq_ignore_ascii_case(known.as_bytes()))
            })
    })
}

/// The words of a key or title: split at anything but letters and digits, and where `camelCase` or `HTTPKey`
/// begins another word.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut before = None;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let begins_word = match before {
                None => false,
                Some(before) if char::is_uppercase(before) => c.is_uppercase() && next_is_lower,
                Some(_) => c.is_uppercase(),
            };
            if begins_word || !c.is_alphanumeric() {
                let (word, rest) = text.split_at(at);
                self.0 = rest;
                return Some(word);
            }
            before = Some(c);
        }
        self.0 = "";
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s33_secrets_are_recognised_by_key_title_and_format() {
        for key in [
            "password",
            "dbPassword",
            "db_password",
            "token",
            "GITHUB_TOKEN",
            "authtoken",
            "accessToken",
            "apiKey",
            "api_key",
            "APIKey",
            "apikey",
            "x-api-key",
            "secret",
            "client_secret",
            "privateKey",
            "passphrase",
            "api_keys",
            "secrets",
        ] {
            assert!(looks_secret(key, None, None), "{key}");
        }
        assert!(looks_secret("a", Some("Your API key"), None));
        assert!(looks_secret("a", Some("Password for the registry"), None));
        assert!(looks_secret("a", None, Some("password")));
    }

    #[test]
    fn s33_ordinary_words_are_no_secrets() {
        for key in [
            "name",
            "max_tokens",
            "token_limit",
            "tokenCount",
            "monkey",
            "keyboard",
            "key",
            "passenger",
            "secretary",
            "primary_key",
            "compass",
            "",
        ] {
            assert!(!looks_secret(key, Some("Which one?"), Some("email")), "{key}");
        }
    }

    #[test]
    fn every_telling_part_begins_with_a_letter_that_is_looked_for() {
        for known in ALWAYS {
            assert!(says_secret(known) && says_secret(&format!("x{known}y")), "{known}");
        }
    }

    #[test]
    fn words_are_split_where_people_see_them() {
        let words = |text| Words(text).collect::<Vec<_>>();
        assert_eq!(words("myHTTPKey2_x-Ünder"), ["my", "HTTP", "Key2", "x", "Ünder"]);
        assert_eq!(words("__"), Vec::<&str>::new());
    }
}
