//! Tests of reading clients' frames.

#[path = "smuggled.rs"]
mod smuggled;

use self::smuggled::SMUGGLED;
use super::*;

fn problem(text: &str) -> Option<Problem> {
    ClientFrame::read(text.as_bytes()).err().map(|malformed| malformed.problem)
}

#[test]
fn s3_smuggled_calls_are_refused() {
    for (text, expected) in SMUGGLED {
        assert_eq!(problem(text), Some(*expected), "{text}");
    }
}

/// To whoever ends lines with a carriage return, the second line of this one is a call.
#[test]
fn s3_a_call_on_a_line_within_the_line_is_refused() {
    let call = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"wipe"}}"#;
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":{{\"x\":\r{call}\r}}}}");
    let malformed = ClientFrame::read_line(line.as_bytes()).unwrap_err();
    assert_eq!(
        malformed,
        Malformed { id: Some("7".to_owned()), ids: Vec::new(), problem: Problem::SeveralLines }
    );
    // JSON of several lines is one HTTP body, and an escaped carriage return ends no line.
    assert!(ClientFrame::read(line.as_bytes()).is_ok());
    assert!(
        ClientFrame::read_line(br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"\r"}}"#).is_ok()
    );
}

#[test]
fn s37_ids_are_bounded() {
    for (length, expected) in [(1022, None), (1023, Some(Problem::LongId))] {
        let text = format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(length));
        assert_eq!(problem(&text), expected);
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
        r#"{"id":1.50,"method":"vendor/x","params":{"Name":"x","ID":"y","id":1},"jsonrpc":"2.0","extra":{"ID":1}}"#,
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
fn a_request_is_answerable_under_a_string_or_a_number_and_notifications_need_no_id() {
    for (id, method, expected) in [
        ("1", "tools/call", true),
        ("1.5e3", "ping", true),
        (r#""""#, "notifications/x", true),
        ("null", "tools/call", false),
        ("null", "vendor/x", false),
        ("null", "notifications", false),
        ("true", "ping", false),
        ("[1]", "tools/list", false),
        (r#"{"a":1}"#, "initialize", false),
        ("null", "notifications/initialized", true),
        ("{}", "notifications/initialized", false),
        ("false", "notifications/x", false),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let read = ClientFrame::read(text.as_bytes()).unwrap().answerable();
        assert_eq!(read.is_ok(), expected, "{text}");
        let refused = read.err().map(|malformed| (malformed.problem, malformed.id, malformed.ids));
        assert!(refused.is_none_or(|refused| refused == (Problem::NoId, None, Vec::new())), "{text}");
    }
    for text in [
        r#"{"jsonrpc":"2.0","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        "{}",
    ] {
        assert!(ClientFrame::read(text.as_bytes()).unwrap().answerable().is_ok(), "{text}");
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
        // Numbers that are none, and one that may go on.
        (r#"{"id":07,"method":"a"}"#, "null"),
        (r#"{"id":0x7,"method":"a"}"#, "null"),
        (r#"{"id":7"#, "null"),
        ("", "null"),
    ] {
        let reply = String::from_utf8(ClientFrame::read(text.as_bytes()).unwrap_err().reply()).unwrap();
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":""#);
        assert!(reply.starts_with(&expected), "{text}: {reply}");
        assert!(serde_json::from_str::<serde_json::Value>(&reply).is_ok());
    }
}

mod against_serde_json {
    use std::collections::BTreeSet;
    use std::fmt;

    use proptest::prelude::*;
    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde_json::value::RawValue;

    use super::*;

    /// An object as `serde_json` reads it: its members in order, duplicates included.
    struct Object(Vec<(String, Box<RawValue>)>);

    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Members;
            impl<'de> Visitor<'de> for Members {
                type Value = Object;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                    let mut members = Vec::new();
                    while let Some(member) = map.next_entry()? {
                        members.push(member);
                    }
                    Ok(Object(members))
                }
            }
            deserializer.deserialize_map(Members)
        }
    }

    const NAMES: [&str; 10] = [
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

    /// S3 in the plainest words: no key twice, and none that only looks like a name.
    fn is_plain(members: &[(String, Box<RawValue>)]) -> bool {
        let keys: BTreeSet<_> = members.iter().map(|(key, _)| key.as_str()).collect();
        let folded = |key: &str| {
            let key = key.trim_start_matches('\0');
            let key = key.split('\0').next().unwrap_or_default();
            key.to_lowercase().replace('ſ', "s").replace(['ı'], "i").replace("i\u{307}", "i")
        };
        let is_twin =
            |key: &str| !NAMES.contains(&key) && NAMES.iter().any(|name| name.to_lowercase() == folded(key));
        keys.len() == members.len() && !keys.iter().any(|key| is_twin(key))
    }

    /// Whether a call may pass, judged with `serde_json` alone. `None`: a key is no Unicode, which `serde_json` refuses
    /// to read, and which is no envelope key to anybody.
    fn judge(bytes: &[u8]) -> Option<bool> {
        if serde_json::from_slice::<&RawValue>(bytes).is_err() {
            return Some(false);
        }
        let Object(frame) = serde_json::from_slice(bytes).ok()?;
        let params = frame.iter().find(|(key, _)| key == "params").map(|(_, value)| value);
        let Some(params) = params else { return Some(is_plain(&frame)) };
        let Object(params) = serde_json::from_str(params.get()).ok()?;
        let meta = params.iter().find(|(key, _)| key == "_meta").map(|(_, value)| value);
        let is_meta_plain = meta.is_none_or(|meta| {
            serde_json::from_str::<Object>(meta.get()).is_err()
                || serde_json::from_str::<Object>(meta.get()).is_ok_and(|Object(meta)| {
                    let keys: BTreeSet<_> = meta.iter().map(|(key, _)| key.as_str()).collect();
                    keys.len() == meta.len()
                })
        });
        Some(is_plain(&frame) && is_plain(&params) && is_meta_plain)
    }

    /// A key: a name, a twin of one, or another; some characters escaped.
    fn key() -> impl Strategy<Value = String> {
        let twin = (prop::sample::select(&NAMES[..]), 0..6_u8).prop_map(|(name, how)| match how {
            0 => name.to_uppercase(),
            1 => name.replace('s', "ſ"),
            2 => name.replace('k', "\u{212a}"),
            3 => format!("{name}\0x"),
            4 => format!("\0{name}"),
            _ => name.replace('i', "ı"),
        });
        let key = prop_oneof![
            6 => prop::sample::select(&NAMES[..]).prop_map(str::to_owned),
            1 => twin,
            3 => "[a-c]{1,2}",
            1 => any::<String>(),
        ];
        (key, prop::collection::vec(prop::bool::weighted(0.05), 16)).prop_map(|(key, escaped)| {
            let mut json = String::from("\"");
            for (at, unit) in key.encode_utf16().enumerate() {
                let character = char::from_u32(u32::from(unit));
                match character {
                    Some(character)
                        if !escaped.get(at).copied().unwrap_or(true) && !character.is_control() =>
                    {
                        json.push_str(serde_json::to_string(&character).unwrap().trim_matches('"'));
                        if character == '"' {
                            json.push('"');
                        }
                    }
                    _ => json.extend(["\\u", &format!("{unit:04x}")]),
                }
            }
            json.push('"');
            json
        })
    }

    fn object(value: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = String> {
        prop::collection::vec((key(), value), 0..6).prop_map(|members| {
            let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        })
    }

    fn frame() -> impl Strategy<Value = String> {
        let leaf =
            prop_oneof![Just("1"), Just("\"x\""), Just("null"), Just("{}"), Just("[{\"a\":1,\"a\":2}]")]
                .prop_map(str::to_owned);
        let params = object(prop_oneof![leaf.clone(), object(leaf.clone())].boxed());
        (params, object(leaf)).prop_map(|(params, rest)| {
            let rest = rest.trim_start_matches('{').trim_end_matches('}').to_owned();
            let comma = if rest.is_empty() { "" } else { "," };
            format!("{{\"method\":\"tools/call\",\"params\":{params}{comma}{rest}}}")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn s3_a_call_passes_exactly_when_every_parser_reads_it_alike(
            text in frame(),
            cut in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut bytes = text.into_bytes();
            if let Some((at, byte)) = cut {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let read = ClientFrame::read(&bytes);
            if let Ok(frame) = &read {
                prop_assert_eq!(frame.has_line_breaks(), memchr::memchr2(b'\r', b'\n', &bytes).is_some());
            }
            // Values have rules of their own, tested above: the method, the tool's name, a method that is no call.
            let is_call = read.as_ref().map_or(true, |frame| frame.method() == Some("tools/call"));
            let is_about_values = matches!(
                read,
                Err(Malformed { problem: Problem::LookAlikeName | Problem::NoParams | Problem::LongId, .. })
            );
            prop_assume!(is_call && !is_about_values);
            if let Some(passes) = judge(&bytes) {
                prop_assert_eq!(read.is_ok(), passes, "{}: {:?}", String::from_utf8_lossy(&bytes), read.err());
            }
        }
    }
}
