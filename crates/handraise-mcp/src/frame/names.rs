//! The names that a frame is judged by, and what only looks like one (S3).

use std::collections::BTreeSet;

use crate::frame::scan::Quoted;

/// A key that decides what a frame does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Jsonrpc,
    Id,
    Method,
    Params,
    Name,
    Arguments,
    Task,
    Meta,
    RequestState,
    InputResponses,
}

impl Known {
    const ALL: [Self; 10] = [
        Self::Jsonrpc,
        Self::Id,
        Self::Method,
        Self::Params,
        Self::Name,
        Self::Arguments,
        Self::Task,
        Self::Meta,
        Self::RequestState,
        Self::InputResponses,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Jsonrpc => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Name => "name",
            Self::Arguments => "arguments",
            Self::Task => "task",
            Self::Meta => "_meta",
            Self::RequestState => "requestState",
            Self::InputResponses => "inputResponses",
        }
    }

    /// The name that a key is, after unescaping.
    pub(crate) fn of(key: Quoted<'_>) -> Option<Self> {
        if key.is_escaped() {
            let text = key.text();
            return Self::ALL.into_iter().find(|name| name.as_str() == text);
        }
        Some(match key.inner() {
            b"jsonrpc" => Self::Jsonrpc,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"name" => Self::Name,
            b"arguments" => Self::Arguments,
            b"task" => Self::Task,
            b"_meta" => Self::Meta,
            b"requestState" => Self::RequestState,
            b"inputResponses" => Self::InputResponses,
            _ => return None,
        })
    }
}

/// Longest name, in characters.
const LONGEST: usize = 14;

/// Whether some parser takes `key`, which is no [`Known`] key, for one: after case folding, or after NULs are cut off.
pub(crate) fn is_look_alike(key: Quoted<'_>) -> bool {
    // A character of a name has at most three bytes, unless it is escaped, and NULs come as `\u0000`.
    if !key.is_escaped() && key.inner().len() > 3 * LONGEST {
        return false;
    }
    let text = key.text();
    Known::ALL.iter().any(|name| folds_to(&text, name.as_str()))
}

/// Whether `text` is another spelling of `name`, or `name` itself.
///
/// NULs in front are skipped and the first one after ends the text, as it does in C. Folded are the letters of ASCII,
/// U+017F (ſ) and U+212A (K, the Kelvin sign), and the two letters that some languages fold to `i`.
pub(crate) fn folds_to(text: &str, name: &str) -> bool {
    let folded = text.trim_start_matches('\0').chars().take_while(|&letter| letter != '\0').map(fold);
    folded.eq(name.chars().map(fold))
}

/// A letter without its case.
pub(crate) fn fold(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        _ => letter.to_ascii_lowercase(),
    }
}

/// The keys of one object, to notice the second of a kind. Keys are compared after unescaping.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    names: u16,
    few: [Option<Quoted<'a>>; 8],
    count: usize,
    many: BTreeSet<String>,
}

impl<'a> Seen<'a> {
    /// Notes a key that is a name; false when it has been there.
    pub(crate) fn note_name(&mut self, name: Known) -> bool {
        let bit = 1 << name as u16;
        let is_new = self.names & bit == 0;
        self.names |= bit;
        is_new
    }

    /// Notes a key that is no name; false when it has been there.
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
    fn s3_names_are_known_after_unescaping() {
        for name in Known::ALL {
            let text = name.as_str();
            assert_eq!(Known::of(quoted(&format!("\"{text}\""))), Some(name));
            let escaped: Vec<_> = text.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
            assert_eq!(Known::of(quoted(&format!("\"{}\"", escaped.concat()))), Some(name));
            assert_eq!(Known::of(quoted(&format!("\"{}\"", text.to_uppercase()))), None);
            assert!(text.len() <= LONGEST);
        }
    }

    #[test]
    fn s3_other_keys_are_no_look_alikes() {
        for raw in [
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
