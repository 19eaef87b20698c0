//! The names that a frame is judged by, and what only looks like one (S3).

use std::collections::BTreeSet;

use crate::frame::scan::Quoted;

/// The keys that decide what a frame does.
const ENVELOPE: [&str; 10] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "name",
    "arguments",
    "task",
    "_meta",
    "requestState",
    "inputResponses",
];

/// Longest of [`ENVELOPE`], in characters.
const LONGEST: usize = 14;

/// Whether some parser takes `key` for an envelope key that it is not: after case folding, or after NULs are cut off.
pub(crate) fn is_look_alike(key: Quoted<'_>) -> bool {
    // Every character of a folded name is one of at most six in JSON, or three in UTF-8, and NULs come as `\u0000`.
    let raw = key.raw();
    if !key.is_escaped() && raw.len() > 2 + 3 * LONGEST + 8 && !raw.contains(&0) {
        return false;
    }
    let text = key.text();
    !ENVELOPE.contains(&&*text) && ENVELOPE.iter().any(|name| folds_to(&text, name))
}

/// Whether `text` is another spelling of `name`, or `name` itself.
///
/// NULs in front are skipped and the first one after ends the text, as it does in C. Folded are the letters of ASCII,
/// U+017F (ſ) and U+212A (K, the Kelvin sign), and the two letters that some languages fold to `i`.
pub(crate) fn folds_to(text: &str, name: &str) -> bool {
    let folded = text.trim_start_matches('\0').chars().take_while(|&letter| letter != '\0').map(fold);
    folded.eq(name.chars().map(fold))
}

fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        _ => letter.to_ascii_lowercase(),
    }
}

/// The keys of one object, to notice the second of a kind. Names are compared after unescaping.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    few: [Option<Quoted<'a>>; 8],
    count: usize,
    many: BTreeSet<String>,
}

impl<'a> Seen<'a> {
    /// Notes `key`; false when it has been there.
    pub(crate) fn note(&mut self, key: Quoted<'a>) -> bool {
        let is_known = self.few.iter().take(self.count).flatten().any(|known| is_same(*known, key));
        if is_known {
            return false;
        }
        if let Some(place) = self.few.get_mut(self.count) {
            *place = Some(key);
            self.count += 1;
            return true;
        }
        self.many.insert(key.text().into_owned())
    }
}

fn is_same(one: Quoted<'_>, other: Quoted<'_>) -> bool {
    if one.is_escaped() || other.is_escaped() {
        return one.text() == other.text();
    }
    one.raw() == other.raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::scan::Scanner;

    fn quoted(raw: &str) -> Quoted<'_> {
        Scanner::new(raw.as_bytes()).string().unwrap()
    }

    #[test]
    fn s3_look_alikes() {
        for raw in [
            r#""ID""#,
            r#""Method""#,
            r#""PARAMS""#,
            r#""paramſ""#,
            r#""tasK""#,
            r#""taſK""#,
            r#""\u0000id""#,
            r#""id\u0000""#,
            r#""\u0000\u0000name\u0000\u0000""#,
            r#""name\u0000junk""#,
            r#""N\u0061me""#,
            r#""_META""#,
            r#""requeststate""#,
            r#""REQUESTſTATE""#,
            r#""inputResponse\u017f""#,
            r#""jsonrpc\u0000""#,
            r#""ıd""#,
        ] {
            assert!(is_look_alike(quoted(raw)), "{raw}");
        }
        let long = format!("\"name{}\"", "\\u0000".repeat(1000));
        assert!(is_look_alike(quoted(&long)));
    }

    #[test]
    fn s3_names_themselves_and_others_are_none() {
        for name in ENVELOPE {
            assert!(!is_look_alike(quoted(&format!("\"{name}\""))), "{name}");
        }
        for raw in [
            r#""n\u0061me""#,
            r#""""#,
            r#""\u0000""#,
            r#""ids""#,
            r#""cursor""#,
            r#""progressToken""#,
            r#""nаme""#,
            r#"" id""#,
            r#""result""#,
        ] {
            assert!(!is_look_alike(quoted(raw)), "{raw}");
        }
        assert!(!is_look_alike(quoted(&format!("\"{}\"", "x".repeat(5000)))));
    }

    #[test]
    fn s3_the_second_of_a_kind_is_noticed_among_many() {
        let names: Vec<String> = (0..40).map(|number| format!("\"k{number}\"")).collect();
        let mut seen = Seen::default();
        assert!(names.iter().all(|name| seen.note(quoted(name))));
        for again in ["\"k0\"", "\"\\u006b0\"", "\"k39\"", "\"\\u006b39\""] {
            assert!(!seen.note(quoted(again)), "{again}");
        }
    }
}
