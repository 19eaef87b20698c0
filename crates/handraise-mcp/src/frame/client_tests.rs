//! Tests of reading clients' frames.

use super::*;

fn problem(text: &str) -> Option<Problem> {
    ClientFrame::read(text.as_bytes()).err().map(|malformed| malformed.problem)
}

#[test]
fn s3_smuggled_calls_are_refused() {
    use Problem::{DuplicateKey, LookAlike, LookAlikeName, NoParams, NotOneObject};
    for (text, expected) in [
        // Not one object.
        (r#"[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe"}}]"#, NotOneObject),
        ("[]", NotOneObject),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wipe"}}"#,
            NotOneObject,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"} x"#, NotOneObject),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe",}}"#, NotOneObject),
        (r#"{"jsonrpc":"2.0","id":7,'method':"tools/call","params":{"name":"wipe"}}"#, NotOneObject),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call",/**/"params":{"name":"wipe"}}"#, NotOneObject),
        (r#"{"jsonrpc":"2.0","id":07,"method":"tools/call","params":{"name":"wipe"}}"#, NotOneObject),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}", NotOneObject),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\0\",\"params\":{\"name\":\"wipe\"}}",
            NotOneObject,
        ),
        (r#""tools/call""#, NotOneObject),
        ("", NotOneObject),
        // The same key twice in the frame.
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/call","params":{"name":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","m\u0065thod":"tools/call","params":{"name":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list"},"params":{"name":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list"},"p\u0061rams":{"name":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"1.0","id":7,"method":"tools/call","params":{"name":"wipe"}}"#,
            DuplicateKey,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping","x":1,"x":2}"#, DuplicateKey),
        // The same key twice in params, and in _meta.
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","name":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{"name":"list","n\u0061me":"wipe"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"params":{"name":"list","name":"wipe"},"method":"tools\/call"}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","arguments":{},"arguments":{"all":true}}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","_meta":{},"_meta":{"a":1}}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","_meta":{"v":1,"v":2}}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","requestState":"a","requestState":"b"}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"capabilities":{},"capabilities":{"elicitation":{}}}}"#,
            DuplicateKey,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"requestId":2}}"#,
            DuplicateKey,
        ),
        // Twins.
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","Method":"tools/call","params":{"name":"wipe"}}"#,
            LookAlike,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"METHOD":"tools/call","params":{"name":"wipe"}}"#, LookAlike),
        (r#"{"jſonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe"}}"#, LookAlike),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","param\u017f":{"name":"wipe"}}"#, LookAlike),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","Name":"wipe"}}"#,
            LookAlike,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","taſk":{}}}"#, LookAlike),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","tas\u212a":{}}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","argumentſ":{}}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","RequestState":"hr1.x"}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe","inputreſponſes":{}}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method\u0000":"tools/call","params":{"name":"wipe"}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","\u0000name":"wipe"}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","name\u0000x":"wipe"}}"#,
            LookAlike,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list","N\u0041ME\u0000":"wipe"}}"#,
            LookAlike,
        ),
        // Values that only some servers take for the call or the tool.
        (r#"{"jsonrpc":"2.0","id":7,"method":"Tools/Call","params":{"name":"wipe"}}"#, LookAlikeName),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools\/call\u0000","params":{"name":"wipe"}}"#, LookAlikeName),
        (r#"{"jsonrpc":"2.0","id":7,"method":"toolſ/call","params":{"name":"wipe"}}"#, LookAlikeName),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wipe\u0000list"}}"#,
            LookAlikeName,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["wipe",{}]}"#, NoParams),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"wipe"}"#, NoParams),
    ] {
        assert_eq!(problem(text), Some(expected), "{text}");
    }
}

#[test]
fn s3_bad_utf8_is_refused() {
    for bytes in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"wi\xffpe\"}}"[..],
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"\xc0\xae\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\"}\0",
        b"\xff\xfe{\0}\0",
    ] {
        assert_eq!(ClientFrame::read(bytes).unwrap_err().problem, Problem::NotOneObject);
    }
}

#[test]
fn frames_that_every_parser_reads_alike_pass() {
    for text in [
        r#" {"jsonrpc":"2.0","id":7,"method":"tools\/call","params":{"name":"tap","arguments":{"a":1,"a":2,"Name":3}}} "#,
        r#"{"id":1.50,"method":"vendor/x","params":{"Name":"x","Name":"y","id":1},"jsonrpc":"2.0","extra":{"ID":1}}"#,
        r#"{"jsonrpc":"2.0","id":"7","result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":5}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"vendor/y","params":[1,2]}"#,
        "{}",
    ] {
        assert_eq!(problem(text), None, "{text}");
    }
}

#[test]
fn names_are_compared_after_unescaping() {
    let text =
        r#"{"\u006dethod":"tools\/call","i\u0064":1,"params":{"n\u0061me":"tap","arg\u0075ments":{}}}"#;
    let frame = ClientFrame::read(text.as_bytes()).unwrap();
    assert_eq!(frame.method(), Some("tools/call"));
    assert_eq!(frame.id().map(Id::raw), Some("1"));
    assert_eq!(frame.param(|params| params.name.as_ref()), Some("\"tap\""));
    assert_eq!(frame.param(|params| params.arguments.as_ref()), Some("{}"));
}

#[test]
fn the_reply_carries_the_id_where_one_can_be_read() {
    for (text, id) in [
        (r#"{"id":7,"method":"a","method":"b"}"#, "7"),
        (r#"{"method":"a","method":"b","id":"x\/y"}"#, r#""x\/y""#),
        (r#"{"id":7,"method":"a"} trailing"#, "7"),
        (r#"{"id":7,"method":"a","params":{"#, "7"),
        (r#"{"id":7,"id":8,"method":"a"}"#, "null"),
        (r#"{"method":"a","id":7,"ID":8}"#, "7"),
        (r#"{"id":[7],"method":"a","method":"b"}"#, "null"),
        (r#"{"method":"a","params":{"id":7}"#, "null"),
        (r#"[{"id":7}]"#, "null"),
        ("", "null"),
    ] {
        let reply = String::from_utf8(ClientFrame::read(text.as_bytes()).unwrap_err().reply()).unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":""#);
        assert!(reply.starts_with(&expected), "{text}: {reply}");
        assert!(serde_json::from_str::<serde_json::Value>(&reply).is_ok());
    }
}
