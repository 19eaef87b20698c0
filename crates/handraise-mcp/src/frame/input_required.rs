//! Whether a response is `input_required`, whoever reads it.
//!
//! A session of the push era never sees one (mcp.md §8), and its client may read JSON in another way than we do. So what
//! some parser takes for one is one: of members that stand twice, the first or the last may count; a name may be compared
//! without its case, or up to a NUL; names and values may hold escapes. What is no JSON by RFC 8259 (`NaN`, a byte that
//! is no UTF-8) is read by some all the same, and counts as one.

use crate::frame::names::folds_to;
use crate::frame::scan::{NotJson, Scanner};
use crate::frame::server::ServerFrame;

/// What a result of that kind says.
pub(crate) const INPUT_REQUIRED: &str = "input_required";

impl ServerFrame<'_> {
    /// Whether some reader takes this for a response that is `input_required`. The frame is read completely.
    pub(crate) fn is_input_required_to_somebody(&self) -> bool {
        let mut scanner = Scanner::new(self.bytes());
        scanner.space();
        let mut is_one = false;
        let read = scanner.object(|scanner, key, _| {
            if folds_to(&key.text(), "result") && scanner.peek() == Some(b'{') {
                is_one |= says_so(scanner)?;
            } else {
                scanner.value()?;
            }
            Ok(())
        });
        is_one || read.is_err() || !scanner.is_at_end()
    }

    /// Whether every reader takes it for one.
    pub(crate) fn is_input_required(&self) -> bool {
        self.result().is_some() && self.is_input_required_to_somebody()
    }
}

/// Reads a result.
fn says_so(scanner: &mut Scanner<'_>) -> Result<bool, NotJson> {
    let mut is_one = false;
    scanner.object(|scanner, key, _| {
        if scanner.peek() == Some(b'"') && folds_to(&key.text(), "resultType") {
            is_one |= cut(&scanner.string()?.text()) == INPUT_REQUIRED;
        } else {
            scanner.value()?;
        }
        Ok(())
    })?;
    Ok(is_one)
}

/// A text as it is in C.
fn cut(text: &str) -> &str {
    let text = text.trim_start_matches('\0');
    text.split('\0').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Looks;

    fn is_one(frame: &[u8]) -> bool {
        ServerFrame::read(frame, |_| Looks::default()).unwrap().is_input_required_to_somebody()
    }

    #[test]
    fn what_some_parser_reads_as_a_question_is_one() {
        for result in [
            r#"{"resultType":"input_required"}"#,
            r#" { "x" : {} , "resultType" : "input_required" , "y" : [ ] } "#,
            r#"{"resultType":"input\u005frequired"}"#,
            r#"{"resultType":"\u0069nput_required"}"#,
            r#"{"result\u0054ype":"input_required"}"#,
            r#"{"resultType":"complete","resultType":"input_required"}"#,
            r#"{"resultType":"input_required","resultType":"complete"}"#,
            r#"{"resultType":null,"ResultType":"input_required"}"#,
            r#"{"re\u017fultType":"input_required"}"#,
            r#"{"resultType\u0000":"input_required"}"#,
            r#"{"resultType":"input_required\u0000x"}"#,
            // Readers that take more than JSON.
            r#"{"resultType":"input_required","n":NaN}"#,
            r#"{"resultType":"input_required",}"#,
        ] {
            for frame in [
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"result":{result},"more":1}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result},"Re\u0073ult":{{}}}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{}},"RESULT":{result}}}"#),
            ] {
                assert!(is_one(frame.as_bytes()), "{frame}");
            }
        }
        assert!(is_one(
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\",\"resultType\":\"input_required\"}}"
        ));
    }

    #[test]
    fn what_only_mentions_it_is_none() {
        for result in [
            "{}",
            r#""input_required""#,
            r#"{"resultType":"complete"}"#,
            r#"{"resultType":"complete","text":"input_required"}"#,
            r#"{"resultType":["input_required"]}"#,
            r#"{"resultType":{"resultType":"input_required"}}"#,
            r#"{"resultType":"Input_Required"}"#,
            r#"{"resulttypes":"input_required"}"#,
            r#"[{"resultType":"input_required"}]"#,
            r#"{"structuredContent":{"resultType":"input_required"}}"#,
        ] {
            let frame =
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result},"resultType":"input_required"}}"#);
            assert!(!is_one(frame.as_bytes()), "{frame}");
        }
    }
}
