//! The server of the measurement: the least that an MCP server does which reads what it is told.
//!
//! It reads each frame as JSON, the call inside it as well, makes its answer in one piece, and knows no shortcut: what
//! stands between a client and a server is then seen beside the work that every server has, and not beside a program that
//! looks for a few bytes. A server on an SDK does a multiple of it.

use std::{
    borrow::Cow,
    io::{self, BufRead as _, BufReader, Write as _},
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::value::RawValue;

/// How large a big result's text is.
pub(super) const BIG: usize = 1 << 20;

/// How much is read and written at once.
const BUFFER: usize = 256 * 1024;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Answers until its input ends.
pub(super) fn run() -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(BUFFER, io::stdin().lock());
    let mut output = io::BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = answer_to(&line) {
            output.write_all(&answer)?;
        }
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

/// The answer to a frame as a line; nothing for a notification.
pub(super) fn answer_to(frame: &[u8]) -> Option<Vec<u8>> {
    // A server that nobody asks for it does not hold it.
    static BIG_TEXT: LazyLock<String> =
        LazyLock::new(|| format!("\"{}\"", "abcdefghijklmnop".repeat(BIG / 16)));
    answer(&serde_json::from_slice(frame).ok()?, || &BIG_TEXT)
}

fn answer(request: &Request<'_>, big: fn() -> &'static str) -> Option<Vec<u8>> {
    let id = request.id?.get();
    let call: Option<Call<'_>> = match request.method.as_deref()? {
        "tools/call" => serde_json::from_str(request.params?.get()).ok(),
        "initialize" => {
            return Some(line(
                id,
                "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\",\"version\":\"1\"}}",
                "",
                "",
            ));
        }
        _ => None,
    };
    let text = match call {
        Some(Call { name, arguments: Arguments { text: Some(text) } }) if name == "echo" => text.get(),
        Some(Call { name, .. }) if name == "big" => big(),
        _ => "\"unknown\"",
    };
    Some(line(id, "{\"content\":[{\"type\":\"text\",\"text\":", text, "}]}"))
}

/// A response with a result of three pieces, in one piece.
fn line(id: &str, before: &str, text: &str, after: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(64 + id.len() + before.len() + text.len() + after.len());
    for piece in ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", before, text, after, "}\n"] {
        line.extend_from_slice(piece.as_bytes());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(frame: &str, expected: Option<&str>) {
        let answer = answer(&serde_json::from_str(frame).unwrap(), || "\"large\"");
        assert_eq!(answer.map(|line| String::from_utf8(line).unwrap()).as_deref(), expected);
    }

    #[test]
    fn it_answers_calls_in_any_order_of_members_and_no_notification() {
        check(
            r#"{"params":{"arguments":{"text":"a\u0041"},"name":"echo"},"id":7,"method":"tools/call"}"#,
            Some(
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0041\"}]}}\n",
            ),
        );
        check(
            r#"{"id":"b","method":"tools/call","params":{"name":"big","arguments":{}}}"#,
            Some(
                "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"large\"}]}}\n",
            ),
        );
        check(r#"{"method":"notifications/initialized"}"#, None);
        // A shortcut would answer this one.
        assert!(
            serde_json::from_str::<Request<'_>>(r#"{"id":1,"method":"tools/call","params":{"name":}}"#)
                .is_err()
        );
    }
}
