//! Headers of requests: what is mirrored, what is compared.

use super::*;
use crate::declared::modern_version;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

const SCHEMA: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
    "limits":{"type":"object","properties":{"rows":{"type":"integer","x-mcp-header":"Max-Rows"}}},
    "dry":{"type":"boolean","x-mcp-header":"Dry"},"sql":{"type":"string"}}}"#;

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"run","arguments":{arguments},{META}}}}}"#
    )
}

fn headers_of(frame: &str, schema: &str) -> Vec<(String, String)> {
    let tool = ToolHeaders::of_schema(schema).unwrap();
    let frame = ClientFrame::read(frame.as_bytes()).unwrap();
    let version = modern_version(&frame).unwrap();
    mirrored(&frame, &version, Some(&tool))
        .into_iter()
        .map(|header| (header.name.into_owned(), header.value))
        .collect()
}

fn checked(frame: &str, headers: &[(&str, &str)], schema: &str) -> String {
    let tool = ToolHeaders::of_schema(schema).unwrap();
    let frame = ClientFrame::read(frame.as_bytes()).unwrap();
    let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes()));
    match check(&frame, headers, Some(&tool)) {
        Ok(()) => "fine".to_owned(),
        Err(mismatch) => mismatch.to_string(),
    }
}

#[test]
fn a_call_mirrors_its_version_method_name_and_arguments() {
    let call = call(r#"{"region":"us-west1","limits":{"rows":-42},"dry":false,"sql":"SELECT 1"}"#);
    let expected = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "run"),
        ("mcp-param-region", "us-west1"),
        ("mcp-param-max-rows", "-42"),
        ("mcp-param-dry", "false"),
    ];
    let headers = headers_of(&call, SCHEMA);
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn what_is_absent_or_null_has_no_header_and_the_rest_is_encoded() {
    for (arguments, expected) in [
        (r#"{"region":null,"limits":{},"sql":"x"}"#, vec![]),
        (r#"{"region":"Zürich","limits":7}"#, vec![("mcp-param-region", "=?base64?WsO8cmljaA==?=")]),
        (r#"{"limits":{"rows":42.0}}"#, vec![("mcp-param-max-rows", "42")]),
        (r#"{"limits":{"rows":1e3}}"#, vec![("mcp-param-max-rows", "1000")]),
        (r#"{"region":["a"],"dry":{"a":1}}"#, vec![]),
        (r#"{"region":"a","region":"b"}"#, vec![("mcp-param-region", "b")]),
        (r#"{"region":"\u0061\n"}"#, vec![("mcp-param-region", "=?base64?YQo=?=")]),
        ("null", vec![]),
    ] {
        let headers = headers_of(&call(arguments), SCHEMA);
        let expected: Vec<_> =
            expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(headers[3..], expected, "{arguments}");
    }
}

#[test]
fn a_request_is_named_by_what_it_is_about() {
    for (method, params, expected) in [
        ("prompts/get", r#""name":"greet""#, Some("greet")),
        ("resources/read", r#""uri":"file:///ä","name":"x""#, Some("file:///ä")),
        ("tasks/get", r#""taskId":"t-1""#, Some("t-1")),
        ("tasks/update", r#""taskId":"t-1""#, Some("t-1")),
        ("tasks/cancel", r#""taskId":"t-1""#, Some("t-1")),
        ("tools/list", r#""name":"x""#, None),
        ("tools/call", r#""name":7"#, None),
        ("tools/call", r#""x":7"#, None),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        let frame = ClientFrame::read(frame.as_bytes()).unwrap();
        assert_eq!(name(&frame).as_deref(), expected, "{method} {params}");
        assert_eq!(modern_version(&frame), None);
    }
}

#[test]
fn s3_headers_say_what_the_body_says() {
    let call = call(r#"{"region":"us","limits":{"rows":42}}"#);
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let (method, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "run"));
    let (region, rows) = (("Mcp-Param-Region", "us"), ("Mcp-Param-Max-Rows", "42"));
    for (headers, expected) in [
        (vec![version, method, name, region, rows], "fine"),
        (
            vec![
                version,
                method,
                name,
                ("mcp-param-REGION", "=?base64?dXM=?="),
                ("mcp-param-max-rows", "42.0"),
            ],
            "fine",
        ),
        (
            vec![version, method, ("mcp-name", "=?base64?cnVu?="), region, rows, ("mcp-param-other", "x")],
            "fine",
        ),
        (vec![method, name, region, rows], "Header mismatch: MCP-Protocol-Version header is missing"),
        (vec![version, name, region, rows], "Header mismatch: Mcp-Method header is missing"),
        (vec![version, method, region, rows], "Header mismatch: Mcp-Name header is missing"),
        (vec![version, method, name, rows], "Header mismatch: Mcp-Param-region header is missing"),
        (
            vec![("mcp-protocol-version", "2025-11-25"), method, name, region, rows],
            "Header mismatch: MCP-Protocol-Version header value '2025-11-25' does not match body value '2026-07-28'",
        ),
        (
            vec![version, ("mcp-method", "Tools/Call"), name, region, rows],
            "Header mismatch: Mcp-Method header value 'Tools/Call' does not match body value 'tools/call'",
        ),
        (
            vec![version, method, ("mcp-name", "walk"), region, rows],
            "Header mismatch: Mcp-Name header value 'walk' does not match body value 'run'",
        ),
        (
            vec![version, method, name, name, region, rows],
            "Header mismatch: Mcp-Name header stands more than once",
        ),
        (
            vec![version, method, ("mcp-name", "=?base64?!?="), region, rows],
            "Header mismatch: Mcp-Name header value contains invalid characters",
        ),
        (
            vec![version, method, name, ("mcp-param-region", "eu"), rows],
            "Header mismatch: Mcp-Param-region header value does not match body value",
        ),
        (
            vec![version, method, name, region, ("mcp-param-max-rows", "43")],
            "Header mismatch: Mcp-Param-max-rows header value does not match body value",
        ),
        (
            vec![version, method, name, region, rows, ("mcp-param-dry", "true")],
            "Header mismatch: Mcp-Param-dry header has no value in the body",
        ),
    ] {
        assert_eq!(checked(&call, &headers, SCHEMA), expected, "{headers:?}");
    }
}

#[test]
fn s3_an_argument_that_readers_differ_about_matches_no_header() {
    let call = call(r#"{"region":"eu","region":"us"}"#);
    let all = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "run"),
        ("mcp-param-region", "us"),
    ];
    assert_eq!(
        checked(&call, &all, SCHEMA),
        "Header mismatch: Mcp-Param-region header value does not match body value"
    );
    assert_eq!(checked(&call, &all[..3], SCHEMA), "Header mismatch: Mcp-Param-region header is missing");
}

#[test]
fn headers_of_a_legacy_session_may_be_absent_and_must_be_true() {
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run","arguments":{"region":"us"}}}"#;
    for (headers, expected) in [
        (vec![], "fine"),
        (
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "run")],
            "fine",
        ),
        (
            vec![("mcp-name", "walk")],
            "Header mismatch: Mcp-Name header value 'walk' does not match body value 'run'",
        ),
        (
            vec![("mcp-param-region", "eu")],
            "Header mismatch: Mcp-Param-region header value does not match body value",
        ),
    ] {
        assert_eq!(checked(call, &headers, SCHEMA), expected, "{headers:?}");
    }
    // A response has no method to mirror.
    assert_eq!(checked(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, &[("mcp-method", "x")], SCHEMA), "fine");
}

#[test]
fn a_mismatch_is_the_protocols_error_and_shows_no_argument() {
    let call = call(r#"{"region":"hunter2"}"#);
    let frame = ClientFrame::read(call.as_bytes()).unwrap();
    let tool = ToolHeaders::of_schema(SCHEMA).unwrap();
    let headers = [("mcp-protocol-version", &b"2026-07-28"[..]), ("mcp-method", b"\x1b\xe2\x80\xae")];
    let mismatch = check(&frame, headers, Some(&tool)).unwrap_err();
    assert_eq!(
        String::from_utf8(mismatch.reply(frame.id())).unwrap(),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"Header mismatch: Mcp-Method header value '\\u{1b}\\u{202e}' does not match body value 'tools/call'"}}"#
    );
    let headers = [
        ("mcp-protocol-version", &b"2026-07-28"[..]),
        ("mcp-method", b"tools/call"),
        ("mcp-name", b"run"),
        ("mcp-param-region", b"other2"),
    ];
    let shown = check(&frame, headers, Some(&tool)).unwrap_err().to_string();
    assert!(!shown.contains("hunter2") && !shown.contains("other2"), "{shown}");
}

#[test]
fn annotations_that_break_a_rule_are_named() {
    let property = |property: &str| format!(r#"{{"properties":{{"a":{property}}}}}"#);
    for (schema, expected) in [
        (property(r#"{"type":"string","x-mcp-header":""}"#), InvalidAnnotation::NoName),
        (property(r#"{"type":"string","x-mcp-header":"a b"}"#), InvalidAnnotation::NoName),
        (property(r#"{"type":"string","x-mcp-header":"a\r\nb"}"#), InvalidAnnotation::NoName),
        (property(r#"{"type":"string","x-mcp-header":7}"#), InvalidAnnotation::NoName),
        (property(r#"{"type":"number","x-mcp-header":"A"}"#), InvalidAnnotation::NotPrimitive("A".to_owned())),
        (property(r#"{"type":"array","x-mcp-header":"A"}"#), InvalidAnnotation::NotPrimitive("A".to_owned())),
        (property(r#"{"x-mcp-header":"A"}"#), InvalidAnnotation::NotPrimitive("A".to_owned())),
        (
            property(r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#),
            InvalidAnnotation::Misplaced,
        ),
        (r#"{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#.to_owned(), InvalidAnnotation::Misplaced),
        (r#"{"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}"#.to_owned(), InvalidAnnotation::Misplaced),
        (r#"{"x-mcp-header":"A","type":"string"}"#.to_owned(), InvalidAnnotation::Misplaced),
        (
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#
                .to_owned(),
            InvalidAnnotation::Duplicate("a".to_owned()),
        ),
        (r#"["x-mcp-header"]"#.to_owned(), InvalidAnnotation::NoSchema),
    ] {
        assert_eq!(ToolHeaders::of_schema(&schema), Err(expected), "{schema}");
    }
    let data = property(r#"{"type":"object","default":{"x-mcp-header":"A"}}"#);
    assert!(ToolHeaders::of_schema(&data).unwrap().is_empty());
}

#[test]
fn lists_of_tools_are_learned_page_by_page() {
    let mut seen = SeenTools::default();
    let tool = |name: &str, header: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string"{header}}}}}}}}}"#
        )
    };
    let annotated = r#","x-mcp-header":"A""#;
    let page = format!(r#"{{"tools":[{},{},7,{{}}]}}"#, tool("one", annotated), tool("two", ""));
    assert_eq!(seen.learn(&page), []);
    assert!(seen.get("one").is_some() && seen.get("two").is_none());
    let page =
        format!(r#"{{"tools":[{},{}]}}"#, tool("two", annotated), tool("bad", r#","x-mcp-header":"""#));
    assert_eq!(seen.learn(&page), [("bad".to_owned(), InvalidAnnotation::NoName)]);
    assert!(seen.get("one").is_some() && seen.get("two").is_some() && seen.get("bad").is_none());
    assert_eq!(seen.learn(&format!(r#"{{"tools":[{}]}}"#, tool("one", ""))), []);
    assert!(seen.get("one").is_none());
    for noise in ["", "null", "{}", r#"{"tools":{}}"#] {
        assert_eq!(seen.learn(noise), []);
    }
}

#[test]
fn s37_what_is_kept_of_lists_of_tools_is_bounded() {
    const A: &str = r#"x-mcp-header":"A""#;
    let mut seen = SeenTools::default();
    let page = |name: &str, header: &str| {
        let schema = format!(r#"{{"properties":{{"a":{{"type":"string","{header}}}}}}}"#);
        format!(r#"{{"tools":[{{"name":"{name}","inputSchema":{schema}}}]}}"#)
    };
    let names: Vec<String> = ["a", "b", "c", "d", "e"].map(|letter| letter.repeat(1 << 20)).into();
    for _ in 0..2 {
        for name in &names {
            seen.learn(&page(name, A));
        }
        let known = names.iter().filter(|name| seen.get(name).is_some()).count();
        assert_eq!(known, 3, "4 MiB, with what belongs to each");
    }
    // What is no longer listed with headers makes room.
    seen.learn(&page(&names[0], r#"x":"A""#));
    seen.learn(&page(&names[4], A));
    assert!(seen.get(&names[0]).is_none() && seen.get(&names[4]).is_some());
    // Whose headers cannot be told is named, as far as that is short.
    let invalid = seen.learn(&page(&names[4], r#"x-mcp-header":"""#));
    assert_eq!((invalid[0].0.len(), seen.get(&names[4])), (128, None));
}

proptest::proptest! {
    #[test]
    fn what_a_client_mirrors_is_what_a_server_finds(region in ".*", rows in proptest::num::i64::ANY, dry: bool) {
        let arguments = serde_json::json!({"region": region, "limits": {"rows": rows}, "dry": dry});
        let call = call(&arguments.to_string());
        let headers = headers_of(&call, SCHEMA);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        proptest::prop_assert_eq!(checked(&call, &headers, SCHEMA), "fine");
    }
}
