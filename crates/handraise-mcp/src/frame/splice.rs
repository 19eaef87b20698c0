//! Changing a few bytes of a frame, and leaving all others as they are.

use std::ops::Range;

use crate::frame::client::ClientFrame;
use crate::frame::member::{has_members, member_at};
use crate::frame::scan::Scanner;

/// Replacements of ranges of one text. They do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Splice {
    edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl Splice {
    pub(crate) fn replace(&mut self, range: Range<usize>, text: impl Into<Vec<u8>>) {
        self.edits.push((range, text.into()));
    }

    /// The text with its replacements.
    pub(crate) fn apply(mut self, bytes: &[u8]) -> Vec<u8> {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let added: usize = self.edits.iter().map(|(_, text)| text.len()).sum();
        let mut out = Vec::with_capacity(bytes.len() + added);
        let mut at = 0;
        for (range, text) in self.edits {
            out.extend_from_slice(bytes.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(&text);
            at = range.end;
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        out
    }

    /// Sets an argument, which arguments hold once or not at all. False: the call has no place for it.
    #[must_use]
    pub(crate) fn set_argument(&mut self, call: &ClientFrame<'_>, argument: &str, value: &str) -> bool {
        let Some(params) = &call.params else { return false };
        let member = format!("{}:{}", quoted(argument), quoted(value));
        let insert = |object: Range<usize>, member: String| {
            let comma = if has_members(call.text(object.clone())) { "," } else { "" };
            (object.end - 1..object.end - 1, format!("{comma}{member}").into_bytes())
        };
        let edit = match &params.arguments {
            None => insert(params.at.clone(), format!("\"arguments\":{{{member}}}")),
            Some(arguments) => match call.text(arguments.clone()) {
                "null" => (arguments.clone(), format!("{{{member}}}").into_bytes()),
                text if text.starts_with('{') => match member_at(text, argument) {
                    None => insert(arguments.clone(), member),
                    Some(at) => {
                        let start = arguments.start;
                        (start + at.start..start + at.end, quoted(value).into_bytes())
                    }
                },
                _ => return false,
            },
        };
        self.edits.push(edit);
        true
    }

    /// Removes the members of an object at `object` that `is_dropped` names, with their commas; it returns how many
    /// stay.
    pub(crate) fn remove_members(
        &mut self,
        bytes: &[u8],
        object: Range<usize>,
        is_dropped: impl Fn(&str) -> bool,
    ) -> usize {
        let mut members: Vec<(Range<usize>, bool)> = Vec::new();
        let mut scanner = Scanner::new(bytes.get(object.clone()).unwrap_or_default());
        let read = scanner.object(|scanner, key, key_at| {
            let value = scanner.value()?;
            let member = object.start + key_at..object.start + value.end;
            members.push((member, is_dropped(&key.text())));
            Ok(())
        });
        if read.is_err() {
            return members.len();
        }
        // A dropped member goes with what separates it from the next one that stays, or, at the end, with what
        // separates it from the last one that stays.
        let mut from: Option<usize> = None;
        let mut kept_end: Option<usize> = None;
        for (member, is_dropped) in &members {
            if *is_dropped {
                from.get_or_insert(member.start);
            } else {
                if let Some(from) = from.take() {
                    self.replace(from..member.start, *b"");
                }
                kept_end = Some(member.end);
            }
        }
        if let (Some(from), Some((last, _))) = (from, members.last()) {
            self.replace(kept_end.unwrap_or(from)..last.end, *b"");
        }
        members.iter().filter(|(_, is_dropped)| !is_dropped).count()
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_set_and_nothing_else_changes() {
        for (params, expected) in [
            (r#"{"name":"t"}"#, r#"{"name":"t","arguments":{"d\"x":"v"}}"#),
            (
                r#"{ "name":"t" , "arguments" : { } , "x":1.0 }"#,
                r#"{ "name":"t" , "arguments" : { "d\"x":"v"} , "x":1.0 }"#,
            ),
            (r#"{"arguments":null,"name":"t"}"#, r#"{"arguments":{"d\"x":"v"},"name":"t"}"#),
            (
                r#"{"name":"t","arguments":{"a":1.0,"b":"é\u00e9"} }"#,
                r#"{"name":"t","arguments":{"a":1.0,"b":"é\u00e9","d\"x":"v"} }"#,
            ),
            (
                r#"{"name":"t","arguments":{"d\u0022x":null,"b":2}}"#,
                r#"{"name":"t","arguments":{"d\u0022x":"v","b":2}}"#,
            ),
        ] {
            let text = format!(r#"{{"method":"tools/call","id":1,"params":{params},"z":1e3}}"#);
            let call = ClientFrame::read(text.as_bytes()).unwrap();
            let mut splice = Splice::default();
            assert!(splice.set_argument(&call, "d\"x", "v"), "{params}");
            let spliced = String::from_utf8(splice.apply(text.as_bytes())).unwrap();
            assert_eq!(spliced, text.replace(params, expected));
        }
        for arguments in ["7", "[]", "true", "\"x\""] {
            let text = format!(
                r#"{{"method":"tools/call","id":1,"params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let call = ClientFrame::read(text.as_bytes()).unwrap();
            assert!(!Splice::default().set_argument(&call, "d", "v"), "{arguments}");
        }
    }

    #[test]
    fn members_go_with_their_commas() {
        for (object, expected, left) in [
            (r#"{"a":1,"x":2,"b":3}"#, r#"{"a":1,"b":3}"#, 2),
            (r#"{"x":2,"a":1}"#, r#"{"a":1}"#, 1),
            (r#"{"a":1,"x":2}"#, r#"{"a":1}"#, 1),
            (r#"{"a":1 , "x":2 , "y":[3] }"#, r#"{"a":1 }"#, 1),
            (r#"{"x":2,"y":3}"#, "{}", 0),
            (r#"{"x":1,"a":1,"y":2,"b":2,"x":3}"#, r#"{"a":1,"b":2}"#, 2),
            (r#"{"a":{"x":1},"\u0078":2}"#, r#"{"a":{"x":1}}"#, 1),
            ("{}", "{}", 0),
            (r#"{"a":1}"#, r#"{"a":1}"#, 1),
        ] {
            let text = format!("<<{object}>>");
            let mut splice = Splice::default();
            let is_dropped = |name: &str| name == "x" || name == "y";
            assert_eq!(
                splice.remove_members(text.as_bytes(), 2..2 + object.len(), is_dropped),
                left,
                "{object}"
            );
            assert_eq!(String::from_utf8(splice.apply(text.as_bytes())).unwrap(), format!("<<{expected}>>"));
        }
    }
}
