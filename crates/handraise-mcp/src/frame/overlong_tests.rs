//! Whose an overlong frame is, with what looks like it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn request(id: &str) -> Overlong {
    Overlong::Request(id.to_owned())
}

fn response(id: &str) -> Overlong {
    Overlong::Response(Some(id.to_owned()))
}

const NAMELESS: Overlong = Overlong::Response(None);

#[test]
fn s37_the_beginning_of_a_frame_says_whose_it_is() {
    for (head, expected) in [
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"#, request("7")),
        (r#"{"method":"x","id":7,"params":{"result":"aaaa"#, request("7")),
        (r#"{"id":7,"params":{"result":1,"error":1},"method":"x","more":"aaaa"#, request("7")),
        (r#"{"jsonrpc":"2.0","id":"a","result":{"method":"aaaa"#, response("\"a\"")),
        ("\u{feff} { \"id\" : 7 , \"error\" : {", response("7")),
        (r#"{"jsonrpc":"2.0","result":{"id":7,"text":"aaaa"#, NAMELESS),
        (r#"{"result":null,"id":7,"id":8,"text":"aaaa"#, NAMELESS),
        (r#"{"result":null,"id":7"#, NAMELESS),
        (r#"{"jsonrpc":"2.0","id":7,"text":"aaaa"#, Overlong::Unknown),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"id":7,"text":"aaaa"#,
            Overlong::Unknown,
        ),
        (r#"[{"jsonrpc":"2.0","id":7,"result":{"text":"aaaa"#, Overlong::Unknown),
        ("aaaaaaaa", Overlong::Unknown),
    ] {
        assert_eq!(read(head.as_bytes(), b""), expected, "{head}");
    }
}

#[test]
fn s37_the_end_of_a_frame_says_whose_it_is() {
    let head = br#"{"result":{"content":[{"type":"text","text":"aaaa"#;
    for (tail, expected) in [
        (r#"aaaa"}]},"jsonrpc":"2.0","id":7}"#, response("7")),
        ("aaaa\"}]}, \"id\" : \"a\\\"b\\\\\" , \"x\" : null }\r", response(r#""a\"b\\""#)),
        (r#"aaaa"}]},"id":-1.5e3,"jsonrpc":"2.0"}"#, response("-1.5e3")),
        (r#"aaaa"}]},"\u0069d":7}"#, response("7")),
        (r#","id":7}"#, response("7")),
        // Two ids, or none.
        (r#"aaaa"}]},"id":7,"id":8}"#, NAMELESS),
        (r#"aaaa"}]},"id":7,"id":7.0}"#, response("7.0")),
        (r#"aaaa"}]},"id":null}"#, NAMELESS),
        (r#"aaaa"}]},"id":[7]}"#, NAMELESS),
        (r#"aaaa"}]},"id":7,"x":{}}"#, NAMELESS),
        // Somebody else's.
        (r#"aaaa","id":7}]}}"#, NAMELESS),
        (r#"aaaa"}],"id":7}}"#, NAMELESS),
        (r#"aaaa\"id\":7}"}]}}"#, NAMELESS),
        (r#"aaaa,\"id\":7","id":8}"#, response("8")),
        (r#"aaaa"}]},"x":"\"id\":7}"}"#, NAMELESS),
        (r#"aaaa"}]},"x":"{\"a\":1,\"id\":7"}"#, NAMELESS),
        (r#"aaaa"}]},"a\"id":7}"#, NAMELESS),
        (r#"aaaa"}]},"a,\\\"id":7}"#, NAMELESS),
        // What may have been cut off decides.
        (r#""id":7}"#, NAMELESS),
        (r#"id":7}"#, NAMELESS),
        ("7}", NAMELESS),
        // No JSON.
        (r#"aaaa"}]},"id":7"#, NAMELESS),
        (r#"aaaa"}]},"id":07}"#, NAMELESS),
        ("", NAMELESS),
    ] {
        assert_eq!(read(head, tail.as_bytes()), expected, "{tail}");
    }
}

#[test]
fn s37_both_ends_are_read_together() {
    let ends = |head: &str, tail: &str| read(head.as_bytes(), tail.as_bytes());
    let params = r#"{"method":"tools/call","params":{"name":"n","arguments":{"result":"aaaa"#;
    assert_eq!(ends(params, r#"aaaa"}},"jsonrpc":"2.0","id":7}"#), request("7"));
    assert_eq!(ends(r#"{"jsonrpc":"2.0","params":{"#, r#"},"method":"x","id":7}"#), request("7"));
    assert_eq!(ends(r#"{"jsonrpc":"2.0","id":7,"params":{"#, r#"},"method":"x"}"#), request("7"));
    assert_eq!(ends(r#"{"jsonrpc":"2.0","params":{"#, r#"},"method":"x"}"#), Overlong::Unknown);
    assert_eq!(ends(r#"{"id":7,"result":{"#, r#"},"id":7}"#), response("7"));
    assert_eq!(ends(r#"{"id":7,"result":{"#, r#"},"id":8}"#), NAMELESS);
    assert_eq!(ends(r#"{"id":7,"result":{"#, r#"},"method":"x"}"#), Overlong::Unknown);
    assert_eq!(ends("a log line", r#"},"id":7}"#), Overlong::Unknown);
    let long = "7".repeat(LONGEST_ID + 1);
    assert_eq!(ends(r#"{"result":{"#, &format!("}},\"id\":{long}}}")), NAMELESS);
}

/// Values in which everything looks like a frame.
fn value() -> impl Strategy<Value = Value> {
    let text = prop::collection::vec(
        prop::sample::select(vec![
            "\"",
            "\\",
            "id",
            "\"id\":7",
            ",",
            ":",
            "{",
            "}",
            "7",
            "\"result\":",
            " ",
            "é",
        ]),
        0..8,
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i16>().prop_map(Value::from),
        text.prop_map(|parts| json!(parts.concat()))
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..3).prop_map(|members| json!(Map::from_iter(members))),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["id", "method", "result", "error", "\"id", "id\\", "\\\"id", "x", ""])
        .prop_map(str::to_owned)
}

proptest! {
    /// However a frame is cut: what is seen is what it says.
    #[test]
    fn s37_nothing_within_a_frame_is_taken_for_its_own(
        members in prop::collection::vec((key(), value()), 0..6),
        head in 0_usize..400,
        tail in 0_usize..400,
    ) {
        let frame = Map::from_iter(members);
        let text = json!(frame).to_string();
        let (head, tail) = (&text.as_bytes()[..head.min(text.len())], &text.as_bytes()[text.len().saturating_sub(tail)..]);
        let id = frame.get("id").filter(|id| id.is_string() || id.is_number()).map(Value::to_string);
        let has_outcome = frame.contains_key("result") || frame.contains_key("error");
        match read(head, tail) {
            Overlong::Request(found) => {
                prop_assert_eq!(Some(found), id);
                prop_assert!(frame.contains_key("method"));
            }
            Overlong::Response(found) => {
                prop_assert!(found.is_none() || found == id);
                prop_assert!(has_outcome);
            }
            Overlong::Unknown => {
                let is_whole = head.len() == text.len();
                prop_assert!(!is_whole || has_outcome == frame.contains_key("method") || id.is_none());
            }
        }
    }
}

#[test]
fn both_replies_are_errors_under_the_id_and_say_what_bounds_them() {
    for (reply, code, bound) in
        [(reply("7", 99), -32600, "longer than 99"), (no_room("7", 99), -32603, "hold 99 bytes")]
    {
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&7.into(), &code.into()));
        assert!(reply["error"]["message"].as_str().unwrap().contains(bound), "{reply}");
    }
}
