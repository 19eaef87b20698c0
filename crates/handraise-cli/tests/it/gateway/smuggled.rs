//! Frames that two readers take for different things (S3), as clients of both eras send them.

#[path = "../../../../handraise-mcp/src/frame/smuggled.rs"]
mod table;

use handraise_mcp::Problem;
use serde_json::{Value, json};

use self::table::SMUGGLED;

/// A call that is disguised and yet the same to every reader: it runs.
const HONEST: &str = r#"{"jsonrpc":"2.0","id":9,"m\u0065thod":"tools\/call","params":{"n\u0061me":"wip\u0065","arguments":{}}}"#;

/// The same where bytes stand in a string that are no text, and around the call.
const BYTES: [&[u8]; 4] = [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xc0\x80"];
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","arguments":{"text":"@"}}}"#;

/// The frames of one era.
pub(crate) fn smuggled(is_modern: bool) -> Vec<Vec<u8>> {
    let call = of_era(CALL, is_modern);
    let (head, tail) = call.split_once('@').unwrap();
    let no_text = BYTES.map(|bytes| [head.as_bytes(), bytes, tail.as_bytes()].concat());
    let around = [["\0", call.as_str(), ""], ["", &call, "\0"]].map(|parts| parts.concat().into_bytes());
    let table = SMUGGLED.iter().map(|(frame, _)| of_era(frame, is_modern).into_bytes());
    let frames: Vec<_> = table.chain(no_text).chain(around).collect();
    assert!(frames.len() >= 30, "{}", frames.len());
    frames
}

/// A call of the tool `wipe` that is let through.
pub(crate) fn honest(is_modern: bool) -> String {
    of_era(HONEST, is_modern)
}

fn of_era(frame: &str, is_modern: bool) -> String {
    if !is_modern {
        return frame.to_owned();
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "smuggler", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    frame.replace("\"params\":{", &format!("\"params\":{{\"_meta\":{meta},"))
}

/// What becomes of a smuggled frame: an error, under its id or none.
#[track_caller]
pub(crate) fn assert_refused(answer: &Value, frame: &[u8]) {
    let frame = String::from_utf8_lossy(frame);
    assert_eq!(answer["error"]["code"], -32600, "{frame}: {answer}");
    assert!(answer["id"] == 7 || answer["id"].is_null(), "{frame}: {answer}");
}
