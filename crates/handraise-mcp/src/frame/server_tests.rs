//! Tests of reading servers' frames.

use super::*;

fn read(text: &str) -> ServerFrame<'_> {
    let look = |bytes: &[u8]| Looks {
        refusal: memchr::memmem::find(bytes, b"refusal").is_some(),
        ..Looks::default()
    };
    ServerFrame::read(text.as_bytes(), look).unwrap()
}

/// Responses in the orders that servers write, each with its id and result.
#[test]
fn a_response_is_known_in_every_order() {
    for (text, id, result) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, "1", Some(r#"{"a":1}"#)),
        (r#" { "jsonrpc" : "2.0" , "id" : "a\/b" , "result" : [] } "#, r#""a\/b""#, Some("[]")),
        (r#"{"id":1.0,"jsonrpc":"2.0","result":{"id":2}}"#, "1.0", Some(r#"{"id":2}"#)),
        (r#"{"id":1,"result":{},"jsonrpc":"2.0"}"#, "1", Some("{}")),
        (r#"{"result":{"a":"}"},"jsonrpc":"2.0","id":3}"#, "3", Some(r#"{"a":"}"}"#)),
        (r#"{"result":{},"jsonrpc":"2.0","id":"x"} "#, r#""x""#, Some("{}")),
        (r#"{"result":{"id":9},"id":3,"jsonrpc":"2.0"}"#, "3", Some(r#"{"id":9}"#)),
        (r#"{"result":{},"x":{"y":1,"jsonrpc":"2.0","id":4},"id":3}"#, "3", Some("{}")),
        (
            r#"{"result":"x,\"jsonrpc\":\"2.0\",\"id\":4}","id":3}"#,
            "3",
            Some(r#""x,\"jsonrpc\":\"2.0\",\"id\":4}""#),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#, "1", None),
        (r#"{"error":{"code":1,"message":"m"},"jsonrpc":"2.0","id":1}"#, "1", None),
    ] {
        let frame = read(text);
        assert_eq!(frame.response_id().map(Id::raw), Some(id), "{text}");
        assert_eq!(frame.result_at().map(|at| frame.text(at)), result, "{text}");
        let Shape::Response { id_at, .. } = frame.shape.clone() else { panic!("{text}") };
        assert_eq!(frame.text(id_at), id, "{text}");
    }
}

#[test]
fn what_is_no_response_is_none() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        "{}",
    ] {
        assert_eq!(read(text).response_id(), None, "{text}");
    }
    assert_eq!(read(r#"{"id":1,"method":"roots\/list","params":{}}"#).method(), Some("roots/list"));
}

#[test]
fn noise_is_no_frame() {
    for text in [
        "",
        "Listening on stdio",
        "{ listening: true }",
        "123",
        "\"x\"",
        "{\"a\":1",
        "[1,",
        "{} {}",
        "null",
        "[{}]",
    ] {
        assert!(ServerFrame::read(text.as_bytes(), |_| Looks::default()).is_err(), "{text}");
    }
    assert!(ServerFrame::read(b"{\"method\":\"\xff\"}", |_| Looks::default()).is_err());
}

#[test]
fn only_responses_are_tested_for_refusals() {
    assert!(read(r#"{"jsonrpc":"2.0","id":1,"result":"refusal"}"#).looks.refusal);
    assert!(!read(r#"{"jsonrpc":"2.0","id":1,"result":"fine"}"#).looks.refusal);
    assert!(!read(r#"{"jsonrpc":"2.0","id":1,"method":"refusal"}"#).looks.refusal);
}

/// The elements of an array, or nothing of what is none.
fn elements(text: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let read = each_of_batch(text.as_bytes(), |element| found.push(std::str::from_utf8(element).unwrap()));
    assert!(read.is_ok() || found.is_empty(), "{text}");
    read.ok().map(|()| found)
}

#[test]
fn a_batch_is_taken_apart_as_it_stands() {
    for (text, expected) in
        [("[]", &[][..]), (" [ {\"a\" : 1.0} ,[{}], 7,\"]\"\t] ", &["{\"a\" : 1.0}", "[{}]", "7", "\"]\""])]
    {
        assert_eq!(elements(text).as_deref(), Some(expected), "{text}");
    }
    for text in ["", "{}", "[{}", "[{}] x", "[{},]", "[{}]]", "7"] {
        assert_eq!(elements(text), None, "{text}");
    }
    assert!(is_batch(b" [") && !is_batch(b"{\"a\":[") && !is_batch(b""));
}
