//! Requests whose answer could be brought to nobody.

use serde_json::{Value, json};

use crate::support::{Front, Home, modern};

const NONE: [&str; 5] = ["null", "true", "[7]", "{\"a\":7}", "false"];

/// What a client is answered whose request has no id that counts.
#[track_caller]
fn assert_refused((status, error): (u16, Value), what: &str) {
    assert_eq!(
        (status, &error["error"]["code"], &error["id"]),
        (400, &json!(-32600), &Value::Null),
        "{what}"
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("the id of a request is a string or a number"), "{what}: {error}");
}

#[test]
fn s3_a_request_whose_id_is_neither_string_nor_number_is_refused_in_every_era_and_runs_nothing() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = [("Mcp-Session-Id", session.as_str())];
    let params = json!({"name": "echo", "arguments": {"text": "a"}});
    let (frame, mirrors) = modern(&json!("ID"), "tools/call", &params);
    let mirrors: Vec<_> = mirrors.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let call = json!({"jsonrpc": "2.0", "id": "ID", "method": "tools/call", "params": params});
    let opening = json!({"jsonrpc": "2.0", "id": "ID", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}});
    for id in NONE {
        for (headers, frame) in [(&named[..], &call), (&mirrors, &frame), (&[], &opening), (&[], &call)] {
            let body = frame.to_string().replace("\"ID\"", id);
            for otherwise in [&[][..], &[("Connection", "keep-alive, x-nothing")]] {
                let headers = [headers, otherwise].concat();
                assert_refused(front.request("POST", &headers, body.as_bytes()).answer(), &body);
            }
        }
    }
    assert_eq!((front.count("echo"), front.metric("sessions"), front.metric("shared_servers")), (0, 1, 0));
    // A session that has sent one goes on.
    let body = call.to_string();
    assert_eq!(front.request("POST", &named, body.as_bytes()).answer().0, 200);
    assert_eq!(front.count("echo"), 1);
}

#[test]
fn what_has_no_answer_passes_with_null_for_its_id_as_it_came() {
    let home = Home::new();
    let front = Front::start(&home);
    let session = front.initialize("2025-11-25", &json!({}), &[]);
    let named = [("Mcp-Session-Id", session.as_str())];
    let note = r#"{"id":null,"jsonrpc":"2.0","method":"notifications/vendor", "params":{"n":1.0}}"#;
    // What a peer says to a frame that it could not read.
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"odd"}}"#;
    for frame in [note, error] {
        assert_eq!(front.request("POST", &named, frame.as_bytes()).head().status, 202, "{frame}");
    }
    crate::support::wait_for("both", || {
        let received = String::from_utf8(front.received()).unwrap();
        (received.contains(note) && received.contains(error)).then_some(())
    });
}
